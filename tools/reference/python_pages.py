#!/usr/bin/env python3
"""Writes docs/python: every public name of the Python package, with its signature, documentation and members.

usage: python_pages.py [--package SITE_PACKAGES/meshard] [--check] [FOLDER]

The package is an installed one, by default that of this interpreter; its stubs have what is written in C++. It is read
and not imported. A public name without a docstring is an error. --check writes nothing, names each page that is not
current, and ends with 1 if there is one.
"""

import argparse
import ast
import importlib.util
import pathlib
import sys

import python_entry
from api_index import write_pages
from package_source import Package

SOURCE = "\n<!-- Written by `./dev docs` from the docstrings of the package; edit those. -->\n"
ROOT = pathlib.Path(__file__).resolve().parents[2]
ARRAY_API = "meshard._array_api."

# Page -> title, module, and the parts of the module whose names are on it; None: all names of the module.
PAGES = {
    "transforms": ("jit, derivatives, batches, loops", "meshard", ["meshard._transforms"]),
    "tensor": ("Tensor and dtypes", "meshard", [
        "Tensor", "meshard._dtypes", "meshard._dlpack", ARRAY_API + "data_types", ARRAY_API + "info"]),
    "creation": ("Creating tensors", "meshard", [ARRAY_API + "creation", "e", "inf", "nan", "newaxis", "pi"]),
    "elementwise": ("Element-wise functions", "meshard", [ARRAY_API + "elementwise"]),
    "shapes": ("Shapes and indexing", "meshard", [ARRAY_API + "manipulation", ARRAY_API + "indexing"]),
    "reductions": ("Reductions, sorting, searching, sets", "meshard", [
        ARRAY_API + part for part in ("statistical", "utility", "searching", "sorting", "set_functions")]),
    "products": ("Products and other ops", "meshard", [ARRAY_API + "linear_algebra", ARRAY_API + "others"]),
    "mesh": ("Meshes and shardings", "meshard", ["meshard._mesh"]),
    "marking": ("Placing and marking tensors", "meshard", ["meshard._marking"]),
    "collectives": ("Collectives of manual regions", "meshard", ["meshard._collectives"]),
    "runtime": ("Devices, counters, traces", "meshard", ["meshard._runtime"]),
    "callbacks": ("Callbacks and advice", "meshard", ["meshard._callbacks"]),
    "processes": ("Runs of several processes", "meshard", ["meshard._processes"]),
    "explain": ("explain, predict, and reports", "meshard", ["meshard._reports"]),
    "expect": ("Expectations", "meshard", ["meshard._expect"]),
    "plan": ("Plans", "meshard", ["meshard._plan"]),
    "programs": ("Programs of JAX and others", "meshard", ["meshard._programs"]),
    "errors": ("Errors", "meshard", ["meshard._errors"]),
    "tree": ("meshard.tree", "meshard.tree", None),
    "nn": ("meshard.nn", "meshard.nn", None),
    "nn-init": ("meshard.nn.init", "meshard.nn.init", None),
    "optim": ("meshard.optim", "meshard.optim", None),
    "linalg": ("meshard.linalg", "meshard.linalg", None),
    "linalg-distributed": ("meshard.linalg.distributed", "meshard._distributed", None),
    "fft": ("meshard.fft", "meshard.fft", None),
    "random": ("meshard.random", "meshard.random", None),
    "io": ("meshard.io", "meshard.io", None),
    "data": ("meshard.data", "meshard.data", None),
    "layout": ("meshard.layout", "meshard.layout", None),
    "pipeline": ("meshard.pipeline", "meshard.pipeline", None),
    "numpy": ("meshard.numpy", "meshard.numpy", None),
    "numpy-linalg": ("meshard.numpy.linalg", "meshard.numpy.linalg", None),
    "torch": ("meshard.torch", "meshard.torch", None),
}


class Reader:
    """The public names of a package."""

    def __init__(self, folder):
        self.stubs, self.sources = Package(folder, ".pyi"), Package(folder, ".py")

    def public(self, module):
        """The public names of a module: its `__all__`, or what it defines."""
        source = self.stubs.module(module) or self.sources.module(module)
        if source is None:
            raise ValueError(f"there is no module {module}; install the package with its stubs (./dev wheel)")
        names = source.public()
        if names is None:
            names = [name for name, nodes in source.names.items()
                     if not name.startswith("_") and isinstance(nodes[0], (ast.FunctionDef, ast.ClassDef))]
        return [name for name in names if not name.startswith("__")]

    def find(self, package, module, name):
        found = package.find(module, name) if package.module(module) else None
        return found if found and found[2] else None

    def entry(self, module, name, shown_module):
        """The Entry of a name; None for a module."""
        stub = self.find(self.stubs, module, name)
        if stub is None and self.stubs.module(module) is not None and self.stubs.find(module, name):
            return None
        where, original, nodes = stub or (module, name, [])
        if not where.startswith("meshard._meshard"):
            where, original, nodes = self.find(self.sources, where, original) or (where, original, nodes)
        if not nodes:
            return None
        bases = []
        if isinstance(nodes[0], ast.ClassDef):
            package = self.stubs if where.startswith("meshard._meshard") else self.sources
            for base in nodes[-1].bases:
                found = self.find(package, where, ast.unparse(base))
                if found and isinstance(found[2][0], ast.ClassDef):
                    bases.append(found[2][0])
        return python_entry.Entry(shown_module, name, nodes, stub[2] if stub else [], bases)

    def page_entries(self, module, parts):
        """The entries of a page and its values, by name."""
        entries, values = {}, {}
        for part in [module] if parts is None else parts:
            names = self.public(part) if part.startswith("meshard") else [part]
            for name in names:
                entry = self.entry(part if part.startswith("meshard") else module, name, module)
                if entry is None:
                    continue
                if entry.is_class or entry.is_function:
                    entries[name] = entry
                else:
                    values[name] = entry
        return entries, values

    def doc_of(self, module):
        source = self.sources.module(module)
        return source.doc if source else ""


def alphabetical(entries):
    return sorted(entries.values(), key=lambda entry: (entry.name.lower(), entry.name))


def page(title, module, parts, reader):
    entries, values = reader.page_entries(module, parts)
    lines = [f"# {title}", ""]
    if parts is None:
        lines += [python_entry.markdown(reader.doc_of(module) or "")]
    else:
        lines += [f"Names of the module `{module}`. [All pages](README.md)."]
    lines += ["", "| name | |", "|---|---|"]
    for entry in alphabetical(entries):
        anchor = entry.name.lower()
        lines.append(f"| [`{entry.name}`](#{anchor}) | {python_entry.cell(python_entry.first_sentence(entry.doc))} |")
    if values:
        lines += ["", "Values: " + ", ".join(f"`{name}`" for name in values) + "."]
    for entry in alphabetical(entries):
        lines += ["", *entry.lines()]
    return "\n".join(lines) + "\n" + SOURCE, len(entries) + len(values)


def pages(reader):
    """File name -> text. @error ValueError, naming each public name without a docstring or page."""
    problems = [problem for title, module, parts in PAGES.values()
                for entry in reader.page_entries(module, parts)[0].values() for problem in entry.problems()]
    on_pages = {part for _, _, parts in PAGES.values() for part in parts or []}
    for place in reader.sources.module("meshard").stars:
        part = f"meshard{place}"
        inner = [reader.sources.absolute(part, each) for each in reader.sources.module(part).stars]
        problems += [f"{each}: add it to PAGES of python_pages.py" for each in inner or [part] if each not in on_pages]
    if problems:
        raise ValueError("\n".join(dict.fromkeys(problems)))
    out, rows, total = {}, [], 0
    for file, (title, module, parts) in PAGES.items():
        out[f"{file}.md"], count = page(title, module, parts, reader)
        rows.append(f"| [{title}]({file}.md) | `{title if parts is None else module}` | {count} |")
        total += count
    out["README.md"] = "\n".join([
        "# Python reference", "",
        f"{total:,} names, with their signatures, what they do, shapes, errors and examples. `help(name)` shows the same",
        "text. In signatures, an argument without a type is a tensor, a number, an array of another library, or what its",
        "text says. Functions of tensors take all of these, and return tensors. Examples follow `import meshard as ms` and",
        "`import numpy as np`; in those of `meshard.torch`, `mt` is `meshard.torch`.", "",
        "| page | module | names |", "|---|---|---|", *rows]) + "\n" + SOURCE
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--package", type=pathlib.Path, default=None)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("folder", type=pathlib.Path, nargs="?", default=ROOT / "docs/python")
    arguments = parser.parse_args()
    folder, package = arguments.folder, arguments.package
    try:
        if package is None:
            found = importlib.util.find_spec("meshard")
            if found is None:
                raise ValueError("the package is not installed here: use ./dev docs, or --package")
            package = found.submodule_search_locations[0]
        wanted = pages(Reader(package))
    except ValueError as error:
        print(f"python_pages: {error}", file=sys.stderr)
        return 1
    return write_pages(wanted, folder, arguments.check, "the docstrings")


if __name__ == "__main__":
    sys.exit(main())
