"""run_tests.py counts right, above all when a program misbehaves."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

RUNNER = pathlib.Path(__file__).resolve().parent / "run_tests.py"

# Stands for a GoogleTest program: it holds the flag's name and writes XML where GTEST_OUTPUT says.
GTEST = """#!/usr/bin/env python3
# --gtest_list_tests
import os, sys
cases = {cases!r}
chosen = [a.split("=*")[1].rstrip("*") for a in sys.argv if a.startswith("--gtest_filter")]
body = "".join('<testcase name="%s" classname="S" status="run" result="completed">%s</testcase>' % c
               for c in cases if not chosen or chosen[0] in "S." + c[0])
open(os.environ["GTEST_OUTPUT"][4:], "w").write("<testsuites><testsuite>" + body + "</testsuite></testsuites>")
{end}
"""


class RunTests(unittest.TestCase):
    def run_programs(self, programs, *arguments):
        """Exit status and output lines of run_tests.py over {name: (script, properties)}."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            lines = []
            for name, (script, properties) in programs.items():
                path = root / name
                if script is not None:
                    path.write_text(script)
                    path.chmod(0o755)
                lines.append(f'add_test({name} "{path}")')
                if properties:
                    lines.append(f"set_tests_properties({name} PROPERTIES {properties})")
            (root / "CTestTestfile.cmake").write_text("\n".join(lines) + "\n")
            done = subprocess.run([sys.executable, str(RUNNER), "--build", folder, "--jobs", "2", *arguments],
                                  capture_output=True, text=True)
            return done.returncode, done.stdout.strip().split("\n")

    def gtest(self, *cases, end=""):
        return GTEST.format(cases=list(cases), end=end), ""

    def shell(self, text, properties=""):
        return f"#!/bin/sh\n{text}\n", properties

    def check(self, programs, status, last, *lines, arguments=()):
        found_status, found = self.run_programs(programs, *arguments)
        self.assertEqual((found_status, found[-1]), (status, last), "\n".join(found))
        for line in lines:
            self.assertIn(line, found)

    def test_all_pass(self):
        self.check({"a": self.gtest(("x", ""), ("y", "")), "b": self.shell("true")}, 0, "3 passed, 0 failed")

    def test_failure_and_skip_are_named(self):
        self.check({"a": self.gtest(("x", ""), ("y", "<failure/>"), ("z", '<skipped message="no plugin"/>'),
                                    end="sys.exit(1)")},
                   1, "1 passed, 1 failed, 1 skipped", "FAILED a: S.y", "SKIPPED a: S.z: no plugin")

    def test_crash_after_passing(self):
        self.check({"a": self.gtest(("x", ""), end="sys.stdout.flush(); os.kill(os.getpid(), 11)")},
                   1, "1 passed, 1 failed", "FAILED a: killed by signal 11")

    def test_no_results(self):
        self.check({"a": ("#!/bin/sh\n# --gtest_list_tests\nexit 0\n", "")},
                   1, "0 passed, 1 failed", "FAILED a: ended without writing its results")

    def test_time_limit(self):
        self.check({"a": self.shell("sleep 60", "TIMEOUT 1")}, 1, "0 passed, 1 failed", "FAILED a: exceeded 1 s")

    def test_not_built(self):
        self.check({"a": (None, "")}, 1, "0 passed, 1 failed", "FAILED a: its program was not built")

    def test_counts_of_other_programs(self):
        self.check({"a": self.shell("echo '7 passed, 0 failed'")}, 0, "7 passed, 0 failed")
        self.check({"a": self.shell("echo '7 passed, 2 failed, 3 skipped'; exit 1")},
                   1, "7 passed, 2 failed, 3 skipped", "FAILED a: failure 2")
        self.check({"a": self.shell("echo '7 passed, 0 failed'; exit 4")},
                   1, "7 passed, 1 failed", "FAILED a: exit status 4")

    def test_skip_status(self):
        self.check({"a": self.shell("echo no plugin; exit 77", "SKIP_RETURN_CODE 77"), "b": self.shell("true")},
                   0, "1 passed, 0 failed, 1 skipped", "SKIPPED a: no plugin")

    def test_names(self):
        programs = {"layout_test": self.gtest(("x", ""), ("y", "")), "mesh_test": self.gtest(("y", ""))}
        self.check(programs, 0, "2 passed, 0 failed", arguments=["layout"])
        self.check(programs, 0, "2 passed, 0 failed", arguments=["S.y"])
        self.check(programs, 1, "0 passed, 0 failed", arguments=["nothing"])
        self.check(programs, 0, "1 passed, 0 failed", arguments=["--only", "^mesh_test$"])


if __name__ == "__main__":
    unittest.main(verbosity=0)
