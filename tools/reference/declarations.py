#!/usr/bin/env python3
"""Reads the public functions and types from op headers.

usage: declarations.py --root ROOT --out OUT.inc HEADER...

Writes one `{name, kind, header, title, comment, prose, errors, text},` for each declaration at namespace level that has
a `///` comment, in the order of the given headers (paths relative to ROOT). Consecutive declarations without an empty line
share the comment above the first one. `prose` and `errors` are the comment as Markdown (comment_text.py). `title` is the first `//` line of the header, if there is one. Relies on the
project's format: namespaces are not indented, and their members start in the first column.
"""

import argparse
import pathlib
import re
import sys

import comment_text

TYPE = re.compile(r"^(?:struct|class|enum class|using|concept)\s+(\w+)")
FUNCTION = re.compile(r"\b(operator\s*\S+?|\w+)\(")
VALUE = re.compile(r"^inline constexpr\s+\S+\s+(\w+)")


class Declaration:
    """One declaration: its text without function bodies, and the comment that it shares. A value type."""

    def __init__(self, name, kind, header, title, comment, text):
        self.name, self.kind, self.header, self.title = name, kind, header, title
        self.comment, self.text = comment, text


def statement_end(lines, first):
    """The index after the last line of the statement that begins at `first`."""
    depth, seen_brace = 0, False
    for i in range(first, len(lines)):
        code = re.sub(r"//.*", "", lines[i])
        seen_brace = seen_brace or "{" in code
        depth += code.count("{") - code.count("}")
        depth += code.count("(") - code.count(")")
        if depth == 0 and (code.rstrip().endswith(";") or (seen_brace and code.rstrip().endswith("}"))):
            return i + 1
    raise ValueError(f"line {first + 1}: the declaration has no end: {lines[first]}")


def without_body(text):
    """A function's declaration, which ends with a semicolon."""
    depth = 0
    for i, char in enumerate(text):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "{" and depth == 0:
            return text[:i].rstrip() + ";"
    return text


def classify(text):
    """Name, kind and printed text of a declaration."""
    if match := TYPE.match(re.sub(r"^template <[^>]*>\s*", "", text)):
        # The comment of a class describes its use; only readers of the header need its body.
        shown = f"class {match[1]};" if text.startswith("class") else text
        return match[1], "kType", shown
    if match := VALUE.match(text):
        return match[1], "kValue", text
    shown = without_body(re.sub(r"^inline ", "", text))
    match = FUNCTION.search(re.sub(r"^template <[^>]*>\s*", "", shown))
    return (match[1].replace(" ", "") if match else None), "kFunction", shown


def read(header, text):
    """The documented declarations of one header."""
    lines = text.splitlines()
    before_pragma = [line for line in lines[: lines.index("#pragma once")] if line.startswith("// ")]
    title = before_pragma[0][3:] if before_pragma else ""
    found, comment, i = [], [], 0
    inside, fresh, scope = False, True, ""
    while i < len(lines):
        line = lines[i]
        if match := re.match(r"namespace meshard(?:::(\w+))? \{", line):
            inside, scope = True, f"{match[1]}::" if match[1] else ""
        elif line.startswith("}  // namespace"):
            inside = False
        elif not inside:
            pass
        elif line.startswith("///"):
            if fresh:
                comment, fresh = [], False
            comment.append(line)
        elif not line.strip() or line.startswith("//"):
            comment, fresh = [], True
        elif line[0].isspace() or line.startswith(("#", "}")):
            raise ValueError(f"{header}:{i + 1}: this line does not belong to a declaration: {line}")
        else:
            end = statement_end(lines, i)
            name, kind, shown = classify("\n".join(lines[i:end]))
            if name is None and not line.startswith("template <>"):
                raise ValueError(f"{header}:{i + 1}: neither function nor type: {line}")
            if name and comment:
                found.append(Declaration(scope + name, kind, header, title, "\n".join(comment), shown))
            i, fresh = end - 1, True
        i += 1
    return found


def raw(text):
    return f'R"~({text})~"'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--root", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("headers", nargs="+")
    arguments = parser.parse_args()
    rows = []
    try:
        for header in arguments.headers:
            for d in read(header, (pathlib.Path(arguments.root) / header).read_text(encoding="utf-8")):
                prose, errors = comment_text.markdown(d.comment)
                rows.append(f"{{{raw(d.name)}, DeclarationKind::{d.kind}, {raw(d.header)}, {raw(d.title)},\n"
                            f"{raw(d.comment)},\n{raw(prose)},\n{raw(errors)},\n{raw(d.text)}}},\n")
    except ValueError as error:
        print(f"declarations: {error}", file=sys.stderr)
        return 1
    pathlib.Path(arguments.out).write_text("".join(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
