"""One name of the Python reference: its signatures, its documentation and its members, as Markdown."""

import ast
import inspect
import json
import re
import textwrap

import comment_text
from api_index import sentence_end

WIDTH = 100  # of signatures
LEFT_OUT = ("typing", "collections.abc", "builtins", "numpy.typing", "meshard._meshard", "_meshard")  # before types
UNTYPED = {"Any", "typing.Any", "object"}


def first_sentence(doc):
    """The first sentence of a docstring, in one line."""
    text = " ".join(doc.split("\n\n")[0].split())
    return text[:sentence_end(text)]


def default_text(node):
    """The default of a parameter or field as a reader would write it; None for a field without one."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "_option":
        node = node.args[0]
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("field"):
        named = {each.arg: each.value for each in node.keywords}
        if "default_factory" in named:
            return f"{ast.unparse(named['default_factory'])}()"
        return ast.unparse(named["default"]) if "default" in named else None
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return json.dumps(node.value, ensure_ascii=False)
    return ast.unparse(node)


def annotation_text(node):
    """A type as a reader would write it; empty if it says nothing."""
    if node is None:
        return ""
    text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)
    text = re.sub(rf"\b(?:{'|'.join(map(re.escape, LEFT_OUT))})\.(?:\w+\.)*(?=[A-Za-z])", "", text)
    return "" if text in UNTYPED else text.replace("'", '"') if "Literal" in text else text


def with_default(name, annotation, default):
    if default is None:
        return f"{name}: {annotation}" if annotation else name
    return f"{name}: {annotation} = {default}" if annotation else f"{name}={default}"


def parameter_text(argument, default):
    return with_default(argument.arg, annotation_text(argument.annotation), None if default is None else default_text(default))


def wrapped_call(name, arguments, result):
    """`name(arguments) -> result` in lines of at most WIDTH columns."""
    line = f"{name}({', '.join(arguments)}){result}"
    if len(line) <= WIDTH:
        return line
    lines, current = [f"{name}("], "   "
    for i, argument in enumerate(arguments):
        piece = f" {argument}{',' if i + 1 < len(arguments) else ''}"
        if len(current) + len(piece) > WIDTH and current.strip():
            lines.append(current)
            current = "   "
        current += piece
    return "\n".join([*lines, current, f"){result}"])


def call_text(name, node, result=None, in_class=False):
    """A function's signature: `name(x, axis: int = 0) -> Tensor`; `result` is used if the source has no type for it."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args]
    is_static = any(ast.unparse(each) == "staticmethod" for each in node.decorator_list)
    defaults = [None] * (len(every) - len(arguments.defaults)) + list(arguments.defaults)
    first = 1 if in_class and not is_static else 0
    pieces = []
    for i, (argument, default) in enumerate(zip(every, defaults)):
        if i < first:
            continue
        pieces.append(parameter_text(argument, default))
        if i + 1 == len(arguments.posonlyargs) and i + 1 < len(every):
            pieces.append("/")
    if arguments.vararg:
        pieces.append(with_default(f"*{arguments.vararg.arg}", annotation_text(arguments.vararg.annotation), None))
    elif arguments.kwonlyargs:
        pieces.append("*")
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults):
        pieces.append(parameter_text(argument, default))
    if arguments.kwarg:
        pieces.append(with_default(f"**{arguments.kwarg.arg}", annotation_text(arguments.kwarg.annotation), None))
    returns = annotation_text(node.returns) or (result or "")
    return wrapped_call(name, pieces, f" -> {returns}" if returns else "")


def fields_of(node):
    """(name, type, default or None, documentation) of each field of a dataclass or named tuple."""
    found = []
    for i, each in enumerate(node.body):
        if isinstance(each, ast.AnnAssign) and not each.target.id.startswith("_"):
            after = node.body[i + 1] if i + 1 < len(node.body) else None
            doc = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
            found.append((each.target.id, annotation_text(each.annotation),
                          None if each.value is None else default_text(each.value), inspect.cleandoc(doc)))
    return found


def decorators(node):
    return [ast.unparse(each) for each in node.decorator_list]


def is_dataclass(node):
    return any(re.match(r"(?:dataclasses\.)?dataclass\b", each) for each in decorators(node))


def is_property(node):
    return any(each.endswith("property") for each in decorators(node))


def constructor_text(name, node):
    """The signatures of a class: those of its constructor; `class Name` if it has none."""
    made = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name in ("__init__", "__new__")]
    overloaded = [each for each in made if is_decorated(each, "overload")]
    if made:
        return "\n".join(dict.fromkeys(re.sub(r"\) -> None$", ")", call_text(f"class {name}", each, in_class=True))
                                       for each in overloaded or made))
    bases = [ast.unparse(each) for each in node.bases]
    if is_dataclass(node) or any(each.endswith("NamedTuple") for each in bases):
        words = [with_default(field, kind, default) for field, kind, default, _ in fields_of(node)]
        if any("kw_only=True" in each for each in decorators(node)) and words:
            words.insert(0, "*")
        return wrapped_call(f"class {name}", words, "")
    shown = [each for each in bases if not each.startswith(("_", "typing.", "Generic"))]
    return f"class {name}({', '.join(shown)})" if shown else f"class {name}"


def is_decorated(node, name):
    return any(each.split(".")[-1] == name for each in decorators(node))


def members_of(node, bases):
    """Name -> nodes of the public methods and properties, those of bases first, in the order of the source."""
    found = {}
    for base in bases:
        found.update(members_of(base, []))
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and (not each.name.startswith("_") or each.name == "__call__") \
                and not any(text.endswith((".setter", ".deleter")) for text in decorators(each)):
            before = found.get(each.name, [])
            goes_on = before and all(is_decorated(other, "overload") for other in before)
            found[each.name] = [*before, each] if goes_on else [each]
    return found


def documentation(nodes):
    """The docstrings of overloads, each once, and only the longer one of two that begin alike."""
    texts = list(dict.fromkeys(filter(None, map(ast.get_docstring, nodes))))
    return "\n\n".join(text for text in texts if not any(other != text and other.startswith(text) for other in texts))


def markdown(doc):
    """A docstring as Markdown: indented lines are code, and so are `>>> ` lines with their output."""
    out, block, kind = [], [], None
    for line in [*doc.split("\n"), None]:
        if line is None:
            now = None
        elif kind == "pycon" and line:
            now = "pycon"
        elif line.startswith(">>> "):
            now = "pycon"
        elif line.startswith("    ") and (kind == "python" or not out or not out[-1].strip()):
            now = "python"
        else:
            now = "python" if kind == "python" and not line else None
        if now != kind and kind:
            while block and not block[-1].strip():
                block.pop()
            text = textwrap.dedent("\n".join(block))
            out += [f"```{'pycon' if text.startswith('>>> ') else kind}", *text.split("\n"), "```", ""]
            block = []
        kind = now
        if kind:
            block.append(line)
        elif line is not None and (line or (out and out[-1])):
            out.append(comment_text.escaped(line))
    return "\n".join(out).strip()


def cell(text):
    return comment_text.escaped(text).replace("|", "\\|").replace("\n", " ")


def code_cell(text):
    text = text.replace("|", "\\|")
    return f"`{text}`" if text else ""


class Entry:
    """A public name. `nodes` are its definition, `stubs` that of the stubs, which has the types of results."""

    def __init__(self, module, name, nodes, stubs, bases=()):
        self.module, self.name, self.nodes, self.stubs, self.bases = module, name, nodes, stubs, bases
        self.is_class = isinstance(nodes[0], ast.ClassDef)
        self.is_function = isinstance(nodes[0], ast.FunctionDef)
        self.doc = documentation(nodes) if self.is_class or self.is_function else ""
        stub = stubs[0] if stubs and not self.is_class and isinstance(stubs[0], ast.FunctionDef) else None
        self.result = annotation_text(stub.returns) if stub else ""

    def problems(self):
        """What is missing: a line for each name or method without documentation. A property may have only its type."""
        full = f"{self.module}.{self.name}"
        if (self.is_class or self.is_function) and not self.doc:
            yield f"{full} has no docstring"
        if self.is_class:
            for name, nodes in members_of(self.nodes[-1], self.bases).items():
                if not documentation(nodes) and not is_property(nodes[0]):
                    yield f"{full}.{name} has no docstring"

    def signature(self):
        """The declaration, with all overloads."""
        if self.is_class:
            return constructor_text(self.name, self.nodes[-1])
        if self.is_function:
            overloads = [each for each in self.nodes if is_decorated(each, "overload")]
            shown = overloads if len(overloads) == len(self.nodes) else self.nodes[-1:]
            return "\n".join(dict.fromkeys(call_text(self.name, each, self.result) for each in shown))
        return f"{self.name} = {ast.unparse(self.nodes[0])}"

    def member_lines(self):
        """The fields, properties and methods of a class."""
        node = self.nodes[-1]
        fields = [each for each in fields_of(node) if each[3]] if is_dataclass(node) else fields_of(node)
        rows = [(name, kind, doc) for name, kind, _, doc in fields]
        methods = []
        for name, nodes in members_of(node, self.bases).items():
            if is_property(nodes[0]) or is_decorated(nodes[0], "cached_property"):
                rows.append((name, annotation_text(nodes[0].returns), documentation(nodes).replace("\n\n", " ")))
            else:
                methods.append((name, nodes))
        lines = []
        if rows:
            lines += ["", "| attribute | type | |", "|---|---|---|"]
            lines += [f"| `{name}` | {code_cell(kind)} | {cell(doc)} |" for name, kind, doc in rows]
        for name, nodes in methods:
            of_class = is_decorated(nodes[0], "staticmethod") or is_decorated(nodes[0], "classmethod")
            start = f"{self.name}(...)" if name == "__call__" else f"{self.name}.{name}" if of_class else f".{name}"
            shown = "\n".join(dict.fromkeys(call_text(start, each, in_class=True) for each in nodes))
            lines += ["", "```python", shown, "```", "", markdown(documentation(nodes))]
        return lines

    def lines(self):
        """The section of the name."""
        out = [f"## `{self.name}`", "", "```python", self.signature(), "```"]
        if self.doc:
            out += ["", markdown(self.doc)]
        return out + (self.member_lines() if self.is_class else [])
