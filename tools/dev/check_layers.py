#!/usr/bin/env python3
"""Rejects includes that violate the dependency order of the folders.

usage: check_layers.py [ROOT]

The order is given by the DEPENDS of meshard/CMakeLists.txt: a folder may include itself and every folder that its
DEPENDS reach. The pure folders never reach pjrt. The headers directly in meshard/ may include everything, and no
folder includes them. Examples, and the programs of the docs, include only <meshard/meshard.h>, <meshard/nn/all.h> or
<meshard/core.h> of ours.
Tests, tools, Python bindings and benchmarks may include anything. Each problem is one line, `file:line: text`.
"""

import pathlib
import re
import sys

PURE = ["base", "quirks", "layout", "mesh", "sharding", "array", "processes", "stablehlo", "graph", "ops", "autodiff", "lowering",
        "trace"]
ON_THE_PUBLIC_API = ["nn", "optim"]  # like user code, they may include meshard/meshard.h
WORDS = ("DEPENDS", "SMALL_FUNCTIONS", "QUICK_BUILD", "QUICK_COMPILER")  # of meshard_folder
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def read_depends(text):
    """Folder -> the folders that its meshard_folder(...) line names."""
    text = re.sub(r"#.*", "", text)
    depends = {}
    for body in re.findall(r"meshard_folder\(([^)]*)\)", text):
        name, *words = body.split()
        depends[name] = [word for word in words if word not in WORDS]
    return depends


def reachable(depends):
    """Folder -> every folder that it may include, itself among them.
    @error ValueError for an unknown folder or a cycle."""
    closed = {}

    def visit(folder, path):
        if folder in path:
            raise ValueError("the folders depend on each other: " + " -> ".join(path + [folder]))
        if folder not in depends:
            raise ValueError(f"{path[-1]} depends on {folder}, which is not a folder")
        if folder not in closed:
            closed[folder] = {folder}.union(*(visit(d, path + [folder]) for d in depends[folder]))
        return closed[folder]

    for folder in depends:
        visit(folder, [])
    return closed


def includes(path):
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1], match[2]


def check_folder(root, folder, allowed, known):
    """The problems of one folder's files."""
    for path in sorted((root / "meshard" / folder).rglob("*")):
        if path.suffix not in (".h", ".cc", ".inc"):
            continue
        is_test = re.search(r"_(test|testutil)\.(cc|h)$", path.name)
        place = path.relative_to(root)
        for number, _, name in includes(path):
            parts = name.split("/")
            if parts[0] == "tests" and not is_test:
                yield f"{place}:{number}: only tests include {name}"
            if parts[0] in ("tools", "examples", "bench", "python"):
                yield f"{place}:{number}: the library does not include {name}"
            if parts[0] == "third_party":
                yield f"{place}:{number}: third_party is an include folder: drop it from {name}"
            if parts[0] != "meshard":
                continue
            if len(parts) == 2:
                if not is_test and folder not in ON_THE_PUBLIC_API:
                    yield f"{place}:{number}: {name} is for users; a folder includes what it needs"
            elif parts[1] not in known:
                yield f"{place}:{number}: meshard/{parts[1]} is not a folder in meshard/CMakeLists.txt"
            elif parts[1] not in allowed:
                yield (f"{place}:{number}: {folder} may not include {parts[1]} (it may include "
                       f"{', '.join(sorted(allowed - {folder})) or 'nothing'})")
            elif "internal" in parts[2:] and parts[1] != folder:
                yield f"{place}:{number}: {name} is internal to {parts[1]}"


# The headers of all programs, and public ones that meshard.h leaves out, because few programs use them.
FOR_EXAMPLES = {"meshard/meshard.h", "meshard/core.h", "meshard/nn/all.h", "meshard/base/json_reader.h",
                "meshard/base/json_writer.h", "meshard/io/load_rule.h", "meshard/ops/definition/capped_attention.h"}


def check_examples(root):
    for path in sorted((root / "examples").rglob("*")):
        if path.suffix not in (".h", ".cc"):
            continue
        for number, _, name in includes(path):
            ours = name.startswith("meshard/") and name not in FOR_EXAMPLES
            if ours or name.split("/")[0] in ("tests", "tools", "bench"):
                yield (f"{path.relative_to(root)}:{number}: an example includes <meshard/meshard.h>, "
                       f"<meshard/nn/all.h> or <meshard/core.h> only, not {name}")


def check(root):
    """All problems in `root`, in a fixed order."""
    root = pathlib.Path(root)
    depends = read_depends((root / "meshard" / "CMakeLists.txt").read_text(encoding="utf-8"))
    try:
        closed = reachable(depends)
    except ValueError as error:
        return [f"meshard/CMakeLists.txt:1: {error}"]
    problems = []
    for folder in PURE:
        if "pjrt" in closed.get(folder, ()):
            problems.append(f"meshard/CMakeLists.txt:1: {folder} is pure and must not reach pjrt")
    if closed.get("pjrt", set()) - {"pjrt", "quirks", "base"}:
        problems.append("meshard/CMakeLists.txt:1: pjrt depends on base and quirks only")
    for path in sorted((root / "meshard").iterdir()):
        if path.is_dir() and path.name not in depends and any(path.rglob("*.cc")):
            problems.append(f"meshard/CMakeLists.txt:1: no meshard_folder({path.name} ...)")
    for folder in depends:
        problems += check_folder(root, folder, closed[folder], depends)
    return problems + list(check_examples(root))


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
    problems = check(root)
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
