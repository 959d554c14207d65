#!/usr/bin/env python3
# SPDX-License-Identifier: ISC
"""Makes the C source that holds the migrations: embed.py OUTPUT NNNN-name.sql...

The files must be numbered 1, 2, 3 … without a gap. They become arrays of bytes, because C promises
string literals of no more than 4095 characters.
"""

import pathlib
import re
import sys


def main():
    output, *paths = sys.argv[1:]
    files = sorted((pathlib.Path(p) for p in paths), key=lambda p: p.name)
    out = ["/* SPDX-License-Identifier: ISC */", "/* Made by sql/embed.py. */",
           '#include "store/migrations.h"', ""]
    table = []
    for number, path in enumerate(files, 1):
        match = re.fullmatch(r"(\d{4})-[a-z0-9-]+\.sql", path.name)
        if not match or int(match.group(1)) != number:
            sys.exit(f"embed.py: {path.name}: expected {number:04}-name.sql")
        text = path.read_bytes()
        if b"\0" in text:
            sys.exit(f"embed.py: {path.name}: holds a NUL")
        out.append(f"static const char text_{number}[] = {{")
        values = [str(byte) for byte in text.decode("utf-8").encode("utf-8")] + ["0"]
        if any(byte > 126 for byte in text):
            sys.exit(f"embed.py: {path.name}: not plain ASCII")
        for i in range(0, len(values), 24):
            out.append("\t" + ", ".join(values[i:i + 24]) + ",")
        out += ["};", ""]
        table.append(f'\t{{{number}, "{path.name}", text_{number}}},')
    out += ["static const struct migration table[] = {", *table, "};", "",
            "const struct migration *migrations(size_t *ret_count)", "{",
            "\t*ret_count = sizeof table / sizeof table[0];", "\treturn table;", "}"]
    pathlib.Path(output).write_text("\n".join(out) + "\n", encoding="ascii")


main()
