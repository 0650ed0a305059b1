"""Tests what declarations.py reads from headers, which are written here."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import declarations  # noqa: E402


def header(body, title="// Sums."):
    return f"{title}\n#pragma once\n#include <vector>\n\nnamespace meshard {{\n\n{body}\n}}  // namespace meshard\n"


class Declarations(unittest.TestCase):
    def read(self, body, **more):
        return [(d.name, d.kind, d.comment, d.text) for d in declarations.read("a.h", header(body, **more))]

    def test_function_and_overload_share_a_comment(self):
        self.assertEqual(
            self.read("/// Adds.\n/// @error no.\nTensor add(In a,\n           In b = {});\nTensor add(In a);\n\nint hidden();\n"),
            [("add", "kFunction", "/// Adds.\n/// @error no.", "Tensor add(In a,\n           In b = {});"),
             ("add", "kFunction", "/// Adds.\n/// @error no.", "Tensor add(In a);")])

    def test_a_new_comment_ends_the_last(self):
        self.assertEqual([d[2] for d in self.read("/// One.\nint one();\n/// Two.\nint two();\n")],
                         ["/// One.", "/// Two."])

    def test_plain_comment_is_not_documentation(self):
        self.assertEqual(self.read("// Why.\nint one();\n"), [])

    def test_body_is_left_out(self):
        self.assertEqual(self.read("/// One.\ninline Range range(int a, int b = {}) {\n  return {a, b};\n}\n"),
                         [("range", "kFunction", "/// One.", "Range range(int a, int b = {});")])

    def test_operator(self):
        self.assertEqual([d[0] for d in self.read("/// Adds.\nTensor operator+(In a, In b);\nTensor& operator+=(Tensor& a, In b);\n")],
                         ["operator+", "operator+="])

    def test_types_and_values(self):
        found = self.read("/// Sizes.\nstruct Sizes {\n  int a = 0;  ///< one\n};\n/// A list.\nclass List {\n public:\n"
                          "  List() {}\n};\n/// Form.\nenum class Form {\n  kOne,\n};\n/// All.\ninline constexpr Whole whole{};\n")
        self.assertEqual([(d[0], d[1]) for d in found],
                         [("Sizes", "kType"), ("List", "kType"), ("Form", "kType"), ("whole", "kValue")])
        self.assertEqual(found[0][3], "struct Sizes {\n  int a = 0;  ///< one\n};")
        self.assertEqual(found[1][3], "class List;")

    def test_concept(self):
        self.assertEqual(self.read("/// An integer.\ntemplate <class T>\nconcept Number = std::integral<T>;\n"),
                         [("Number", "kType", "/// An integer.", "template <class T>\nconcept Number = std::integral<T>;")])

    def test_nested_namespace(self):
        text = header("/// A key.\nTensor key(int seed);\n").replace("namespace meshard", "namespace meshard::random")
        self.assertEqual([d.name for d in declarations.read("a.h", text)], ["random::key"])

    def test_title(self):
        self.assertEqual(declarations.read("a.h", header("/// One.\nint one();\n"))[0].title, "Sums.")
        text = header("/// One.\nint one();\n").removeprefix("// Sums.\n")
        self.assertEqual(declarations.read("a.h", text)[0].title, "")

    def test_a_declaration_without_an_end(self):
        with self.assertRaisesRegex(ValueError, "no end"):
            self.read("/// One.\nint one(int a,\n")


if __name__ == "__main__":
    unittest.main(verbosity=0)
