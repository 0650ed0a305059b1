"""Lists in the guides that have to be complete: every error code is explained under a heading of its name."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Guides(unittest.TestCase):
    def test_every_error_code_is_explained(self):
        codes = re.findall(r'case ErrorCode::\w+: return "([^"]+)";', (ROOT / "meshard/base/error.cc").read_text(encoding="utf-8"))
        page = (ROOT / "docs/guides/troubleshooting.md").read_text(encoding="utf-8")
        explained = {name for heading in re.findall(r"^### (.+)$", page, re.MULTILINE) for name in heading.split(", ")}
        self.assertEqual(len(codes), 16)
        self.assertEqual(sorted(set(codes)), sorted(explained))


if __name__ == "__main__":
    unittest.main(verbosity=0)
