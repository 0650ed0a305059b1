#!/usr/bin/env python3
"""Finds everyday words where the field has a term ("the tensor lies on" for "is placed on"), and turns of phrase that
have to be read twice ("@error there is none; as above").

usage: check_words.py [FILE...]

Checks prose and code of the files, by default of all files of the project, for words; and pages and the library's
headers for phrases: dangling pronouns, ellipses, and things that act like people. Code in backticks and code blocks are
not prose. Prints `path:line: word: what to write`.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_files  # noqa: E402
import check_links  # noqa: E402

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
# What is matched in pages and in the comments of the library's headers, and what to write.
PHRASES = [
    (r"\bas above\b", "name it again"),
    (r"(?<!\bif )\bthere (?:is|are) none\b", 'say what is missing: "no mesh is set"'),
    (r"(?<!\bif it )(?<!\bif )\b(?:has|have) none(?=[.;,:)]| at all)", "say what it lacks"),
    (r"\b(?:is|are|was|were|be|being) asked\b", "is called, on request"),
    (r"(?<!\bwho )(?<!\byou )(?<!\bto )(?<!\bthey )(?<!\bwe )\bknows?\b(?! the secret| better)", "has, supports, contains, depends on"),
    (r"\b(?:takes?|thinks?|believes?) (?:itself|themselves)\b", "starts as, counts as"),
    (r"\b(?:is|are|was|were|be) laid\b(?! out)", "is sharded, has the sharding of"),
    (r"\b(?:is|are|was|were|be) (?:that|those) of\b", "equals, follows, comes from; or name it"),
    (r"\bwhoever\b|\bnobody has asked\b", "name who or what it is"),
    (r"\b(?:that|which|and|note|report|row) says so\b", "states this; or leave it out"),
    (r"(?:///? |\. )(?-i:As) (?:[\w:]+\(\)|``)[,;:]", "Like f()"),
    (r"///? (?-i:Of) (?:a|an|the|its|their) [^.]*:", "begin with the thing: \"For a loop, ...\""),
    (r"\bfor (?:itself|themselves)\b", "separately, alone"),
    (r"\b(?:for|by|with|of|into) so (?:many|few|long|much)\b", "for this time, into this number of"),
    (r"\b(?:nobody|somebody|everybody|anybody)\b", "no process, no user; or say it without them"),
]
PHRASE = re.compile("|".join(f"(?P<p{i}>{phrase})" for i, (phrase, _) in enumerate(PHRASES)), re.IGNORECASE)
PATTERN = re.compile("|".join(f"(?P<w{i}>{word})" for i, (word, _) in enumerate(WORDS)), re.IGNORECASE)
# Generated pages repeat the sources; these files list the words.
SKIPPED = ("third_party/", "tests/golden/", "docs/reference/", "docs/api/", "docs/python/", "tools/dev/check_words")
TEXTS = (".cc", ".h", ".inc", ".in", ".py", ".md", ".txt", ".cmake", ".js", ".css", ".html", ".json")


def prose_of(name, text):
    """Number and prose of the lines of a page that has no date, or of the comments of a header of the library."""
    if name.endswith(".md") and not name.startswith("docs/decisions/"):
        for number, line in check_links.prose(text):
            yield number, re.sub(r"`[^`]*`", "``", line)
    elif name.endswith(".h") and not name.startswith(("bench/", "examples/", "python/", "tests/", "tools/")):
        for number, line in enumerate(text.splitlines(), 1):
            comment = re.search(r"//.*", line)
            if comment:
                yield number, re.sub(r"`[^`]*`", "``", comment[0])


def problems_in(name, text):
    found = []
    for lines, pattern, table in ((enumerate(text.splitlines(), 1), PATTERN, WORDS), (prose_of(name, text), PHRASE, PHRASES)):
        for number, line in lines:
            for match in pattern.finditer(line):
                instead = table[int(match.lastgroup[1:])][1]
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
