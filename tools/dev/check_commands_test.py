#!/usr/bin/env python3
"""Tests check_commands.py."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_commands  # noqa: E402

PROGRAM = """#!/bin/sh
[ "$1" = torus ] || [ "$1" = --help ] || exit 2
echo "--shape TEXT  --no-picture"
"""


class Commands(unittest.TestCase):
    def problems(self, text):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "bin").mkdir()
            (root / "bin/meshard").write_text(PROGRAM)
            (root / "bin/meshard").chmod(0o755)
            (root / "dev").write_text("cmd_test() {\n}\n  --serve\n")
            (root / "tool.py").write_text("--seed")
            (root / "README.md").write_text(text)
            return check_commands.check(root, root / "bin")

    def test_options_and_subcommands_that_exist(self):
        page = ("```sh\n./dev test   # all\n\nbuild/bin/meshard torus v5e:2x2 \\\n  --shape 4 --no-picture\n```\n"
                "`meshard torus --shape 4`\n`meshard torus --shape 4 -- other --rate 3`\n")
        self.assertEqual(self.problems(page), ([], 4))

    def test_those_that_do_not(self):
        for command, problem in (("meshard tours v5e:2x2", "meshard has no subcommand tours"),
                                 ("A=1 meshard torus --shapes 4", "meshard has no option --shapes"),
                                 ("meshard torus --no", "meshard has no option --no"),
                                 ("mpirun -n 2 --bind-to none meshard torus --x", "meshard has no option --x"),
                                 ("true && ./dev tset", "./dev has no command tset"),
                                 ("python a/tool.py", "there is no a/tool.py"),
                                 ("python tool.py --sed 3", "tool.py has no option --sed")):
            self.assertEqual(self.problems(f"text\n```sh\ncd x\n{command}\n```\n")[0], [f"README.md:4: {problem}"])
        self.assertEqual(self.problems("\nWith `./dev sit` or\n`meshard torus --shap 3`.\n")[0],
                         ["README.md:2: ./dev has no command sit", "README.md:3: meshard has no option --shap"])

    def test_lines_after_continued_ones(self):
        page = "```sh\nmeshard torus \\\n  --shape 4\nmeshard tours\n```\n"
        self.assertEqual(self.problems(page)[0], ["README.md:4: meshard has no subcommand tours"])


if __name__ == "__main__":
    unittest.main()
