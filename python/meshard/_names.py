"""What modules say about names that they do not have, and which names they show."""

import difflib
import sys

_HOUSES = ("numpy", "nn", "linalg", "random", "optim")  # of the package, for names that are looked for elsewhere


def missing(module, name, names):
    """The error for a name that a module lacks: where the package has it, otherwise near names."""
    package = module.split(".")[0]
    hint = ""
    if not name.startswith("_"):
        import importlib
        houses = [f"{package}.{house}" for house in _HOUSES if f"{package}.{house}" != module]
        found = [house for house in houses if name in importlib.import_module(house).__all__]
        by_letters = {each.lower(): each for each in names}
        near = [by_letters[each] for each in difflib.get_close_matches(name.lower(), by_letters, 3)]
        if found:
            hint = f": it is {found[0]}.{name}"
        elif near:
            hint = f"; near names: {', '.join(near)}"
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}", name=name, obj=sys.modules[module])


def shown(module):
    """`__getattr__` and `__dir__` of a module whose public names are those of its `__all__`."""
    names = sys.modules[module].__all__

    def find(name):
        raise missing(module, name, names)

    return find, lambda: sorted(names)
