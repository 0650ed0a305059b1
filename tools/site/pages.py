"""Turns a page of the repository into one for the site's Markdown dialect (Python-Markdown); mkdocs is not needed here.

The pages are written for the renderers of code hosts (CommonMark with tables). The differences that matter: a list
needs an empty line before it and four spaces for each level, a code block is introduced by its language alone, and a
link names another page of the site. Files of the project that are no pages are copied into the site as text.
"""

import pathlib
import posixpath
import re

FENCE = re.compile(r"(\s*)(```+|~~~+)\s*([^\s`]*)([^`]*)$")  # with more backticks it is code inside a line
ITEM = re.compile(r"( *)(?:[-*+]|\d+[.)]) ")
LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\)|\s+\"[^\"]*\"\))")
LANGUAGES = {"mlir": "text", "sh": "bash", "c++": "cpp"}  # what Pygments calls them
PAGES_OUTSIDE = {"README.md": "overview.md", "CONTRIBUTING.md": "contributing.md", "tools/compare/README.md": "dev/compare.md",
                 "tools/site/landing.md": "index.md", "docs/index.md": "all.md"}
# How much a page counts in the search, by its folder. Pages for contributors are not searched.
BOOSTS = {"how-to": 4, "tutorials": 2, "guides": 2, "concepts": 1, "python": 0.5, "reference": 0.5, "api": 0.2}
NOT_SEARCHED = ("decisions/", "dev/", "contributing.md", "all.md")


def version(root):
    """The version of meshard, from its build file."""
    return re.search(r"project\(meshard VERSION (\S+)", (pathlib.Path(root) / "CMakeLists.txt").read_text(encoding="utf-8"))[1]


def slug(text, separator="-"):
    """The anchor of a heading, spelled as code hosts spell it (and tools/dev/check_links.py)."""
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", separator)


def title_of(text):
    match = re.search(r"^# (.+)$", text, re.MULTILINE)
    return match[1].replace("`", "") if match else None


def page_of(path):
    """The site's page for a Markdown file of the repository; None for other files."""
    if path in PAGES_OUTSIDE:
        return PAGES_OUTSIDE[path]
    return path.removeprefix("docs/") if path.startswith("docs/") and path.endswith(".md") else None


def search_of(page):
    """The search settings of a page of the site."""
    if page.startswith(NOT_SEARCHED):
        return {"exclude": True}
    return {"boost": BOOSTS.get(page.split("/")[0], 1)}


def unbroken(html):
    """The HTML in which flags do not break at their hyphens."""
    return re.sub(r"<code>(--?[\w-]{1,30}(?: [\w.]{1,12})?)</code>", r'<code class="flag">\1</code>', html)


def named(html):
    """A whole page in which readers of the screen hear what the search's dialog is."""
    return html.replace('data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"')


def copy_of(path):
    """Where the site keeps the text of a file that is not a page. Browsers show .txt and .json, and save most others."""
    return f"files/{path}" if path.endswith((".txt", ".json")) else f"files/{path}.txt"


def move_link(target, source, page, copies):
    """The link of `page` for what `target` names in the file `source`; copied files are added to `copies`.
    Links to other sites, and to an anchor of the page itself, stay."""
    name, sharp, anchor = target.partition("#")
    if not name or re.match(r"[a-z]+:", target):
        return target
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), name))
    there = page_of(path)
    if there is None:
        there = path.removeprefix("docs/") if path.startswith("docs/") else copy_of(path)
        copies.add(path)
    return posixpath.relpath(there, posixpath.dirname(page) or ".") + sharp + anchor


def move_links(line, source, page, copies):
    """The line with all links moved, but for what looks like one in backticks."""
    code = [match.span() for match in re.finditer(r"(`+)[^`]+\1", line)]

    def moved(match):
        if any(first <= match.start() and match.end() <= last for first, last in code):
            return match[0]
        return match[1] + move_link(match[2], source, page, copies) + match[3]

    return LINK.sub(moved, line)


def with_tabs(text):
    """The text in which a block in C++ that is directly followed by one in Python becomes two tabs."""
    lines, out, i = text.splitlines(), [], 0

    def block_at(first, language):
        """The line after a block of this language that begins in line `first`; None if there is no such block."""
        if first >= len(lines) or lines[first].split()[:1] != [f"```{language}"]:
            return None
        end = next((k for k in range(first + 1, len(lines)) if lines[k].rstrip() == "```"), None)
        return None if end is None else end + 1

    while i < len(lines):
        if (end := block_at(i, "cpp")) is None:
            mark = FENCE.match(lines[i])
            close = next((k for k in range(i + 1, len(lines)) if lines[k].strip() == mark[2]), None) if mark else None
            out += lines[i:(close or i) + 1]
            i = (close or i) + 1
            continue
        second = end
        while second < len(lines) and not lines[second].strip():
            second += 1
        last = block_at(second, "python")
        if last is None or not any(re.match(r"(import|from) meshard\b", line) for line in lines[second:last]):
            out += lines[i:end]
            i = end
            continue
        for name, first, stop in (("C++", i, end), ("Python", second, last)):
            out += ["", f'=== "{name}"', "", *(f"    {line}".rstrip() for line in lines[first:stop]), ""]
        i = last
    return "\n".join(out) + "\n"


def convert(text, source, page, copies):
    """The text of `page`, made from that of `source` (a path in the repository)."""
    text = with_tabs(text)
    # `levels`: for each list that a line is in, the columns of its marker and of its text.
    out, fence, levels, last = [], None, [], ""
    for line in text.splitlines():
        mark = FENCE.match(line)
        if fence:
            out.append(deeper(line, levels))
            if mark and line.strip() == fence:
                fence = None
                out.append("")
            continue
        if mark:
            fence, language = mark[2], mark[3]
            out += ["", deeper(mark[1] + fence + LANGUAGES.get(language, language), levels)]
        elif item := ITEM.match(line):
            indent = len(item[1])
            if not levels and last.strip():
                out.append("")
            while levels and levels[-1][0] > indent:
                levels.pop()
            if not levels or levels[-1][0] < indent:
                levels.append((indent, item.end()))
            out.append("    " * (len(levels) - 1) + move_links(line.strip(), source, page, copies))
        else:
            if levels and line.strip() and not line.startswith(" ") and not last.strip():
                levels = []
            out.append(move_links(deeper(line, levels), source, page, copies))
        last = line
    return "\n".join(out) + "\n"


def deeper(line, levels):
    """A line that belongs to a list item, indented as Python-Markdown wants it."""
    if not levels or not line.startswith(" "):
        return line
    return "    " * len(levels) + line[min(len(line) - len(line.lstrip()), levels[-1][1]):]


def section(folder, root):
    """The pages of a generated or dated folder, the overview first and the others by title."""
    pages = sorted((pathlib.Path(root) / "docs" / folder).glob("*.md"))
    named = [((title_of(path.read_text(encoding="utf-8")) or path.stem).removeprefix("API: "), f"{folder}/{path.name}")
             for path in pages if path.name != "README.md"]
    return [{"Overview": f"{folder}/README.md"}, *({title: path} for title, path in sorted(named, key=lambda each: each[0].lower()))]
