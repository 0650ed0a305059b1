"""Tests each rule of check_files.py on a small tree that violates it."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_files  # noqa: E402


class CheckFiles(unittest.TestCase):
    def problems(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_bytes(text if isinstance(text, bytes) else text.encode())
            return check_files.check(root, sorted(files))

    def test_clean(self):
        self.assertEqual(self.problems({
            "meshard/a/b.cc": "int x;\n" * 600, "meshard/a/b_test.cc": "", "docs/a.png": b"\0",
            "third_party/h.h": "x\n" * 900, "README.md": "~/.cache/meshard and $HOME/project/x\n"}), [])

    def test_long_file(self):
        found = self.problems({"tools/a.cc": "int x;\n" * 601})
        self.assertEqual(len(found), 1)
        self.assertIn("tools/a.cc:601: 601 lines", found[0])

    def test_missing_test(self):
        found = self.problems({"meshard/a/b.cc": "", "meshard/a/c_test.cc": ""})
        self.assertEqual(found, ["meshard/a/b.cc:1: b_test.cc is not in the same folder"])

    def test_tested_elsewhere(self):
        text = "// Tested in tests/a_test.cc.\n"
        self.assertEqual(self.problems({"meshard/a/b.cc": text, "tests/a_test.cc": ""}), [])
        self.assertEqual(len(self.problems({"meshard/a/b.cc": text})), 1)

    def test_large_and_binary(self):
        self.assertIn("1,000,001 bytes", self.problems({"a.txt": "x" * 1_000_001})[0])
        self.assertIn("binary", self.problems({"a.so": b"\x7fELF\0"})[0])

    def test_names(self):
        for name in ("-/module.txt", "docs/a b.md", "tests/--help"):
            self.assertEqual(self.problems({name: "x\n"}), [f"{name}:1: invalid file name"])
        self.assertEqual(self.problems({".ci/run": "", "tests/a-b_c.1.md": ""}), [])

    def test_names_of_ops(self):
        text = '// Tested in meshard/a/b_test.cc.\nbool f(const Node& n) { return n.op().name == "slice"; }\n'
        files = {"meshard/a/b.cc": text, "meshard/a/b_test.cc": 'EXPECT_TRUE(n.op().name == "slice");\n'}
        self.assertEqual(len(self.problems(files)), 1)
        self.assertIn("meshard/a/b.cc:2: compare with the op's constant", self.problems(files)[0])
        files["meshard/a/b.cc"] = text.replace('.op().name == "slice"', '.op() == &slice_op')
        self.assertEqual(self.problems(files), [])

    def test_words(self):
        for text in ("// TO" "DO: later", "# FIX" "ME", "see /ro" "ot/.cache/x", "cd /wo" "rk/main",
                     "https://py" "pi.org/simple"):
            found = self.problems({"docs/a.md": "fine\n" + text + "\n"})
            self.assertEqual(len(found), 1, text)
            self.assertTrue(found[0].startswith("docs/a.md:2:"), found)


if __name__ == "__main__":
    unittest.main(verbosity=0)
