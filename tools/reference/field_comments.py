#!/usr/bin/env python3
"""Reads the comments of structs and of their members from headers.

usage: field_comments.py --root ROOT --out OUT.inc HEADER...

Writes one `{"MemoryUse.aliased", "The part of ..."},` for each member with a `///` comment, and one for each struct, in
the order of the names (of bytes). A comment belongs to the declaration that follows it, or with `///<` to the one
before it. Names in comments are written as
in Python: `CollectiveKind.kSend` for `CollectiveKind::kSend`.
"""

import argparse
import pathlib
import re
import sys

SCOPE = re.compile(r"^( *)(?:struct|class|enum class) (\w+)\b[^;]*\{$")


def names(declaration):
    """The names that a declaration of a member declares: `std::string from = {}, to = {}` declares two."""
    text = re.sub(r"=[^,;]*|\{[^{}]*\}", "", declaration)
    while re.search(r"<[^<>]*>", text):
        text = re.sub(r"<[^<>]*>", "", text)
    if "(" in text:
        found = re.search(r"(\w+)\(", text)
        return [found[1]] if found else []
    return re.findall(r"(\w+)(?=\s*[,;])", text)


def sentence(lines):
    """The text of a comment."""
    text = " ".join(" ".join(line.strip().removeprefix("///").split()) for line in lines)
    text = re.sub(r"^Value type: |@\w+ .*", "", text).strip()
    text = re.sub(r"\b(\w+)::(\w+)(\(\))?", r"\1.\2", text)
    text = re.sub(r"^[a-z]+(?= )", lambda word: word[0].capitalize(), text)
    return text if not text or text.endswith((".", "`", "...")) else text + "."


def read(text):
    """The comments of a header by name: `MemoryUse`, `MemoryUse.aliased`. The first of a name counts."""
    comments, scopes, comment, declaration = {}, [], [], ""
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("///"):
            comment.append(stripped)
            continue
        scope = SCOPE.match(line)
        if scope and not declaration:
            comments.setdefault(scope[2], sentence(comment))
            scopes.append((len(scope[1]), scope[2]))
            comment = []
        elif scopes and stripped.startswith("}") and len(line) - len(stripped) == scopes[-1][0]:
            scopes.pop()
            comment, declaration = [], ""
        elif scopes and len(line) - len(line.lstrip()) == scopes[-1][0] + 2 or declaration:
            declaration += " " + re.sub(r"//.*", "", stripped)
            ends = (")",) if re.match(r" MESHARD_\w*FIELDS", declaration) else (";", "{", "}")
            if not declaration.rstrip().endswith(ends):
                continue
            if after := re.search(r"///<(.*)", stripped):
                comment = comment or [after[1]]
            if comment:
                for name in names(declaration):
                    comments.setdefault(f"{scopes[-1][1]}.{name}", sentence(comment))
            comment, declaration = [], ""
        elif not stripped:
            comment = []
    return {name: comment for name, comment in comments.items() if comment}


def read_all(root, headers):
    """The comments of several headers."""
    comments = {}
    for header in headers:
        for name, comment in read((pathlib.Path(root) / header).read_text(encoding="utf-8")).items():
            comments.setdefault(name, comment)
    return comments


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--root", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("headers", nargs="+")
    arguments = parser.parse_args()
    comments = read_all(arguments.root, arguments.headers)
    rows = [f'{{"{name}", R"~({comments[name]})~"}},\n' for name in sorted(comments)]
    pathlib.Path(arguments.out).write_text("".join(rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
