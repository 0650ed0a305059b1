"""Finds what the public names of an installed package are: their definitions in its Python files and stubs.

A definition is a node of Python's ast: of the source for what is written in Python, and of the stub for what is written
in C++. Nothing is imported, so a module that needs other packages can be read, too.
"""

import ast
import pathlib


class Source:
    """The text of one module by name: its functions, classes, values and imports."""

    def __init__(self, path):
        self.path = path
        self.names, self.stars = {}, []
        tree = ast.parse(path.read_text(encoding="utf-8"))
        self.doc = ast.get_docstring(tree)
        self._add(tree.body)

    def _add(self, body):
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                before = self.names.get(node.name, [])
                self.names[node.name] = [*before, node] if all(map(is_overload, before)) else [node]
            elif isinstance(node, ast.If):  # TYPE_CHECKING
                self._add(node.body)
            elif isinstance(node, ast.ImportFrom):
                place = "." * node.level + (node.module or "")
                for alias in node.names:
                    if alias.name == "*":
                        self.stars.append(place)
                    else:
                        self.names[alias.asname or alias.name] = [(place, alias.name)]
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                        for one, value in zip(target.elts, node.value.elts):
                            self.names[one.id] = [value]
                    elif isinstance(target, ast.Name):
                        self.names[target.id] = [node.value]
            elif isinstance(node, ast.AnnAssign):
                self.names[node.target.id] = [node]

    def public(self):
        """The names of `__all__`, if it is a list of names."""
        value = self.names.get("__all__", [None])[0]
        return [element.value for element in value.elts] if isinstance(value, ast.List) else None


def is_overload(node):
    return isinstance(node, ast.FunctionDef) and \
        any(ast.unparse(each).endswith("overload") for each in node.decorator_list)


class Package:
    """The modules of an installed package; `suffix` is `.pyi` for its stubs, `.py` for its sources."""

    def __init__(self, folder, suffix):
        self.folder, self.suffix, self.sources = pathlib.Path(folder), suffix, {}

    def module(self, name):
        """The Source of a module: `meshard.nn`. None if there is none."""
        if name not in self.sources:
            path = self.folder.joinpath(*name.split(".")[1:])
            files = (path.with_suffix(self.suffix), path / f"__init__{self.suffix}")
            found = [each for each in files if each.is_file()]
            self.sources[name] = Source(found[0]) if found else None
        return self.sources[name]

    def absolute(self, module, place):
        """The module that `place` names in an import of `module`: `..linalg`."""
        dots = len(place) - len(place.lstrip("."))
        if not dots:
            return place
        is_package = self.module(module).path.name.startswith("__init__")
        parts = module.split(".")
        parts = parts[:len(parts) - dots + is_package]
        return ".".join([*parts, *filter(None, place.lstrip(".").split("."))])

    def find(self, module, name, seen=()):
        """(module, name, nodes) of the definition of a name; None if it is not found. Nodes are empty for a module."""
        source = self.module(module)
        if source is None or (module, name) in seen:
            return None
        seen = (*seen, (module, name))
        for node in source.names.get(name, ()):
            if isinstance(node, tuple):
                place, original = node
                target = self.absolute(module, place)
                if self.module(f"{target}.{original}") is not None:
                    return f"{target}.{original}", "", []
                return self.find(target, original, seen)
            if isinstance(node, (ast.Name, ast.Attribute)):  # P = PartitionSpec, Tensor = _meshard.Tensor
                return self.find_path(module, ast.unparse(node), seen) or (module, name, [node])
            return module, name, source.names[name]
        for place in source.stars:
            if found := self.find(self.absolute(module, place), name, seen):
                return found
        if self.module(f"{module}.{name}") is not None:
            return f"{module}.{name}", "", []
        return None

    def find_path(self, module, path, seen):
        """As find(), for names with dots."""
        for name in path.split(".")[:-1]:
            found = self.find(module, name, seen)
            if found is None or found[2]:
                return None
            module = found[0]
        return self.find(module, path.split(".")[-1], seen)
