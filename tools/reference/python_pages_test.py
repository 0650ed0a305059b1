"""python_pages.py writes pages of a package, which is written here."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import package_source  # noqa: E402
import python_entry  # noqa: E402
import python_pages  # noqa: E402

SOURCE = '''"""A module.

    use(it)
"""
import dataclasses
from typing import Any, overload
from ._other import *
from . import _meshard

Box = _meshard.Box


@overload
def both(x: int) -> int: ...
@overload
def both(x: str) -> str: ...
def both(x):
    """One of two."""


def f(x, /, axes: "Any" = (), *, name: str = 'a', **more):
    """The sum (Kingma and Ba: A. B., 2015) of a*b. Not more.

        f(x)

    >>> f(1)
    2

        >>> f(2)

    Raises nothing.
    """


@dataclasses.dataclass(kw_only=True)
class Options(_Base):
    """Options."""

    rate: float = _option(0.5)
    """The rate."""
    other: int = dataclasses.field(metadata={})

    def step(self, x) -> int:
        """A step."""
        return x


class _Base:
    def init(self):
        """From the base."""


def _hidden(): ...


def without(): ...


value = 3
'''
STUB = '''from ._other import *
from ._meshard import Box as Box
def both(x: Any) -> Any: ...
def f(x: Any, /, axes: Any=..., *, name: str='a', **more: Any) -> Tensor: ...
class Options: ...
def without() -> Any: ...
value: int
__all__ = ['Box', 'both', 'f', 'Options', 'without', 'value', 'moved']
'''
BOX = '''class Box:
    """
    A box | of C++.
    """
    def __init__(self, size: int = 1) -> None: ...
    @property
    def size(self) -> int | None:
        """The size | of it."""
    @staticmethod
    def parse(text: str) -> Box:
        """From text."""
    def __eq__(self, other): ...
'''


class Pages(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        root = pathlib.Path(self.folder.name) / "meshard"
        root.mkdir()
        for name, text in (("__init__.py", SOURCE), ("__init__.pyi", STUB), ("_meshard.pyi", BOX),
                           ("_other.py", 'def moved():\n    """From elsewhere."""\n__all__ = ["moved"]\n'),
                           ("_other.pyi", "def moved() -> Tensor: ...\n__all__ = ['moved']\n")):
            (root / name).write_text(text)
        self.reader = python_pages.Reader(root)
        self.entries, self.values = self.reader.page_entries("meshard", None)

    def tearDown(self):
        self.folder.cleanup()

    def text(self, name):
        return "\n".join(self.entries[name].lines())

    def test_names(self):
        self.assertEqual(sorted(self.entries), ["Box", "Options", "both", "f", "moved", "without"])
        self.assertEqual(list(self.values), ["value"])

    def test_a_function_has_the_defaults_of_the_source_and_the_result_of_the_stub(self):
        self.assertEqual(self.entries["f"].signature(), 'f(x, /, axes=(), *, name: str = "a", **more) -> Tensor')
        self.assertEqual(self.entries["moved"].signature(), "moved() -> Tensor")
        self.assertEqual(self.entries["both"].signature(), "both(x)")

    def test_a_docstring_as_markdown(self):
        self.assertIn("of a\\*b. Not more.\n\n```python\nf(x)\n```\n\n```pycon\n>>> f(1)\n2\n```\n\n```pycon\n>>> f(2)\n```\n\nRaises nothing.", self.text("f"))
        self.assertEqual(python_entry.first_sentence(self.entries["f"].doc), "The sum (Kingma and Ba: A. B., 2015) of a*b.")

    def test_a_class(self):
        self.assertEqual(self.entries["Options"].signature(), "class Options(*, rate: float = 0.5, other: int)")
        self.assertIn("| `rate` | `float` | The rate. |", self.text("Options"))
        for each in (".init()", "From the base.", ".step(x) -> int", "A step."):
            self.assertIn(each, self.text("Options"))

    def test_a_class_of_the_stub(self):
        self.assertEqual(self.entries["Box"].signature(), "class Box(size: int = 1)")
        self.assertIn("| `size` | `int \\| None` | The size \\| of it. |", self.text("Box"))
        self.assertIn("Box.parse(text: str) -> Box\n", self.text("Box"))
        self.assertNotIn("__eq__", self.text("Box"))

    def test_a_name_without_documentation_is_a_problem(self):
        self.assertEqual([problem for entry in self.entries.values() for problem in entry.problems()],
                         ["meshard.without has no docstring"])

    def test_long_signatures_are_wrapped(self):
        text = python_entry.wrapped_call("name", [f"argument_{i}: int = 1" for i in range(8)], " -> Tensor")
        self.assertTrue(all(len(line) <= python_entry.WIDTH for line in text.split("\n")))
        self.assertEqual(text.replace("\n   ", "").replace("\n)", ")").replace("( ", "("),
                         f"name({', '.join(f'argument_{i}: int = 1' for i in range(8))}) -> Tensor")

    def test_modules_are_found_by_their_imports(self):
        package = package_source.Package(self.reader.stubs.folder, ".pyi")
        self.assertEqual(package.find("meshard", "moved")[:2], ("meshard._other", "moved"))
        self.assertEqual(package.find("meshard", "Box")[:2], ("meshard._meshard", "Box"))
        self.assertIsNone(package.find("meshard", "nothing"))


if __name__ == "__main__":
    unittest.main(verbosity=0)
