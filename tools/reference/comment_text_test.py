"""comment_text.py turns comments into Markdown."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import comment_text  # noqa: E402


class Comments(unittest.TestCase):
    def test_comments(self):
        for comment, prose, errors in (
                ("/// One.\n/// Two.", "One.\nTwo.", ""),
                ("/// One.\n///\n/// Two.", "One.\n\nTwo.", ""),
                ("/// One. @error it is\n/// two", "One.", "it is\ntwo"),
                ("/// One.\n/// @error a. @error b.", "One.", "a. b."),
                ("/// One.\n/// @pre sorted\n/// @param x a list\n/// of numbers\n/// @error none",
                 "One.\n\n- `x`: a list\nof numbers\n\nRequires: sorted", "none"),
                ("/// As\n///\n///     f(x)  // @error\n///       + 1\n///\n/// and so on.",
                 "As\n\n```cpp\nf(x)  // @error\n  + 1\n```\n\nand so on.", ""),
                ("/// As\n/// @code no-run\n/// f(x);\n///\n/// g(x);\n/// @endcode\n/// @error no.",
                 "As\n\n```cpp\nf(x);\n\ng(x);\n```", "no."),
                ("/// a * b, a*b, a< b, a <b> and `a*<b>`", "a * b, a\\*b, a< b, a \\<b> and `a*<b>`", "")):
            with self.subTest(comment):
                self.assertEqual(comment_text.markdown(comment), (prose, errors))


if __name__ == "__main__":
    unittest.main(verbosity=0)
