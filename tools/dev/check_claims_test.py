#!/usr/bin/env python3
"""Tests check_claims.py."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_claims  # noqa: E402
from check_claims import Claims, number, same  # noqa: E402


class OnePage(Claims):
    """Claims about one page, without sources."""

    def __init__(self, text):
        super().__init__("/nowhere")
        self.pages = {"docs/a.md": text}


class ClaimsOfPages(unittest.TestCase):
    def found(self, text, value, *phrases):
        claims = OnePage(text)
        claims.check("ops", value, *phrases)
        return claims.problems

    def test_another_number_is_a_problem_with_its_line(self):
        self.assertEqual(self.found("There are\n136 primitives.\n", 138, "<N> primitives"),
                         ["docs/a.md:2: ops: the page says 136, the code 138"])
        self.assertEqual(self.found("138 primitives; 138\nprimitives", 138, "<N> primitives"), [])

    def test_each_place_and_phrase_is_checked(self):
        self.assertEqual(len(self.found("2 ops, 3 ops, of 4 kinds", 5, "<N> ops", "of <N> kinds")), 3)

    def test_a_fact_that_no_page_states_is_a_problem(self):
        self.assertIn("no page states it", self.found("many ops", 138, "<N> primitives")[0])

    def test_numbers_in_all_forms(self):
        self.assertTrue(same("1,024", 1024) and same("twelve", 12) and same("3.5", 3.5))
        self.assertFalse(same("1,025", 1024) or same("eleven", 12))
        for text, value in (("20'000", 20000), ("1 << 20", 1 << 20), ("std::size_t{4} << 20", 4 << 20), ("60", 60)):
            self.assertEqual(number(text), value)

    def test_versions_may_be_shortened(self):
        self.assertTrue(same("0.12", "0.12.0.1") and same("0.12.0.1", "0.12.0.1"))
        self.assertFalse(same("0.1", "0.12.0.1") or same("0.13", "0.12.0.1") or same("0.12.0.1.2", "0.12.0.1"))

    def test_names_that_a_page_lacks(self):
        claims = OnePage("`one` and two")
        claims.check_list("kinds", "docs/a.md", ["one", "two"])
        self.assertEqual(claims.problems, ["docs/a.md:1: kinds: the page lacks `two`"])

    def test_a_row_of_the_readme_that_is_not_one_of_the_figures(self):
        claims = OnePage("")
        claims.pages = {"docs/performance.md": "| `a.b` | x | 1 | 2 |\n", "README.md": "| `a.b` | y | 1 | 2 |\n| `a.b` | y | 1 | 3 |\n| `a.c` | y | 1 | 2 |\n"}
        check_claims.check_measured_rows(claims)
        self.assertEqual([problem.partition(": docs")[0] for problem in claims.problems], ["README.md:2: `a.b`", "README.md:3: `a.c`"])


class TheProject(unittest.TestCase):
    def test_pages_agree_with_the_code(self):
        self.assertEqual(check_claims.check(check_claims.ROOT), [])

    def test_a_constant_that_is_gone_is_a_problem(self):
        with self.assertRaisesRegex(ValueError, "does not find"):
            Claims(check_claims.ROOT).found("dev", "kNoSuchConstant = (.*);")


if __name__ == "__main__":
    unittest.main()
