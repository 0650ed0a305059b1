#!/usr/bin/env python3
"""Writes docs/api: every public name of the public headers, its header, and the first sentence of its comment.

usage: api_index.py [--root ROOT] [--check] [FOLDER]

Public are the headers that are installed: those under meshard/ that are neither in a folder `internal` nor of tests.
Names are those at the level of a namespace, but for namespaces `internal` and `detail`, and the macros; members
belong to their class. A name that has no comment of its own has that of the declaration above it, as in the op
reference. --check writes nothing, names each page that is not current, and ends with 1 if there is one.
Relies on the project's format: what belongs to a namespace starts in the first column.
"""

import argparse
import pathlib
import re
import sys

HIDDEN = {"internal", "detail"}
TYPE = re.compile(r"(?:struct|class|enum class|union)\s+(?:\[\[\w+\]\]\s+)?(\w+)\b(?!\s*<)")
ALIAS = re.compile(r"using\s+(\w+)\s*=")
CONCEPT = re.compile(r"concept\s+(\w+)\s*=")
VALUE = re.compile(r"(?:inline |static )*(?:constexpr|constinit|const|extern|inline)\b[^({=;]*?\b(\w+)(?:\[\])?\s*(?:=|\{|;)")
FUNCTION = re.compile(r"\b(operator\s*(?:\(\)|[^\s\w(]+|\"\"\s*\w+)|\w+)\s*\(")


class Name:
    """One row: a public name and where it is declared."""

    def __init__(self, name, kind, header, sentence):
        self.name, self.kind, self.header, self.sentence = name, kind, header, sentence


def public_headers(root):
    """Paths relative to `root`, in order."""
    return [str(path.relative_to(root)) for path in sorted((root / "meshard").rglob("*.h"))
            if "internal" not in path.parts and "_test" not in path.name]


def first_sentence(comment):
    """The first sentence of a comment's lines, without the marks of Doxygen."""
    words = []
    for line in comment:
        text = line.removeprefix("///").removeprefix("<").strip()
        if not text or text.startswith(("@", "```")):
            break
        words.append(text)
    text = re.sub(r"\s@\w+ .*", "", " ".join(words))
    # A period ends a sentence if a capital, a backtick or nothing follows it; `e.g. X` and `1.5` do not.
    match = re.match(r"(.*?[^.\s][.:])(?=\s+[A-Z`\[({]|$)", text)
    return (match[1] if match else text).rstrip(":")


def without_marks(name):
    return name.replace("_", "").lower()


def statements(text):
    """(namespaces around it, comment lines, text) of each declaration at the level of a namespace."""
    lines, scopes, comment, fresh, i = text.splitlines(), [], [], True, 0
    while i < len(lines):
        line = lines[i]
        opened = re.match(r"(?:inline )?namespace ([\w:]*)\s*\{", line)
        if opened:
            scopes.append(opened[1])
            comment = []
        elif line.startswith("}") and scopes and ("namespace" in line or line == "}"):
            scopes.pop()
        elif line.startswith("///"):
            comment = comment + [line] if not fresh else [line]
            fresh = False
        elif not line.strip() or line.startswith("//"):
            comment, fresh = [], True
        elif line.startswith("#"):
            define = re.match(r"#define (\w+)", line)
            if define:
                yield None, comment, line
            while line.endswith("\\"):
                i += 1
                line = lines[i]
            comment, fresh = [], True
        elif not line[0].isspace() and scopes:
            end = statement_end(lines, i)
            yield scopes, comment, "\n".join(lines[i:end])
            i, fresh = end - 1, True
        i += 1


def statement_end(lines, first):
    """Index after the last line of the statement that begins at `first`."""
    depth, seen_brace = 0, False
    for i in range(first, len(lines)):
        code = re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'', '""', re.sub(r"//.*", "", lines[i]))
        seen_brace = seen_brace or "{" in code
        depth += sum(code.count(each) for each in "{(") - sum(code.count(each) for each in "})")
        done = code.rstrip()
        if depth <= 0 and (done.endswith(";") or (seen_brace and done.endswith("}"))):
            return i + 1
    return len(lines)


def without_template(text):
    """The declaration without `template <...>` and requirements in front of it."""
    text = re.sub(r"//.*", "", text)
    while match := re.match(r"template\s*<", text):
        depth, i = 1, match.end()
        while i < len(text) and depth:
            depth += {"<": 1, ">": -1}.get(text[i], 0)
            i += 1
        text = text[i:].lstrip()
    if text.startswith("requires"):
        depth = 0
        for i, char in enumerate(text):
            depth += {"(": 1, ")": -1}.get(char, 0)
            if char == ")" and depth == 0 and not re.match(r"\s*(&&|\|\|)", text[i + 1:]):
                return text[i + 1:].lstrip()
    return text


def classify(text):
    """(name, kind); None for what declares nothing of its own: specializations, friends, forward declarations."""
    if define := re.match(r"#define (\w+)", text):
        return define[1], "macro"
    if re.match(r"template\s*<\s*>", text):
        return None
    text = re.sub(r"\[\[\w+\]\]\s*", "", without_template(text))
    for pattern, kind in ((ALIAS, "type"), (CONCEPT, "concept")):
        if match := pattern.match(text):
            return match[1], kind
    if match := TYPE.match(text):
        return None if re.match(r"(?:struct|class)\s+\w+;", text) else (match[1], "type")
    if re.match(r"(static_assert|using namespace|MESHARD_|extern template)", text):
        return None
    head = text.split("{")[0]
    value = VALUE.match(text)
    if value and "(" not in head.split("=")[0]:
        return value[1], "value"
    match = FUNCTION.search(head)
    return (re.sub(r"\s", "", match[1]) if match else None, "function") if match else None


def names_of(header, text):
    """The public names of one header, each once, in the order of the header."""
    found = {}
    title = re.match(r"// (.+\.)$", text.split("\n", 1)[0])
    for scopes, comment, declaration in statements(text):
        if scopes is not None and HIDDEN & set("::".join(scopes).split("::")):
            continue
        named, sentence = classify(declaration), first_sentence(comment)
        if named and not sentence and title and without_marks(named[0]) == without_marks(pathlib.PurePath(header).stem):
            sentence = first_sentence([title[1]])  # the header is about this name
        if named is None or (named[1] == "macro" and not sentence):
            continue
        scope = "::".join(part for part in "::".join(scopes or []).split("::")[1:] if part)
        name = f"{scope}::{named[0]}" if scope else named[0]
        if name not in found:
            found[name] = Name(name, named[1], header, sentence)
        elif not found[name].sentence:
            found[name].sentence = sentence
    return [each for each in found.values() if not each.name.endswith("_")]


def read(root):
    """Folder -> its names, by header."""
    folders = {}
    for header in public_headers(root):
        folder = header.split("/")[1] if header.count("/") > 1 else "meshard"
        names = names_of(header, (root / header).read_text(encoding="utf-8"))
        folders.setdefault(folder, []).extend(names)
    return {folder: names for folder, names in folders.items() if names}


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;") if "`" not in text else text.replace("|", "\\|")


def folder_page(folder, names):
    """The page of one folder: a table of the names, in alphabetical order without regard to case."""
    lines = [f"# API: {folder}", "", "Written by `./dev docs` from the public headers; edit those. "
             f"[All folders](README.md), [what the folder is for](../concepts/{folder}.md).", "",
             "| name | | kind | header |", "|---|---|---|---|"]
    for each in sorted(names, key=lambda name: (name.name.lower(), name.header)):
        lines.append(f"| `{each.name.replace('|', chr(92) + '|')}` | {cell(each.sentence)} | {each.kind} | `{each.header.removeprefix('meshard/')}` |")
    return "\n".join(lines) + "\n"


def pages(root):
    """File name -> text."""
    folders = read(root)
    out = {}
    for folder, names in folders.items():
        text = folder_page(folder, names)
        if not (root / f"docs/concepts/{folder}.md").is_file():
            text = text.replace(f", [what the folder is for](../concepts/{folder}.md)", "")
        out[f"{folder}.md"] = text
    total = sum(len(names) for names in folders.values())
    lines = ["# API index", "",
             "Every public name of the public headers, with its header and the first sentence of its comment. Written by `./dev docs` from the",
             "headers; edit those. The comments in the headers have the whole contract: shapes, preconditions, errors. All names are in the namespace",
             "`meshard`. `<meshard/meshard.h>` includes what programs need, `<meshard/core.h>` what they need to compute. For the ops, the [op reference](../reference/README.md) has more.", "",
             f"{total:,} names in {len(folders)} folders:", "", "| folder | names | headers |", "|---|---|---|"]
    for folder, names in sorted(folders.items()):
        lines.append(f"| [{folder}]({folder}.md) | {len(names)} | {len({each.header for each in names})} |")
    out["README.md"] = "\n".join(lines) + "\n"
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    arguments = parser.parse_args()
    folder = arguments.folder or arguments.root / "docs/api"
    wanted = pages(arguments.root)
    present = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")} if folder.is_dir() else {}
    stale = sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))
    if arguments.check:
        for name in stale:
            print(f"{folder / name}: not what the headers say (./dev docs)")
        return 1 if stale else 0
    folder.mkdir(parents=True, exist_ok=True)
    for name in stale:
        (folder / name).write_text(wanted[name], encoding="utf-8") if name in wanted else (folder / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
