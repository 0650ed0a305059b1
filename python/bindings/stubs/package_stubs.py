"""Stubs of the package's Python files: their signatures, with the types that the files leave out.

A parameter without a type may be anything. A function without a result type returns a Tensor if an op of its name does,
and otherwise anything. What a file makes while it is imported (`add = ops.add`) is found in the imported module.
"""

import ast
import importlib
import inspect
import textwrap

HEAD = "import typing\nfrom typing import Any\nfrom meshard._meshard import Tensor as Tensor\n"
KEPT_DECORATORS = {"overload", "property", "staticmethod", "classmethod", "setter", "dataclass", "contextmanager",
                   "cached_property"}
KEPT_CALLS = {"TypeVar", "ParamSpec", "namedtuple", "NamedTuple", "NewType"}
# Functions of the standard that return one array and are written in Python.
TENSORS = set("""arange asarray empty empty_like eye from_dlpack full full_like linspace ones ones_like tril triu zeros
zeros_like astype max mean min prod std sum var cumulative_sum cumulative_prod argmax argmin count_nonzero searchsorted
where concat expand_dims flip moveaxis permute_dims repeat reshape roll squeeze stack tile take take_along_axis all any
argsort sort matmul matrix_transpose tensordot vecdot diff cross det diagonal inv matrix_norm matrix_power matrix_rank
outer pinv solve svdvals trace vector_norm cholesky eigvalsh fft ifft fftn ifftn rfft irfft rfftn irfftn hfft ihfft
fftfreq rfftfreq fftshift ifftshift clip round positive isin dot swapaxes ravel flatten transpose cumsum cumprod conj
copy to_device T mT real imag""".split())
RESULTS = {"__repr__": "str", "__str__": "str", "__format__": "str", "__iter__": "typing.Iterator[Tensor]",
           "__contains__": "bool", "__dlpack_device__": "tuple[int, int]", "itemsize": "int", "device": "Any",
           "__setattr__": "None", "__init__": "None", "__exit__": "None", "__len__": "int", "__eq__": "bool",
           "__hash__": "int", "__bool__": "bool", "isdtype": "bool", "can_cast": "bool", "nonzero": "tuple[Tensor, ...]",
           "__init_subclass__": "None"}


def last_name(node):
    """The last part of a decorator or a called function: `dataclass` of `@dataclasses.dataclass(frozen=True)`."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def shown_default(node):
    """A default as it is in a stub: a number, a text, a name of a constant; `...` for anything else."""
    try:
        ast.literal_eval(node)
    except ValueError:
        return ast.Constant(...)
    return node


class Signatures:
    """The stub of one Python file."""

    def __init__(self, tensors, known):
        self.tensors = tensors  # names of functions that return a Tensor
        self.known = known  # (module, name) of what C++ defines, by id

    def result(self, name, in_class):
        if name in RESULTS:
            return RESULTS[name]
        return "Tensor" if not in_class and name in self.tensors else "Any"

    def function(self, node, indent, in_class):
        arguments = node.args
        every = arguments.posonlyargs + arguments.args
        first = every[0].arg if in_class and every and "staticmethod" not in map(last_name, node.decorator_list) else None
        for argument in [*every, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]:
            if argument is not None and argument.annotation is None and argument.arg != first:
                argument.annotation = ast.Name("Any")
        arguments.defaults = list(map(shown_default, arguments.defaults))
        arguments.kw_defaults = [None if each is None else shown_default(each) for each in arguments.kw_defaults]
        result = ast.unparse(node.returns) if node.returns else self.result(node.name, in_class)
        for decorator in node.decorator_list:
            if last_name(decorator) in KEPT_DECORATORS:
                yield f"{indent}@{ast.unparse(decorator)}"
        kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
        ignored = "  # type: ignore[override]" if node.name in ("__eq__", "__init_subclass__") else ""
        yield f"{indent}{kind} {node.name}({ast.unparse(arguments)}) -> {result}: ...{ignored}"

    def klass(self, node, indent):
        for decorator in node.decorator_list:
            if last_name(decorator) in KEPT_DECORATORS:
                yield f"{indent}@{ast.unparse(decorator)}"
        bases = [*map(ast.unparse, node.bases), *(f"{k.arg}={ast.unparse(k.value)}" for k in node.keywords)]
        yield f"{indent}class {node.name}{'(' + ', '.join(bases) + ')' if bases else ''}:"
        inner, known = indent + "    ", set()
        lines = []
        for each in node.body:
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
                known.add(each.name)
                lines += self.function(each, inner, in_class=True)
            elif isinstance(each, ast.AnnAssign):
                known.add(each.target.id)
                default = " = ..." if each.value is not None else ""
                lines.append(f"{inner}{each.target.id}: {ast.unparse(each.annotation)}{default}")
            elif isinstance(each, ast.ClassDef):
                lines += self.klass(each, inner)
            elif isinstance(each, ast.Assign):
                lines += [f"{inner}{target.id}: Any" for target in each.targets if isinstance(target, ast.Name)]
        for each in ast.walk(node):  # what methods set: self.name = ...
            if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store) and \
                    isinstance(each.value, ast.Name) and each.value.id == "self" and each.attr not in known:
                known.add(each.attr)
                lines.append(f"{inner}{each.attr}: Any")
        yield from lines or [f"{inner}..."]

    def statements(self, body, module):
        """The lines of a module's statements, and the names that they define."""
        lines, names, overloaded = [], {"Tensor"}, set()
        for node in body:
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                continue
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for alias in node.names:
                    if isinstance(node, ast.ImportFrom) and alias.name != "*":  # otherwise other stubs cannot import it
                        alias.asname = alias.asname or alias.name
                    names.add(alias.asname or alias.name)
                    if alias.name == "*":
                        source = importlib.import_module("." * node.level + (node.module or ""),
                                                         module.__package__ if node.level else None)
                        names |= set(source.__all__)
                lines.append(ast.unparse(node))
            elif isinstance(node, ast.If) and last_name(node.test).lstrip("_") == "TYPE_CHECKING":
                more, added = self.statements(node.body, module)
                lines, names = lines + more, names | added
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if node.name in ("__getattr__", "__dir__"):
                    continue  # of the module: with it, every name would be right
                names.add(node.name)
                if "overload" in map(last_name, node.decorator_list):
                    overloaded.add(node.name)
                elif node.name in overloaded:
                    continue  # the implementation
                lines += self.function(node, "", in_class=False)
            elif isinstance(node, ast.ClassDef):
                names.add(node.name)
                lines += self.klass(node, "")
            elif isinstance(node, ast.AnnAssign):
                names.add(node.target.id)
                lines.append(f"{node.target.id}: {ast.unparse(node.annotation)}")
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name, value = node.targets[0].id, getattr(module, node.targets[0].id, None)
                is_type = isinstance(node.value, ast.Call) and last_name(node.value) in KEPT_CALLS
                is_alias = isinstance(node.value, (ast.Name, ast.Attribute, ast.Subscript)) and \
                    (inspect.isclass(value) or callable(value) and "typing" in type(value).__module__ or
                     type(value).__module__ in ("collections.abc", "types") or inspect.isroutine(value))
                if name == "__all__" or name in names:
                    continue
                names.add(name)
                if id(value) in self.known and not name.startswith("_"):  # add = ops.add
                    lines.append(origin(value, name, self.known, module))
                    continue
                if is_type and isinstance(node.value.args[0], ast.Constant):
                    node.value.args[0].value = name
                lines.append(ast.unparse(node) if is_type or is_alias else variable(name, value))
        return lines, names


def variable(name, value):
    """The line that declares a variable."""
    kind = type(value)
    return f"{name}: {kind.__name__ if kind in (bool, int, float, str) else 'None' if value is None else 'Any'}"


def origin(value, name, known, module):
    """The line that declares what a module made while it was imported."""
    if id(value) in known:
        place, own = known[id(value)]
        return f"from {place} import {own} as {name}"
    place = getattr(value, "__module__", None)
    if inspect.ismodule(value):
        package, _, own = value.__name__.rpartition(".")
        return f"from {package} import {own} as {name}" if package else f"import {own} as {name}"
    if isinstance(place, str) and place != module.__name__ and place.startswith("meshard") and \
            getattr(inspect.sys.modules.get(place), getattr(value, "__name__", ""), None) is value:
        return f"from {place} import {value.__name__} as {name}"
    return variable(name, value)


def stub_of(module, known, tensors):
    """The text of the stub of an imported Python module. `known` has (module, name) of what C++ defines, by id."""
    with open(module.__file__, encoding="utf-8") as file:
        body = ast.parse(file.read()).body
    lines, names = Signatures(tensors, known).statements(body, module)
    public = getattr(module, "__all__", None)
    wanted = public if public is not None else [name for name in vars(module) if not name.startswith("_")]
    for name in wanted:
        if name not in names and hasattr(module, name) and getattr(module, name) is not module:
            lines.append(origin(getattr(module, name), name, known, module))
    if public is not None:
        lines.append(f"__all__ = {list(public)!r}")
    return HEAD + "\n".join(lines) + "\n"


def method_lines(tensor, tensors):
    """The stubs of methods and properties that Python files give to the class Tensor, which they are taken from."""
    lines = []
    for name, value in sorted(vars(tensor).items()):
        function = value.fget if isinstance(value, property) else value
        if not inspect.isfunction(function):
            continue
        if isinstance(value, property):
            lines.append("    @property")
        parameters = []
        for i, parameter in enumerate(inspect.signature(function).parameters.values()):
            annotation = inspect.Parameter.empty if i == 0 else Any_
            default = parameter.default
            if default is not parameter.empty and not isinstance(default, (bool, int, float, str, type(None))):
                default = Ellipsis_
            parameters.append(parameter.replace(annotation=annotation, default=default))
        result = RESULTS.get(name) or ("Tensor" if name in tensors else "Any")
        lines.append(f"    def {name}{inspect.Signature(parameters)} -> {result}:")
        doc = textwrap.indent(inspect.getdoc(value) or "", " " * 8).strip()
        lines.append(f'        """{doc}"""\n' if doc else "        ...\n")
        delattr(tensor, name)
    return "".join(line + "\n" for line in lines)


class _Text:
    """Prints as this text in a signature."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


Any_, Ellipsis_ = _Text("Any"), _Text("...")
