#!/usr/bin/env python3
"""Checks the links of README.md, CONTRIBUTING.md and docs/**/*.md.

usage: check_links.py [ROOT]

A relative link must name a file of the project, and `#anchor` must be a heading of the target file. Links to
other sites are not checked. Links that begin at README.md must lead to every page, and a folder of docs/ of which the
site's navigation (tools/site/mkdocs.yml) lists a page must be in it whole. Each problem is one line, `file:line: text`.
"""

import pathlib
import re
import sys

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")


def prose(text):
    """Number and text of each line outside code blocks, with code in backticks removed."""
    fence = None
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and (fence is None or line.strip().startswith(fence)):
            fence = None if fence else mark[1]
        elif fence is None:
            yield number, line


def anchors(text):
    """The anchors of the headings, in the form that common renderers use."""
    found = set()
    for _, line in prose(text):
        heading = re.match(r"#+\s+(.*?)\s*#*$", line)
        if heading:
            words = re.sub(r"[^\w\- ]", "", heading[1].replace("`", "").lower())
            found.add(words.replace(" ", "-"))
    for name in re.findall(r"<a (?:id|name)=\"([^\"]+)\"", text):
        found.add(name)
    return found


def check(root):
    root = pathlib.Path(root).resolve()
    pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]
    problems, links = [], {}
    for page in pages:
        if not page.is_file():
            continue
        links[page] = set()
        for number, line in prose(page.read_text(encoding="utf-8")):
            for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
                place = f"{page.relative_to(root)}:{number}"
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                file = (page.parent / name).resolve() if name else page
                links[page].add(file)
                if not file.exists():
                    problems.append(f"{place}: there is no {name}")
                elif root not in file.parents and file != root:
                    problems.append(f"{place}: {name} is outside the project")
                elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text(encoding="utf-8")):
                    problems.append(f"{place}: {file.relative_to(root)} has no heading #{anchor}")
    for page in sorted(links.keys() - reached(pages[0], links)):
        problems.append(f"{page.relative_to(root)}:1: no link leads here from README.md")
    return problems + outside_navigation(root)


def outside_navigation(root):
    site = root / "tools/site/mkdocs.yml"
    listed = set(re.findall(r"[\w./-]+\.md", site.read_text(encoding="utf-8"))) if site.is_file() else set()
    folders = sorted({name.rpartition("/")[0] for name in listed} - {""})
    pages = {f"{folder}/{page.name}" for folder in folders for page in (root / "docs" / folder).glob("*.md")}
    return [f"docs/{page}:1: not in the navigation of tools/site/mkdocs.yml" for page in sorted(pages - listed)]


def reached(first, links):
    """The pages that links lead to from the first one; all, if there is no first one."""
    if first not in links:
        return links.keys()
    found, todo = {first}, [first]
    while todo:
        todo += (new := links.get(todo.pop(), set()) - found)
        found |= new
    return found


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    problems = check(root)
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
