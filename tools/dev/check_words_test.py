#!/usr/bin/env python3
"""Tests check_words.py."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_words  # noqa: E402


class Words(unittest.TestCase):
    def found(self, line):
        return [problem.split('"')[1] for problem in check_words.problems_in("a.md", f"\n{line}\n")]

    def test_everyday_words_are_found_with_their_line(self):
        self.assertEqual(check_words.problems_in("a.md", "x\nThe tensor lies on device 3.\n"),
                         ['a.md:2: "lies": is placed on, is stored in, is sharded'])
        for line, word in (("It was told.", "told"), ("The op stands in a loop.", "stands"), ("A Perceptron", "Perceptron"),
                           ("which is no conflict", "is no"), ("it has no form", "has no form")):
            self.assertEqual(self.found(line), [word])

    def test_terms_and_grammar_are_not(self):
        for line in ("There is no plugin.", "It is no longer needed.", "It lies within the extent.", "`...` stands for any lines.",
                     "as it stands for", "relies, understands, outlies", "layout"):
            self.assertEqual(self.found(line), [])


if __name__ == "__main__":
    unittest.main()
