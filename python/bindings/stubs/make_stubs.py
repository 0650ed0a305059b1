#!/usr/bin/env python3
"""Writes the type stubs of the package.

usage: make_stubs.py --package FOLDER --results results.pyi --out FOLDER

FOLDER/meshard is the package with the built extension module, results.pyi is what op_bindings.py wrote. The stubs are
written to OUT/_meshard/*.pyi by nanobind, and completed: classes that call themselves `meshard.Tensor` are declared in
_meshard, Python's operators get their types, and the named tuples of ops and the names of other parts are added where
they are used. The stubs of Python files are written beside them, to OUT/*.pyi (package_stubs.py).
"""

import argparse
import contextlib
import importlib
import io
import pathlib
import pkgutil
import re
import shutil
import sys

import package_stubs
from nanobind import stubgen

# What an operand of an op may be. `complex`, for a number, is also the name of an op.
OPERAND = "Tensor | complex"
ARRAY_LIKE = """ArrayLike: TypeAlias = Tensor | builtins.complex | numpy.ndarray[Any, Any] | numpy.generic
"""
OPERATORS = [
    (r"__(?:r?(?:add|sub|mul|mod|pow|lshift|rshift|and|xor|or|floordiv|truediv|matmul)|lt|le|gt|ge)__", "ArrayLike",
     "Tensor"),
    (r"__i(?:add|sub|mul|mod|pow|lshift|rshift|and|xor|or|floordiv|truediv|matmul)__", "ArrayLike", "Tensor"),
    (r"__(?:neg|pos|abs|invert)__", "", "Tensor"),
    (r"__getitem__", "Any", "Tensor"),
]
CONVERSIONS = {"__bool__": "bool", "__int__": "int", "__float__": "float", "__index__": "int", "__len__": "int",
               "__complex__": "builtins.complex"}


# The arguments of generic types that were written without any.
ARGUMENTS = {"tuple": "typing.Any, ...", "list": "typing.Any", "Sequence": "typing.Any", "Iterator": "typing.Any",
             "Iterable": "typing.Any", "dict": "typing.Any, typing.Any", "Mapping": "typing.Any, typing.Any",
             "type": "typing.Any", "Callable": "..., typing.Any"}


def with_operators(text):
    """A stub whose class Tensor has types for the operators that nanobind lists without them."""
    for names, operand, result in OPERATORS:
        takes = f"self, value: {operand}" if operand else "self"
        text = re.sub(rf"def ({names})\(self(?:, (?:key|value)(?:, mod=None)?)?, /\):",
                      rf"def \1({takes}, /) -> {result}:", text)
    for names, result in CONVERSIONS.items():
        text = re.sub(rf"def {names}\(self, /\):", f"def {names}(self, /) -> {result}:", text)
    text = re.sub(r"def (__(?:eq|ne)__)\(self, value, /\):",
                  r"def \1(self, value: Any, /) -> Tensor:  # type: ignore[override]", text)
    text = text.replace("def __setitem__(self, key, value, /):",
                        "def __setitem__(self, key: Any, value: ArrayLike, /) -> None:")
    text = text.replace("def __delitem__(self, key, /):", "def __delitem__(self, key: Any, /) -> None:")
    return re.sub(r"    __hash__: None = None\n", "    __hash__: None  # type: ignore[assignment]\n", text)


def with_full_types(text):
    """A stub without generic types that lack their arguments. An object that C++ returns may be anything, and sizes that
    it returns are a tuple."""
    text = text.replace("-> int | Sequence[int]:", "-> tuple[int, ...]:")
    text = text.replace("-> object:", "-> typing.Any:")
    names = "|".join(ARGUMENTS)
    for before, after in ((r"[:>|] |\[|typing\.|collections\.abc\.", r"[\],)| :=]|$"), (", ", r"[\],)| =]|$")):
        replaced = 1
        while replaced:  # each pass completes one type of a line
            text, replaced = re.subn(rf"^((?!from |import ).*?)({before})({names})(?={after})",
                                     lambda m: f"{m[1]}{m[2]}{m[3]}[{ARGUMENTS[m[3]]}]", text, flags=re.MULTILINE)
    text = re.sub(r"\*args(?=[,)])", "*args: typing.Any", text)
    return re.sub(r"\*\*kwargs(?=[,)])", "**kwargs: typing.Any", text)


def declared(text):
    """The classes that a stub declares."""
    classes = set(re.findall(r"^class (\w+)", text, re.MULTILINE))
    return classes | {"ArrayLike"} if "\nArrayLike: TypeAlias" in text else classes


def split_classes(text):
    """The text of each class of results.pyi, by name."""
    return {re.match(r"class (\w+)", part)[1]: part for part in re.split(r"(?m)^(?=class )", text) if part.strip()}


def completed(text, known, results):
    """A stub with what it lacks: named tuples, and imports of classes of other stubs, `known` by name.

    Types that a stub cannot name, because their class is not bound, become Any."""
    text = re.sub(r'"meshard::(?:\w+::)*(\w+)"', lambda m: m[1] if m[1] in known else "typing.Any", text)
    text = re.sub(r"\bmeshard\._meshard\.(?:\w+\.)*([A-Z]\w*)", r"\1", text)
    text = text.replace(OPERAND, "ArrayLike")
    if "class Tensor:" in text:
        in_types = re.compile(r"(?<=[\[ ])slice(?=[,\]])")  # also the name of a method
        text = re.sub(r"(?m)^.*\bdef .*$", lambda line: in_types.sub("builtins.slice", line[0]), text)
        text = "import builtins\nfrom typing import TypeAlias\nimport numpy\n" + with_operators(text) + "\n" + ARRAY_LIKE
    text = with_full_types(text)
    code = re.sub(r'""".*?"""', "", text, flags=re.DOTALL)
    used = set(re.findall(r"\b[A-Z]\w+\b", code))
    own = declared(text)
    tuples = "".join(results[name] + "\n" for name in sorted(used & results.keys()) if name not in own)
    wanted = used | ({"Tensor"} if tuples else set())
    lines = [f"from {known[name]} import {name} as {name}" for name in sorted((wanted & known.keys()) - own)]
    if tuples:
        lines.append("from typing import NamedTuple")
    if re.search(r"\btyping\.", code):
        lines.append("import typing")
    if re.search(r"\bcollections\.abc\.", code):
        lines.append("import collections.abc")
    head = '# mypy: disable-error-code="overload-cannot-match"\n'  # C++ overloads by types that Python joins
    return head + "".join(line + "\n" for line in lines) + "\n" + tuples + text


def known_places(module):
    """(module, name) of all functions and classes of the extension module and its parts, by id."""
    found = {}
    for name, value in vars(module).items():
        if type(value).__name__ == "module" and value.__name__.startswith(module.__name__):
            found.update(known_places(value))
        elif callable(value):
            found[id(value)] = (module.__name__, name)
    return found


def name_by_place(module):
    """Lets the classes of the extension module say where they are defined, instead of where users find them."""
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__.startswith("meshard"):
            value.__module__ = module.__name__
        elif type(value).__name__ == "module" and value.__name__.startswith(module.__name__):
            name_by_place(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--package", required=True, type=pathlib.Path)
    parser.add_argument("--results", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.package))
    import meshard
    from meshard import _meshard
    # The last two need other packages.
    skipped = ("meshard._meshard", "meshard.__main__", "meshard.pytest_plugin", "meshard.torch")
    modules = [meshard] + [importlib.import_module(found.name)
                           for found in pkgutil.walk_packages(meshard.__path__, "meshard.")
                           if not found.name.startswith(skipped)]
    tensors = package_stubs.TENSORS | {name for name, value in vars(_meshard.ops).items()
                                       if "-> Tensor" in str(getattr(value, "__doc__", ""))}
    python_stubs = {module: package_stubs.stub_of(module, known_places(_meshard), tensors) for module in modules}
    methods = package_stubs.method_lines(_meshard.Tensor, tensors)
    name_by_place(_meshard)
    shutil.rmtree(arguments.out, ignore_errors=True)
    folder = arguments.out / "_meshard"
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        stubgen.main(["-q", "-m", "meshard._meshard", "-r", "-O", str(arguments.out)])
    files = sorted(folder.rglob("*.pyi"))
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    known = {"ArrayLike": "meshard._meshard"}
    for file, text in texts.items():
        parts = [part for part in file.relative_to(arguments.out).with_suffix("").parts if part != "__init__"]
        known.update(dict.fromkeys(declared(text), ".".join(["meshard", *parts])))
    results = split_classes(arguments.results.read_text(encoding="utf-8"))
    for file, text in texts.items():
        text = re.sub(r'(?s)class Tensor:\n(?:    """.*?"""\n)?', lambda match: match[0] + methods, text, count=1)
        file.write_text(completed(text, known, results), encoding="utf-8")
    for module, text in python_stubs.items():
        parts = module.__name__.split(".")[1:]
        file = arguments.out.joinpath(*parts, "__init__.pyi") if hasattr(module, "__path__") else \
            arguments.out.joinpath(*parts).with_suffix(".pyi")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(with_full_types(text), encoding="utf-8")
    if not files:
        print(f"make_stubs: nanobind wrote no stubs: {said.getvalue()}", file=sys.stderr)
    return 0 if files else 1


if __name__ == "__main__":
    sys.exit(main())
