#!/usr/bin/env python3
"""Writes docs/api: every public name of the public headers, its declaration, its header, and the first sentence of its comment.

usage: api_index.py [--root ROOT] [--check] [FOLDER]

Public are the headers that are installed: those under meshard/ that are neither in a folder `internal` nor of tests.
Names are those at the level of a namespace, but for namespaces `internal` and `detail`, and the macros; members
belong to their class. A name that has no comment of its own has that of the declaration above it, as in the op
reference; a comment may also follow the first line of a declaration (`///<`). A name without a comment is an error.
--check writes nothing, names each page that is not current, and ends with 1 if there is one.
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
    """A public name: where it is declared, and the declarations of its overloads."""

    def __init__(self, name, kind, header, sentence, line):
        self.name, self.kind, self.header, self.sentence, self.line = name, kind, header, sentence, line
        self.declarations = []


def public_headers(root):
    """Paths relative to `root`, in order."""
    return [str(path.relative_to(root)) for path in sorted((root / "meshard").rglob("*.h"))
            if "internal" not in path.parts and "_test" not in path.name]


ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|et al|cf|vs|no|approx|[A-Z])\.$")


def sentence_end(text):
    """Index after the first sentence of `text`.

    It ends at a period outside of parentheses and code, which a capital, a backtick, a bracket or nothing follows.
    """
    depth, code = 0, False
    for i, char in enumerate(text):
        if char == "`":
            code = not code
        elif code:
            continue
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth = max(depth - 1, 0)  # a range such as [0, 1)
        elif char == "." and depth == 0 and text[i - 1:i] not in ("", ".", " ") and \
                re.match(r"\s+[A-Z`\[({]|\s*$", text[i + 1:]) and not ABBREVIATION.search(text[:i + 1]):
            return i + 1
    return len(text)


def first_sentence(comment):
    """The first sentence of a comment's lines, without the marks of Doxygen."""
    words = []
    for line in comment:
        text = line.removeprefix("///").removeprefix("<").strip()
        if not text or text.startswith(("@", "```")):
            break
        words.append(text)
    text = re.sub(r"\s@\w+ .*", "", " ".join(words))
    return text[:sentence_end(text)].rstrip(":")


def without_marks(name):
    return name.replace("_", "").lower()


def statements(text):
    """(namespaces around it, comment lines, text, line number) of each declaration at the level of a namespace."""
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
                yield None, comment, line, i + 1
            while line.endswith("\\"):
                i += 1
                line = lines[i]
            comment, fresh = [], True
        elif not line[0].isspace() and scopes:
            end = statement_end(lines, i)
            head = line if not line.startswith("template") else "\n".join(lines[i:i + 2])
            after = re.search(r"///<.*", head)
            yield scopes, [after[0]] if after else comment, "\n".join(lines[i:end]), i + 1
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
    if re.match(r"template\s*<\s*>", text) or re.match(r"enum class \w+;", text):
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
    if match and re.search(r"\w::$", head[:match.start()]):
        return None  # a member, defined outside of its class
    return (re.sub(r"\s", "", match[1]) if match else None, "function") if match else None


MEMBER = re.compile(r"^  (?!using|friend|static|return|explicit|MESHARD_|//)[\w:][^()]*?\w(?:\[\])?(?:\s*=\s*[^;]*|\{[^;]*\})?;", re.MULTILINE)
LONGEST_VALUE = 3  # lines of a constant or macro that are shown


def members_of(text):
    """The data members of a struct, each with its comments, as they are in the header."""
    lines, found, comment = text.split("\n"), [], []
    for line in lines[1:]:
        if line.startswith("  ///"):
            comment.append(line)
        elif MEMBER.match(line + "\n"):
            found += [*comment, line]
            comment = []
        else:
            comment = []
    return found


def shown(text, kind):
    """A declaration as the index shows it: a function without its body, a struct with its data members only."""
    first, *rest = text.split("\n", 2 if text.startswith("template") else 1)
    text = re.sub(r"[ \t]*///<[^\n]*", "", "\n".join([first, *rest[:-1]])) + "".join("\n" + each for each in rest[-1:])
    if kind == "macro":
        return text.removesuffix("\\").rstrip()
    lines = text.split("\n")
    if kind == "value":
        return text if len(lines) <= LONGEST_VALUE else text.split("=")[0].split("{")[0].rstrip() + ";"
    if kind == "concept" or text.startswith("using") or re.search(r"^(?:template <.*>\s*)?using\b", text):
        return text
    if re.match(r"enum class", text):
        return text
    if kind == "type":
        head = text[:body_start(text)].rstrip()
        members = members_of(text) if re.search(r"^(?:template.*\n?)?struct\b", text) else []
        return head + (" {\n" + "\n".join(members) + "\n};" if members else ";")
    start = body_start(text)
    text = text if start is None else text[:start].rstrip() + ";"
    return re.sub(r"\)\s*:\s[^;]*;$", ");", re.sub(r"^inline |^(template <[^\n]*>\n)inline ", lambda m: m[1] or "", text))


def body_start(text):
    """Index of the brace that opens the body of a function or class; None without one."""
    depth = angles = 0
    for i, char in enumerate(text):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "{" and depth == 0:
            return i
        if char == ";" and depth == 0 and not angles:
            return None
    return None


def names_of(header, text):
    """The public names of one header, each once, in the order of the header."""
    found = {}
    title = re.match(r"// (.+\.)$", text.split("\n", 1)[0])
    for scopes, comment, declaration, line in statements(text):
        if scopes is not None and HIDDEN & set("::".join(scopes).split("::")):
            continue
        named, sentence = classify(declaration), first_sentence(comment)
        if named and not sentence and title and without_marks(named[0]) == without_marks(pathlib.PurePath(header).stem):
            sentence = first_sentence([title[1]])  # the header is about this name
        if named is None or (named[1] == "macro" and not sentence):
            continue
        scope = "::".join(part for part in "::".join(scopes or []).split("::")[1:] if part)
        name = f"{scope}::{named[0]}" if scope else named[0]
        if name.endswith("_"):
            continue
        each = found.setdefault(name, Name(name, named[1], header, sentence, line))
        result = re.match(r"(\w+) \w+\(", declaration)  # a struct of results describes its function
        each.sentence = each.sentence or sentence or (found[result[1]].sentence if result and result[1] in found else "")
        each.declarations.append(shown(declaration, named[1]))
    return list(found.values())


def undocumented(folders):
    """A line for each name without a comment."""
    return [f"{each.header}:{each.line}: {each.name} has no comment: its first sentence is missing in docs/api"
            for names in folders.values() for each in names if not each.sentence]


def read(root):
    """Folder -> its names, by header."""
    folders = {}
    for header in public_headers(root):
        folder = header.split("/")[1] if header.count("/") > 1 else "meshard"
        names = names_of(header, (root / header).read_text(encoding="utf-8"))
        folders.setdefault(folder, []).extend(names)
    return {folder: names for folder, names in folders.items() if names}


SOURCE = "\n<!-- Written by `./dev docs` from the public headers; edit those. -->\n"


def prose(text):
    """Text as Markdown: outside of code, `<`, `*` and `_` are no marks."""
    parts = text.split("`")
    for i in range(0, len(parts), 2):
        parts[i] = re.sub(r"(?<=\S)\*|\*(?=\S)", r"\\*", parts[i].replace("<", "&lt;"))
    return "`".join(parts)


def folder_page(folder, names):
    """The page of one folder: a section for each header, with its names in the order of the header."""
    lines = [f"# API: {folder}", "", f"{len(names):,} names. [All folders](README.md), "
             f"[what the folder is for](../concepts/{folder}.md)."]
    header = None
    for each in names:
        if each.header != header:
            header = each.header
            lines += ["", f"## `{header}`"]
        lines += ["", f"### `{each.name}`", "", prose(each.sentence), "", "```cpp", *each.declarations, "```"]
    return "\n".join(lines) + "\n" + SOURCE


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
             "Every public name of the public headers: its declaration and the first sentence of its comment. The comments in the headers",
             "have the whole contract: shapes, preconditions, errors. All names are in the namespace `meshard`. `<meshard/meshard.h>`",
             "includes what programs need, `<meshard/core.h>` what they need to compute. For the ops, the [op reference](../reference/README.md)",
             "has more; the names in Python are in the [Python reference](../python/README.md).", "",
             f"{total:,} names in {len(folders)} folders:", "", "| folder | names | headers |", "|---|---|---|"]
    for folder, names in sorted(folders.items()):
        lines.append(f"| [{folder}]({folder}.md) | {len(names)} | {len({each.header for each in names})} |")
    out["README.md"] = "\n".join(lines) + "\n" + SOURCE
    return out


def write_pages(wanted, folder, check_only, source):
    """Makes a folder's pages those of `wanted`, a text by name. With `check_only`, prints instead which ones differ from
    what `source` says. The exit status."""
    present = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")} if folder.is_dir() else {}
    stale = sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))
    if check_only:
        for name in stale:
            print(f"{folder / name}: not what {source} say (./dev docs)")
        return 1 if stale else 0
    folder.mkdir(parents=True, exist_ok=True)
    for name in stale:
        (folder / name).write_text(wanted[name], encoding="utf-8") if name in wanted else (folder / name).unlink()
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    arguments = parser.parse_args()
    folder = arguments.folder or arguments.root / "docs/api"
    missing = undocumented(read(arguments.root))
    if missing:
        print("\n".join(missing))
        return 1
    wanted = pages(arguments.root)
    return write_pages(wanted, folder, arguments.check, "the headers")


if __name__ == "__main__":
    sys.exit(main())
