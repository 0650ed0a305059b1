"""run_tests.py counts correctly, especially when a program misbehaves."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost
RUNNER = pathlib.Path(__file__).resolve().parent / "run_tests.py"

# Acts as a GoogleTest program: it contains the flag's name and writes XML to the path in
# GTEST_OUTPUT.
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
    def run_programs(self, programs, *arguments, mode=0o700):
        """Exit status and output lines of run_tests.py over {name: (script, properties)}."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            root.chmod(mode)
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
                                  capture_output=True, encoding="utf-8")
            return done.returncode, done.stdout.strip().split("\n")

    def gtest(self, *cases, end=""):
        return GTEST.format(cases=list(cases), end=end), ""

    def shell(self, text, properties=""):
        return f"#!/bin/sh\n{text}\n", properties

    def lines(self, *lines):
        """A program that prints these lines, claims to be a GoogleTest program, and crashes."""
        printed = "\n".join(lines)
        return f"#!/bin/sh\n# --gtest_list_tests\ncat <<'END'\n{printed}\nEND\n"

    def check(self, programs, status, last, *lines, arguments=()):
        found_status, found = self.run_programs(programs, *arguments)
        self.assertEqual((found_status, found[-1]), (status, last), "\n".join(found))
        for line in lines:
            self.assertIn(line, found)

    def test_all_pass(self):
        self.check({"a": self.gtest(("x", ""), ("y", "")), "b": self.shell("true")}, 0, "3 passed, 0 failed")

    def test_long_ones_run_first(self):
        _, lines = self.run_programs({"a": self.shell("true"), "b": self.shell("true", "COST 5")}, "--jobs", "1")
        self.assertEqual([line.split()[0] for line in lines[:2]], ["b", "a"])

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
        self.check({"a": self.shell("echo FAILED one thing; echo 'failed: another'; echo '7 passed, 2 failed'; exit 1")},
                   1, "7 passed, 2 failed", "FAILED a: one thing", "FAILED a: another")
        self.check({"a": self.shell("echo '7 passed, 0 failed'; exit 4")},
                   1, "7 passed, 1 failed", "FAILED a: exit status 4")

    def test_skip_status(self):
        self.check({"a": self.shell("echo no plugin; exit 77", "SKIP_RETURN_CODE 77"), "b": self.shell("true")},
                   0, "1 passed, 0 failed, 1 skipped", "SKIPPED a: no plugin")

    def test_failed_assertions_and_how_to_repeat_them(self):
        wrong = "<failure message='short'><![CDATA[a_test.cc:7\nExpected 1, got 2]]></failure>"
        status, found = self.run_programs(
            {"a": (self.gtest(*[(f"passes{i}", "") for i in range(300)], ("wrong", wrong), end="sys.exit(1)")[0],
                   'ENVIRONMENT "KEY=two words"')})
        text = "\n".join(found)
        self.assertEqual(status, 1)
        self.assertIn("    | Expected 1, got 2", found)
        self.assertNotIn("passes7", text)
        self.assertRegex(text, r"repeat: cd \S+ && env .*'KEY=two words' \S+/a --gtest_filter=S\.wrong")
        self.assertRegex(text, r"output: \S+/test-results/a\.log")

    def test_assertions_are_repeated_at_the_end(self):
        wrong = "<failure message='short'><![CDATA[a_test.cc:7\nExpected 1, got 2]]></failure>"
        found = self.run_programs({"a": self.gtest(("wrong", wrong), end="sys.exit(1)")})[1]
        self.assertEqual(found[-4:], ["FAILED a: S.wrong", "    a_test.cc:7", "    Expected 1, got 2", "0 passed, 1 failed"])

    def test_whole_output_is_in_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            kept = pathlib.Path(folder) / "kept"
            self.check({"a": self.shell("seq 1 5000; exit 3"),
                        "b": self.shell(f"cp \"$(dirname $0)/test-results/a.log\" {kept}")},
                       1, "1 passed, 1 failed", "FAILED a: exit status 3", "    | 5000", arguments=["--jobs", "1"])
            self.assertEqual(kept.read_text(encoding="utf-8"), "".join(f"{i}\n" for i in range(1, 5001)))

    def test_crash_names_the_test_that_ran(self):
        body = self.lines("[ RUN      ] S.first", "[       OK ] S.first (0 ms)", "[ RUN      ] S.wrong", "off by one",
                          "[  FAILED  ] S.wrong (0 ms)", "[ RUN      ] S.last", "a word before the end")
        self.check({"a": (body + "kill -11 $$\n", "")}, 1, "1 passed, 2 failed",
                   "FAILED a: killed by signal 11 in S.last", "    | a word before the end",
                   "FAILED a: S.wrong", "    | off by one")
        self.check({"a": (body + "exec sleep 60\n", "TIMEOUT 1")}, 1, "1 passed, 2 failed",
                   "FAILED a: exceeded 1 s in S.last")

    def test_time_limit_leaves_stacks(self):
        _, found = self.run_programs({"a": self.shell("sleep 60", "TIMEOUT 1")})
        expected = "stacks of process" if shutil.which("gdb") or shutil.which("eu-stack") else "no stacks:"
        self.assertIn(expected, "\n".join(found))

    def test_given_time_limit_replaces_those_of_programs(self):
        self.check({"a": self.shell("sleep 2", "TIMEOUT 1")}, 0, "1 passed, 0 failed", arguments=["--timeout", "60"])

    def test_ignored_sigchld_keeps_failures(self):
        previous = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        try:
            found = self.run_programs({"a": self.shell("exit 3")})[1]
        finally:
            signal.signal(signal.SIGCHLD, previous)
        self.assertIn("FAILED a: exit status 3", found)

    def test_nothing_a_program_started_is_left(self):
        with tempfile.TemporaryDirectory() as folder:
            number = pathlib.Path(folder) / "number"
            self.check({"a": self.shell(f"sleep 60 >/dev/null 2>&1 & echo $! > {number}")}, 0, "1 passed, 0 failed")
            for _ in range(500):  # the killed process may not have ended yet
                status = pathlib.Path(f"/proc/{number.read_text().strip()}/stat")
                if not status.exists() or status.read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] == "Z":
                    return
                time.sleep(0.02)
            self.fail("it still runs")

    def test_a_build_folder_that_everybody_can_write_is_taken_all_the_same(self):
        programs = {"a": self.shell('test "$MESHARD_TRUST_FILES" = 1')}
        self.assertEqual("1 passed, 0 failed", self.run_programs(programs, mode=0o777)[1][-1])

    def test_under_a_command(self):
        self.check({"a": self.shell('test "$ODD" = yes')}, 0, "1 passed, 0 failed", arguments=["--under", "env ODD=yes"])

    def test_temporary_folders(self):
        with tempfile.TemporaryDirectory() as folder:
            name = pathlib.Path(folder) / "name"
            self.check({"a": self.shell(f'test "$TMPDIR" = "$TEST_TMPDIR" && touch "$TMPDIR/x" && echo "$TMPDIR" > {name}')},
                       0, "1 passed, 0 failed")
            self.assertFalse(pathlib.Path(name.read_text(encoding="utf-8").strip()).exists())

    def test_names(self):
        programs = {"layout_test": self.gtest(("x", ""), ("y", "")), "mesh_test": self.gtest(("y", ""))}
        self.check(programs, 0, "2 passed, 0 failed", arguments=["layout"])
        self.check(programs, 0, "2 passed, 0 failed", arguments=["S.y"])
        self.check(programs, 1, "0 passed, 0 failed", arguments=["nothing"])
        self.check(programs, 0, "1 passed, 0 failed", arguments=["--only", "^mesh_test$"])

    def test_tests_of_another_entry_stay_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder) / "a"
            program.write_text('#!/bin/sh\n# --gtest_list_tests\necho "$@"\n')
            program.chmod(0o755)
            (pathlib.Path(folder) / "CTestTestfile.cmake").write_text(f'add_test(part "{program}" "--gtest_filter=-S.z")\n')
            subprocess.run([sys.executable, str(RUNNER), "--build", folder, "S.x"], check=False, capture_output=True)
            printed = (pathlib.Path(folder) / "test-results" / "part.log").read_text(encoding="utf-8")
        self.assertEqual(printed, "--gtest_filter=-S.z --gtest_filter=*S.x*-S.z\n")

    def test_nightly_compiles_like_a_users_program(self):
        settings = 'ENVIRONMENT "XLA_FLAGS=--level=0 --xla_cpu_use_fusion_emitters=false"'
        programs = {"a": self.shell('test "$XLA_FLAGS" = "$EXPECTED"', settings)}
        under = "env EXPECTED='--level=0 --xla_cpu_use_fusion_emitters=false'"
        with unittest.mock.patch.dict("os.environ"):
            for name in ("XLA_FLAGS", "MESHARD_NIGHTLY", "MESHARD_TEST_COMPILER"):
                os.environ.pop(name, None)
            self.check(programs, 0, "1 passed, 0 failed", arguments=["--under", under])
            for setting in ({"MESHARD_NIGHTLY": "1"}, {"MESHARD_TEST_COMPILER": "default"}):
                with unittest.mock.patch.dict("os.environ", setting):
                    self.check(programs, 0, "1 passed, 0 failed", arguments=["--under", "env EXPECTED="])


if __name__ == "__main__":
    unittest.main(verbosity=0)
