"""check_links.py finds dead files and anchors and pages that nothing lists, and ignores code."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_links  # noqa: E402


class CheckLinks(unittest.TestCase):
    def problems(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check_links.check(root)

    def test_good_links(self):
        self.assertEqual(self.problems({
            "README.md": "[a](docs/a.md) [b](docs/a.md#two-words) [c](https://example.org/x) [d](#top)\n# Top\n"
                         "`[not](a-link)`\n```cpp\nf[i](missing)\n```\n",
            "docs/a.md": "## Two `words`!\n[back](../README.md)\n"}), [])

    def test_dead_file(self):
        self.assertEqual(self.problems({"docs/a.md": "x\n[a](b.md)\n"}), ["docs/a.md:2: there is no b.md"])

    def test_dead_anchor(self):
        found = self.problems({"README.md": "[a](docs/a.md#nine)\n", "docs/a.md": "# Ten\n"})
        self.assertEqual(found, ["README.md:1: docs/a.md has no heading #nine"])

    def test_a_page_that_nothing_links_to(self):
        found = self.problems({"README.md": "[a](docs/a.md)\n", "docs/a.md": "[b](b.md)\n", "docs/b.md": "x\n", "docs/c.md": "[a](a.md)\n"})
        self.assertEqual(found, ["docs/c.md:1: no link leads here from README.md"])

    def test_a_page_outside_the_navigation(self):
        found = self.problems({"tools/site/mkdocs.yml": "nav:\n  - guides/a.md\n  - Decisions: []\n", "docs/guides/a.md": "x\n",
                               "docs/guides/b.md": "x\n", "docs/decisions/c.md": "x\n"})
        self.assertEqual(found, ["docs/guides/b.md:1: not in the navigation of tools/site/mkdocs.yml"])


if __name__ == "__main__":
    unittest.main(verbosity=0)
