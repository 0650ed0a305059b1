"""Shared by the checks of subcommands: runs the program, and counts checks."""
import signal
import subprocess
import sys

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost


class Checks:
    """Runs `TOOL SUBCOMMAND ...` and compares its output."""

    def __init__(self, subcommand):
        self.command = [sys.argv[1], subcommand]
        self.passed, self.failed = 0, 0

    def run(self, *arguments):
        done = subprocess.run([*self.command, *arguments], capture_output=True, encoding="utf-8", timeout=60)
        return done.returncode, done.stdout, done.stderr

    def check(self, what, condition, shown=""):
        if condition:
            self.passed += 1
        else:
            self.failed += 1
            print(f"failed: {what}\n{shown}")

    def prints(self, arguments, *parts):
        """The program succeeds, and its output contains each part."""
        code, out, err = self.run(*arguments)
        for part in parts:
            self.check(f"{arguments}: {part!r}", code == 0 and part in out, out + err)

    def refuses(self, arguments, *parts):
        """The program exits with 1, and the first line of its message contains each part."""
        code, _, err = self.run(*arguments)
        first = err.split("\n")[0]
        self.check(f"{arguments} is an error", code == 1 and first.startswith("meshard: "), err)
        for part in parts:
            self.check(f"{arguments}: {part!r}", part in err, err)

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed")
        sys.exit(1 if self.failed else 0)
