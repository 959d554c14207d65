# SPDX-License-Identifier: ISC
"""Runs test functions and prints TAP on standard output; all diagnostics go to standard error."""

import signal
import sys
import time
import traceback

from .scope import Scope, Skip, deadline


class Suite:
    """The tests of one program, in the order in which they were registered.

    Each test is a function of one argument, its Scope. `setup` is a function of the suite's own
    scope: it runs before the first test, and what it returns is `t.shared` of every test.
    """

    def __init__(self, name, timeout=120):
        self.name = name
        self.timeout = timeout
        self.scope = None
        self._tests = []
        self._setup = None

    def test(self, function):
        """Registers FUNCTION; its name with spaces is the test's name."""
        self._tests.append(function)
        return function

    def setup(self, function):
        """Registers what runs once before the first test."""
        self._setup = function
        return function

    def main(self):
        """Runs all tests, or those named on the command line, and exits."""
        names = [function.__name__ for function in self._tests]
        if sys.argv[1:2] in (["--list"], ["-l"]):
            print("\n".join(names))
            sys.exit(0)
        unknown = [name for name in sys.argv[1:] if name not in names]
        if unknown:
            print(f"no such test: {', '.join(unknown)}; there are: {', '.join(names)}",
                  file=sys.stderr)
            sys.exit(2)
        chosen = [f for f in self._tests if not sys.argv[1:] or f.__name__ in sys.argv[1:]]
        # A harness that gives up on us sends TERM: leave by the way that cleans up.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
        sys.exit(0 if self._run(chosen) else 1)

    def _run(self, chosen):
        print(f"1..{len(chosen)}", flush=True)
        self.scope = Scope(self.name)
        good = True
        try:
            shared, broken = self._run_setup()
            for number, function in enumerate(chosen, 1):
                good = self._run_one(number, function, shared, broken) and good
        finally:
            self.scope.failed = not good
            try:
                self.scope.close()
            except Exception:  # pylint: disable=broad-except
                traceback.print_exc()
                good = False
        return good

    def _run_setup(self):
        """What setup gives, and the exception that every test then fails or skips with."""
        if self._setup is None:
            return None, None
        try:
            self._arm(self._setup)
            return self._setup(self.scope), None
        except Exception as error:  # pylint: disable=broad-except
            if not isinstance(error, Skip):
                traceback.print_exc()
                self.scope.failed = True
            return None, error
        finally:
            signal.alarm(0)

    def _run_one(self, number, function, shared, broken):
        title = function.__name__.replace("_", " ")
        begin = time.monotonic()
        try:
            if broken is not None:
                raise broken
            self._run_in_scope(function, shared)
        except Skip as reason:
            print(f"ok {number} - {title} # SKIP {reason}", flush=True)
            return True
        except Exception:  # pylint: disable=broad-except
            print(f"# {title}:", file=sys.stderr)
            traceback.print_exc()
            sys.stderr.flush()
            print(f"not ok {number} - {title}", flush=True)
            return False
        print(f"ok {number} - {title}", flush=True)
        print(f"# {title}: {time.monotonic() - begin:.2f} s", file=sys.stderr)
        return True

    def _run_in_scope(self, function, shared):
        scope = Scope(function.__name__, self.scope)
        scope.shared = shared
        try:
            self._arm(function)
            function(scope)
        except Skip:
            raise
        except Exception:
            scope.failed = True
            raise
        finally:
            signal.alarm(0)
            scope.close()

    def _arm(self, function):
        limit = int(deadline(self.timeout))

        def late(*_):
            raise AssertionError(f"{function.__name__} took more than {limit} s")
        signal.signal(signal.SIGALRM, late)
        signal.alarm(limit)
