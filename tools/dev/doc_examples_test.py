"""Tests which blocks doc_examples.py accepts as examples, and what it generates from them."""

import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import doc_examples  # noqa: E402

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost

PAGE = """# Title
```cpp
int x = 1;
```

```text output
...
2
```
```cpp no-run
#include <vector>
int main() {
  if (false) { return 3; }
}
```
```text
not code
```
"""

HEADER = """/// Adds.
/// @code
/// int y = 2;
///
/// y += 1;
/// @endcode
int add(int);
// @code not an example: two slashes
/// @code no-run
/// int z = 3;
/// @endcode
"""

ERROR_ONLY = """#pragma once
#include <stdexcept>
namespace meshard {
enum class ErrorCode { kNotFound };
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
  ErrorCode code() const { return ErrorCode::kNotFound; }
};
}
"""


class DocExamples(unittest.TestCase):
    def test_outputs_of_followed_commands_are_not_examples(self):
        page = "```sh run\necho 1\n```\n```text output\n1\n```\n"
        self.assertEqual(doc_examples.page_examples("p", page), [])
        with self.assertRaisesRegex(ValueError, "must directly follow"):
            doc_examples.page_examples("p", page.replace("sh run", "sh"))

    def test_page(self):
        first, second = doc_examples.page_examples(pathlib.Path("docs/a.md"), PAGE)
        self.assertEqual((first.line, first.text, first.run, first.output), (3, "int x = 1;", True, "...\n2"))
        self.assertEqual((second.line, second.run, second.output), (11, False, None))
        self.assertFalse(first.has_main())
        self.assertTrue(second.has_main())
        self.assertEqual(first.name(), "docs_a_md_line_3")

    def test_piece_of_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "a.cc").write_text("int a;\nint b;\nint c;\n")
            (root / "README.md").write_text("```cpp from a.cc\nint a;\nint b;\n```\n")
            self.assertEqual(doc_examples.collect(root), [])
            (root / "README.md").write_text("```cpp from a.cc\nint a;\nint c;\n```\n")
            with self.assertRaisesRegex(ValueError, "README.md:2: these lines are not in a.cc"):
                doc_examples.collect(root)

    def test_structs_of_a_block_of_their_own_are_pasted_before_the_next(self):
        declares = "```cpp\nstruct S {\n  int b;\n  MESHARD_FIELDS(b)\n};\n```\n"
        page = declares + "In a function:\n```cpp\nS s;\n```\n```cpp\nint c;\n```\n"
        first, second, third = doc_examples.page_examples("a.md", page)
        self.assertTrue(first.only_declares())
        self.assertIs(second.declared, first)
        self.assertIsNone(third.declared)
        self.assertIn("int b;", doc_examples.as_function(second, pathlib.Path("/r")).split("void run()")[0])
        with self.assertRaisesRegex(ValueError, "a.md:1: structs with MESHARD_FIELDS need a block of their own"):
            doc_examples.page_examples("a.md", declares.replace("};\n", "};\nS s;\n"))

    def test_header(self):
        first, second = doc_examples.header_examples(pathlib.Path("meshard/a.h"), HEADER)
        self.assertEqual((first.line, first.text, first.run), (3, "int y = 2;\n\ny += 1;", True))
        self.assertEqual((second.text, second.run), ("int z = 3;", False))

    def test_output_must_follow_an_example(self):
        with self.assertRaisesRegex(ValueError, "a.md:1: an output must directly follow an example"):
            doc_examples.page_examples(pathlib.Path("a.md"), "```text output\nx\n```\n")

    def test_unknown_mark(self):
        with self.assertRaisesRegex(ValueError, "a.md:1: `cpp norun`"):
            doc_examples.page_examples(pathlib.Path("a.md"), "```cpp norun\nx\n```\n")

    def test_lines_of_a_file(self):
        page = ("x\n```cpp file main.cc\nint a;\n```\n"
                "```python file a.py no-run\nimport meshard\n```\n```text output\n1\n```\n")
        [cpp], [python] = doc_examples.page_examples("p", page), doc_examples.python_examples("p", page)
        self.assertEqual((cpp.run, cpp.file, cpp.output), (True, "main.cc", "1"))
        self.assertEqual((python.run, python.file, python.output), (False, "a.py", "1"))
        self.assertIn('#line 1 "main.cc"', doc_examples.as_function(cpp, pathlib.Path("/root")))
        with self.assertRaisesRegex(ValueError, "p:2: `cpp file`"):
            doc_examples.page_examples("p", page.replace("file main.cc", "file"))

    def test_files_of_a_page(self):
        page = ("```python file a.py\nimport jax\n```\n```python\nimport meshard\n```\n"
                "```python file b.py\nimport jax\n```\n")
        [example] = doc_examples.python_examples("p", page)
        self.assertEqual(list(doc_examples.files_before(example, page)), [("a.py", "import jax\n")])

    def run_generated(self, page):
        """Builds and runs the generated program with only meshard's Error."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "meshard").mkdir()
            (root / "meshard" / "meshard.h").write_text(ERROR_ONLY)
            (root / "README.md").write_text(page)
            (root / "all.cc").write_text(doc_examples.generate(root))
            command = ["g++", "-std=c++20", "-O0", "-I", folder, "all.cc", "-lgtest", "-lgtest_main",
                       "-o", "all"]
            built = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8")
            if built.returncode != 0:
                return built.stderr
            return subprocess.run(["./all"], cwd=folder, capture_output=True, encoding="utf-8").stdout

    def test_generated_program(self):
        program = '#include <cstdio>\nint main() { std::printf("a\\nb\\n2\\n"); }'
        text = self.run_generated(
            f"```cpp\n{program}\n```\n```text output\na\n...\n2\n```\n"
            f"```cpp\n{program}\n```\n```text output\na\n2\n```\n"
            '```cpp\nint i = 7; if (i != 7) throw std::runtime_error("x");\n```\n'
            "```cpp\nstruct Two {\n  int two = 2;\n};\n```\n```cpp\nif (Two{}.two != 2) throw 0;\n```\n"
            '```cpp no-run\nthrow std::runtime_error("never run");\n```\n')
        self.assertIn("[  PASSED  ] 3 tests", text)
        self.assertIn("1 FAILED TEST", text)
        self.assertIn("DocExamples.README_md_line_11", text)

    def test_compiler_names_the_page(self):
        self.assertIn("README.md:3:", self.run_generated("```cpp\nint a = 1;\nint b = nothing;\n```\n"))


if __name__ == "__main__":
    unittest.main(verbosity=0)
