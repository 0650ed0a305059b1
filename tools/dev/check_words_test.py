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

    def test_phrases_that_have_to_be_read_twice_are_found(self):
        for line, phrase in (("@error as above", "as above"), ("Where there are none, ...", "there are none"), ("It has none.", "has none"),
                             ("it is asked for it", "is asked"),  ("The plugin knows it", "knows"),
                             ("each takes itself for the only one", "takes itself"), ("was laid like it", "was laid"),
                             ("The values are those of a vector", "are those of"), ("a note says so", "note says so"),
                             ("each has it for itself", "for itself"), ("silent for so long", "for so long"),
                             ("which nobody reads", "nobody")):
            self.assertIn(phrase, self.found(line))
            self.assertIn(phrase, [problem.split('"')[1] for problem in check_words.problems_in("a.h", f"/// {line}\n")])

    def test_comments_begin_with_the_thing(self):
        for line, phrase in (("As save(), in the background.", "/// As save(),"), ("Of a loop: its count.", "/// Of a loop:")):
            self.assertIn(phrase, [problem.split('"')[1] for problem in check_words.problems_in("a.h", f"/// {line}\n")])
        for line in ("the sum of a loop: its count", "As save() does, it writes.", "Of all programs, the first."):
            self.assertEqual(check_words.problems_in("a.h", f"/// {line}\n"), [])

    def test_code_and_other_files_are_not_searched_for_phrases(self):
        line = "The module knows it, as above.\n"
        self.assertEqual(check_words.problems_in("docs/decisions/a.md", line), [])
        self.assertEqual(check_words.problems_in("a.md", f"```\n{line}```\n`{line[:-1]}`\n"), [])
        self.assertEqual(check_words.problems_in("a.h", f"int x = 1;  {line}"), [])
        for line in ("nullptr if there is none", "empty if it has none.", "for those who know JAX", "prove that they know the secret",
                     "is laid out in rows", "the sum of those of x and y"):
            self.assertEqual(self.found(line), [])


if __name__ == "__main__":
    unittest.main()
