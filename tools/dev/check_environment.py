#!/usr/bin/env python3
"""Checks that docs/guides/environment.md lists every environment variable that the project reads, and no other of ours.

usage: check_environment.py [ROOT]

A variable is read by getenv(), secure_getenv(), environment_integer(), environment_number() and their likes with its name,
by os.environ of Python, as $NAME of a shell script if it is ours, or as option() of CMake. In the library and the tools,
a string that is one name of ours counts too: it is read through a constant. The library's list of known variables must
be that of the page. Each problem is one line, `file:line: text`.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_files  # noqa: E402

PAGE = "docs/guides/environment.md"
LIST = "meshard/base/environment.cc"  # the names that the library reports no warning for
OURS = "MESHARD_"

READS = {
    "c++": [re.compile(r'\b(?:secure_getenv|getenv|environment_integer|environment_number|plugin_in_environment|read_?)\(\s*"([A-Z][A-Z0-9_]+)"')],
    "python": [re.compile(r'\benviron(?:\.get\(|\[)\s*"([A-Z][A-Z0-9_]+)"(?!\]\s*=[^=])')],
    "shell": [re.compile(r"\$\{?(MESHARD_[A-Z0-9_]+)"), re.compile(r"\b(MESHARD_[A-Z0-9_]+)=")],
    "cmake": [re.compile(r"\boption\((MESHARD_[A-Z0-9_]+)"), re.compile(r"\$ENV\{([A-Z0-9_]+)\}"),
              re.compile(r"\bset\((MESHARD_[A-Z0-9_]+) .* CACHE ")],
}
THROUGH_A_CONSTANT = re.compile(r'"(MESHARD_[A-Z0-9_]+)"')


def language(name):
    path = pathlib.PurePath(name)
    if path.suffix in (".cc", ".h"):
        return "c++"
    if path.suffix == ".py":
        return "python"
    if path.suffix == ".cmake" or path.name == "CMakeLists.txt":
        return "cmake"
    return "shell" if path.suffix == ".sh" or name in ("dev", ".ci/run") else None


def is_test(name):
    return name.startswith("tests/") or re.search(r"_test(util)?\.(cc|h|py)$", name) is not None


def variables_of(name, text):
    """(name of a variable, line) for each place of a file that reads one."""
    kind = language(name)
    patterns = list(READS.get(kind, []))
    if name != LIST and kind in ("c++", "python") and not is_test(name) and not name.endswith("check_environment.py"):
        patterns.append(THROUGH_A_CONSTANT)
    for pattern in patterns:
        for match in pattern.finditer(text):
            yield match[1], text.count("\n", 0, match.start()) + 1


def listed(page):
    """The names in backticks in the tables and sentences of the page."""
    return set(re.findall(r"`([A-Z][A-Z0-9_]{3,}(?:<TYPE>)?)`", page))


def differences(page, source):
    """Environment variables of ours that only one of the page and the library's list has."""
    array = re.search(r"kVariables\[\] = \{(.*?)\};", source, re.DOTALL)
    if not array:
        return
    names = {name for name in listed(page.split("\n## CMake options")[0])
             if name.startswith(OURS) and name not in ("MESHARD_PLUGIN_<TYPE>", "MESHARD_PLUGIN_CUDA")}
    known = set(THROUGH_A_CONSTANT.findall(array[1]))
    yield from (f"{LIST}:1: kVariables lacks {name}, which is in {PAGE}" for name in sorted(names - known))
    yield from (f"{LIST}:1: kVariables has {name}, which is not in {PAGE}" for name in sorted(known - names))


def check(root):
    root = pathlib.Path(root)
    page = (root / PAGE).read_text(encoding="utf-8")
    on_page, seen = listed(page), set()
    texts = {name: (root / name).read_text(encoding="utf-8", errors="replace") for name in check_files.listed_files(root)
             if language(name) and not name.startswith(("third_party/", "docs/"))}
    macros = {macro for text in texts.values() for macro in re.findall(r"^\s*#define (\w+)", text, re.MULTILINE)}
    for name, text in texts.items():
        for variable, line in variables_of(name, text):
            # MESHARD_PLUGIN_<TYPE> is one entry of the page.
            known = variable in on_page | seen | macros or variable.startswith("MESHARD_PLUGIN_")
            if not known and not name.endswith("check_environment_test.py"):
                yield f"{name}:{line}: {variable} is not in {PAGE}"
            seen.add(variable)
    yield from differences(page, texts.get(LIST, ""))
    for variable in sorted(on_page):
        if variable.startswith(OURS) and not variable.startswith("MESHARD_PLUGIN_") and variable not in seen:
            yield f"{PAGE}:1: nothing reads {variable}"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    problems = list(check(root))
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
