"""pages.py turns Markdown of code hosts into that of the site."""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import build_site  # noqa: E402
import pages  # noqa: E402


def converted(text, source="docs/dev/a.md", page="dev/a.md"):
    copies = set()
    return pages.convert(text, source, page, copies), copies


class Convert(unittest.TestCase):
    def test_a_code_block_keeps_only_its_language(self):
        text, _ = converted("x\n```cpp no-run\nint a;  // [b](c)\n```\n```text output\n- d\n```\n")
        self.assertEqual(text, "x\n\n```cpp\nint a;  // [b](c)\n```\n\n\n```text\n- d\n```\n\n")

    def test_a_list_has_an_empty_line_before_it_and_four_spaces_for_each_level(self):
        text, _ = converted("x\n- a\n  b\n  - c\n    d\n- e\n\nf\n")
        self.assertEqual(text, "x\n\n- a\n    b\n    - c\n        d\n- e\n\nf\n")

    def test_a_block_in_python_after_one_in_cpp_makes_tabs(self):
        text, _ = converted("x\n```cpp\nint a;\n```\n\n```python\nimport meshard\n\nb = 2\n```\n```text output\n1\n```\n")
        self.assertIn('=== "C++"\n\n\n    ```cpp\n    int a;\n    ```\n', text)
        self.assertIn('=== "Python"\n\n\n    ```python\n    import meshard\n\n    b = 2\n    ```\n', text)
        self.assertIn("\n```text\n1\n```\n", text)
        other, _ = converted("```cpp\nint a;\n```\n```python\nimport torch\n```\n")
        self.assertNotIn("===", other)
        alone, _ = converted("```cpp\nint a;\n```\n\nx\n\n```python\na = 1\n```\n")
        self.assertNotIn("===", alone)
        inside, _ = converted("````text\n```cpp\n```\n```python\n```\n````\n")
        self.assertNotIn("===", inside)

    def test_code_at_the_start_of_a_line_is_no_block(self):
        self.assertEqual(converted("```` ```cpp ```` blocks\n[a](b.md)\n[c](../../README.md)\n")[0],
                         "```` ```cpp ```` blocks\n[a](b.md)\n[c](../overview.md)\n")

    def test_numbers_keep_their_code(self):
        text, _ = converted("1. a\n   b\n2. c\n")
        self.assertEqual(text, "1. a\n    b\n2. c\n")

    def test_links_between_pages(self):
        self.assertEqual(converted("[a](b.md#c) [d](../concepts/e.md) [f](#g) [h](https://example.org/i)")[0],
                         "[a](b.md#c) [d](../concepts/e.md) [f](#g) [h](https://example.org/i)\n")

    def test_links_of_and_to_pages_outside_docs(self):
        self.assertEqual(converted("[a](docs/dev/b.md) [c](CONTRIBUTING.md)", "README.md", "overview.md")[0],
                         "[a](dev/b.md) [c](contributing.md)\n")
        self.assertEqual(converted("[a](../../README.md#b)")[0], "[a](../overview.md#b)\n")

    def test_other_files_are_copied(self):
        text, copies = converted("[a](../../examples/b/main.cc) [`c`](../report-schema.json) `[d](e)`")
        self.assertEqual(text, "[a](../files/examples/b/main.cc.txt) [`c`](../report-schema.json) `[d](e)`\n")
        self.assertEqual(copies, {"examples/b/main.cc", "docs/report-schema.json"})

    def test_guides_count_more_than_generated_pages_and_contributors_pages_are_not_searched(self):
        boosts = [pages.search_of(page)["boost"] for page in ("how-to/a.md", "guides/a.md", "concepts/a.md", "reference/a.md", "api/a.md")]
        self.assertEqual(boosts, sorted(boosts, reverse=True))
        for page in ("dev/testing.md", "decisions/a.md", "contributing.md"):
            self.assertEqual(pages.search_of(page), {"exclude": True})

    def test_a_flag_does_not_break(self):
        self.assertEqual(pages.unbroken("<code>--html</code> <code>a/b-c.h</code> <pre><code>-a\nb</code></pre>"),
                         '<code class="flag">--html</code> <code>a/b-c.h</code> <pre><code>-a\nb</code></pre>')

    def test_anchors_are_those_of_code_hosts(self):
        self.assertEqual(pages.slug("Jit, gradients & `all_reduce`!"), "jit-gradients--all_reduce")

    def test_a_section_lists_its_pages_by_title(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs/api").mkdir(parents=True)
            for name, title in (("README", "All"), ("a", "zeta"), ("b", "`Alpha`")):
                (root / f"docs/api/{name}.md").write_text(f"# {title}\n")
            self.assertEqual(pages.section("api", root), [{"Overview": "api/README.md"}, {"Alpha": "api/b.md"}, {"zeta": "api/a.md"}])

    def test_versions_are_listed_newest_first(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for version in ("0.9.0", "0.10.0", "0.2.0", "0.10.0"):
                build_site.add_version(folder, version)
            listed = json.loads((folder / "versions.json").read_text())
            self.assertEqual([each["version"] for each in listed], ["0.10.0", "0.9.0", "0.2.0"])
            self.assertEqual([each["aliases"] for each in listed], [["latest"], [], []])
            self.assertIn("url=0.10.0/index.html", (folder / "index.html").read_text())


if __name__ == "__main__":
    unittest.main(verbosity=0)
