#!/usr/bin/env python3
"""Finds everyday words where the field has a term: "the tensor lies on" for "is placed on".

usage: check_words.py [FILE...]

Checks prose and code of the files, by default of all files of the project, and prints `path:line: word: what to write`.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_files  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What is matched, and what to write.
WORDS = [
    (r"\btold\b", "reported; or name what it is"),
    (r"\b(?:lies?|lay)\b(?! within)", "is placed on, is stored in, is sharded"),
    (r"\bstands?\b(?! (?:for\b|as\b))", "appears, is"),
    (r"\bperceptrons?\b", "MLP"),
    (r"(?<!there )\bis no (?!longer\b|more\b|less\b|such\b)", "is not a, is invalid"),
    (r"\bhas no form\b", "cannot be represented, is unsupported"),
    (r"\bby wish\b", "explicitly"),
    (r"\bno name's\b|\bin a circle\b", "cyclic"),
]
PATTERN = re.compile("|".join(f"(?P<w{i}>{word})" for i, (word, _) in enumerate(WORDS)), re.IGNORECASE)
# Generated pages repeat the sources; these files list the words.
SKIPPED = ("third_party/", "tests/golden/", "docs/reference/", "docs/api/", "tools/dev/check_words")
TEXTS = (".cc", ".h", ".inc", ".in", ".py", ".md", ".txt", ".cmake", ".js", ".css", ".html", ".json")


def problems_in(name, text):
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for match in PATTERN.finditer(line):
            instead = WORDS[int(match.lastgroup[1:])][1]
            found.append(f'{name}:{number}: "{match.group().strip()}": {instead}')
    return found


def problems(names=None):
    if names is None:
        names = [name for name in check_files.listed_files(ROOT)
                 if (name.endswith(TEXTS) or name == "dev") and not name.startswith(SKIPPED) and "/corpus/" not in name]
    return [problem for name in names
            for problem in problems_in(name, (ROOT / name).read_text(encoding="utf-8", errors="replace"))]


if __name__ == "__main__":
    found = problems(sys.argv[1:] or None)
    print("\n".join(found))
    sys.exit(bool(found))
