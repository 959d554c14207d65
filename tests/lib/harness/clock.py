# SPDX-License-Identifier: ISC
"""A wall clock that jumps for one program alone; nothing else on the machine notices."""

import os
import subprocess

from .scope import SOURCE


class JumpingClock:
    """Give `env` to a program; jump() sets how many seconds its wall clock is off."""

    def __init__(self, scope):
        library = scope.dir / scope.unique("shift_clock.so")
        self._file = scope.dir / scope.unique("shift")
        self.jump(0)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library,
                        SOURCE / "tests/lib/shift_clock.c"], check=True)
        # A sanitizer's own library wants to be the first, and need not be.
        options = os.environ.get("ASAN_OPTIONS", "")
        self.env = {"LD_PRELOAD": library, "SHIFT_CLOCK_FILE": self._file,
                    "ASAN_OPTIONS": f"{options}:verify_asan_link_order=0".lstrip(":")}

    def jump(self, seconds):
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds}\n", encoding="ascii")
        new.rename(self._file)
