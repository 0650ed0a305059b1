"""run_page.py follows a page, and detects its errors."""

import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import run_page  # noqa: E402

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost

SCRIPT = pathlib.Path(__file__).resolve().parent / "run_page.py"


def follow(page):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "page.md"
        path.write_text(page)
        return subprocess.run([sys.executable, SCRIPT, path], capture_output=True, encoding="utf-8")


class RunPage(unittest.TestCase):
    def test_files_commands_and_outputs(self):
        done = follow("```text file a/b.txt\none\ntwo\n```\n```sh run\ncat a/b.txt; echo 12 s\n```\n"
                      "\n```text output\n...\ntwo\n... s\n```\n```sh\nfalse\n```\n")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stdout.strip().split("\n")[-1], "2 passed, 0 failed")

    def test_a_wrong_output_fails(self):
        done = follow("```sh run\necho one\n```\n```text output\ntwo\n```\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the page expects\ntwo", done.stdout)
        self.assertIn("0 passed, 1 failed", done.stdout)

    def test_a_failing_command_fails_and_ends_the_page(self):
        done = follow("```sh run\nfalse\ntrue\n```\n```sh run\necho not reached\n```\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("it ended with 1, not 0", done.stdout)
        self.assertNotIn("not reached", done.stdout)

    def test_an_expected_status(self):
        page = "```sh run exit 3\necho why >&2; exit 3\n```\n```text output\nwhy\n```\n"
        self.assertEqual(follow(page).returncode, 0)
        self.assertEqual(follow(page.replace("exit 3\n`", "exit 2\n`")).returncode, 1)

    def test_needs(self):
        done = follow("<!-- needs false -->\n```sh run\nfalse\n```\n")
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stdout.strip().split("\n")[-1], "0 passed, 0 failed, 1 skipped")
        self.assertEqual(follow("<!-- needs true -->\n```sh run\nfalse\n```\n").returncode, 1)

    def test_a_file_outside_is_refused(self):
        self.assertIn("outside", follow("```text file ../x\n```\n").stdout)

    def test_unknown_words(self):
        with self.assertRaisesRegex(ValueError, "sh run"):
            run_page.read_steps("p", "```sh run twice\n```\n")

    def test_patterns(self):
        self.assertTrue(run_page.matches("a\n...\nb", "a\nb\n"))
        self.assertTrue(run_page.matches("a ... c", "a bb c"))
        self.assertFalse(run_page.matches("a\n...\nb", "a\nc\n"))
        self.assertFalse(run_page.matches("a.c", "abc"))


if __name__ == "__main__":
    unittest.main()
