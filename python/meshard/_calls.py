"""What is wrong with the arguments of a call that a function of the extension module does not accept."""

import ast
import difflib
import functools
import numbers
import operator

_WORDS = {"int": "an integer", "float": "a number", "bool": "True or False", "str": "a string", "None": "None", "dict": "a dict",
          "tuple": "a tuple", "list": "a list", "Tensor": "a tensor"}
_MOST_SHOWN = 60  # characters of a value in a message


class _Form:
    """One form of a function: its parameters, read from the signature that nanobind has of it."""

    def __init__(self, signature):
        tree = ast.parse(signature.replace("\\", "default_") + ": ...").body[0]
        arguments = tree.args
        positional = [*arguments.posonlyargs, *arguments.args]
        first = len(positional) - len(arguments.defaults)
        # name -> (type, whether it may be left out)
        self.parameters = {each.arg: (each.annotation, i >= first) for i, each in enumerate(positional)}
        self.by_position = len(positional)
        for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            self.parameters[each.arg] = (each.annotation, default is not None)
        self.method = "self" in self.parameters  # which is given first, and is always right
        if self.method:
            del self.parameters["self"]
            self.by_position -= 1
        self.open = arguments.vararg is not None or arguments.kwarg is not None

    def problems(self, positional, by_name):
        """What keeps the form from taking these arguments, in words, the most telling first."""
        found, names = [], list(self.parameters)
        if self.method:
            positional = positional[1:]
        if len(positional) > self.by_position and not self.open:
            found.append(f"it takes at most {_counted(self.by_position)} by position ({', '.join(names[:self.by_position])}), "
                         f"not {len(positional)}")
        given = dict(zip(names, positional))
        for name, value in by_name.items():
            if name in given:
                found.append(f"{name} is given twice")
            elif name not in self.parameters and not self.open:
                near = difflib.get_close_matches(name, names, 1, 0.5)
                found.append(f"there is no argument {name!r}" + (f": the nearest is {near[0]!r}" if near else f": it takes {', '.join(names)}"))
            given[name] = value
        found += [f"the argument {name} is missing" for name, (_, optional) in self.parameters.items()
                  if name not in given and not optional]
        found += [f"{name} must be {words(self.parameters[name][0])}, not {_shown(value)}" for name, value in given.items()
                  if name in self.parameters and not fits(self.parameters[name][0], value)]
        dtypes = [name for name in given if name.endswith("dtype") and name in self.parameters]
        if not found and len(dtypes) == 1:  # whatever is a dtype, as the extension module knows
            found.append(f"{dtypes[0]} must be a dtype that meshard has, not {_shown(given[dtypes[0]])}")
        return found


def _counted(count):
    return f"{count} argument{'' if count == 1 else 's'}"


def _shown(value):
    """The value in a message, with its class: `'a' (str)`."""
    text = repr(value)
    if len(text) > _MOST_SHOWN or "\n" in text:
        text = f"{text.splitlines()[0][:_MOST_SHOWN]}..."
    return f"{text} ({type(value).__name__})"


def _alternatives(kind):
    """The types of a union."""
    if isinstance(kind, ast.BinOp) and isinstance(kind.op, ast.BitOr):
        return [*_alternatives(kind.left), *_alternatives(kind.right)]
    return [kind]


def _name(kind):
    """The last name of a type: `Mesh` of `meshard.Mesh`."""
    return "None" if isinstance(kind, ast.Constant) and kind.value is None else ast.unparse(kind).split("[")[0].split(".")[-1]


def _parts(kind):
    return kind.slice.elts if isinstance(kind.slice, ast.Tuple) else [kind.slice]


def words(kind):
    """A type of a signature in words: `a tensor or a number`."""
    if kind is None:
        return "another value"
    every = _alternatives(kind)
    names = [_name(each) for each in every]
    if "Tensor" in names and "complex" in names:  # how the signatures write what a tensor may be made of
        every = [each for each, name in zip(every, names, strict=True) if name not in ("Tensor", "complex")]
        return " or ".join(["a tensor or a number", *map(_word, every)])
    return " or ".join(map(_word, every))


def _word(kind):
    name = _name(kind)
    if name in ("Sequence", "list", "set") and isinstance(kind, ast.Subscript):
        inside = {"int": "integers", "float": "numbers", "str": "strings", "bool": "bools"}.get(_name(_parts(kind)[0]))
        if inside:
            return f"a sequence of {inside}"
        if [_name(each) for each in _alternatives(_parts(kind)[0])][:1] == ["Tensor"]:
            return "a sequence of tensors"
        return f"a sequence of {_name(_parts(kind)[0])}"
    if name == "Callable":
        return "a function"
    if name in ("Any", "object"):
        return "another value"
    return _WORDS.get(name, f"a {name}")


def fits(kind, value):
    """Whether the value may be of the type; True where the type is not known here."""
    return kind is None or any(_fits(each, value) for each in _alternatives(kind))


def _fits(kind, value):
    name = _name(kind)
    if name == "None":
        return value is None
    if name in ("int", "bool"):
        return _is_integer(value) and (name == "int" or isinstance(value, bool) or type(value).__name__ == "bool")
    if name in ("float", "complex"):
        return isinstance(value, numbers.Number) or hasattr(value, "__float__")
    if name in ("str", "dict"):
        return isinstance(value, {"str": str, "dict": dict}[name])
    if name == "Callable":
        return callable(value)
    if name == "Tensor":
        return _is_tensor(value)
    if name in ("Sequence", "list", "set", "tuple") and isinstance(kind, ast.Subscript):
        if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__iter__"):
            return False
        parts = _parts(kind)
        items = list(value)
        if name == "tuple" and not (len(parts) == 2 and _name(parts[1]) == "Ellipsis"):
            return len(items) == len(parts) and all(map(fits, parts, items))
        return all(fits(parts[0], item) for item in items)
    if ast.unparse(kind).startswith("meshard."):
        return any(each.__name__ == name for each in type(value).__mro__)
    return True


def _is_integer(value):
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def _is_tensor(value):
    """Whether the value may become a tensor: an array of any library, a number, or a list of them."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_tensor, value))
    return any(hasattr(value, name) for name in ("__array__", "__dlpack__", "__array_interface__", "__float__", "__complex__"))


@functools.lru_cache(maxsize=256)
def _forms(function):
    return [_Form(signature) for signature, *_ in function.__nb_signature__]


def wrong_argument(function, positional, by_name, text):
    """The message for a call that fits no form of `function`, a function of the extension module that failed with `text`.
    None where nothing is found, or where the text is about another function."""
    name = function.__name__
    if not text.startswith(f"{name}(): "):
        return None
    found = [form.problems(positional, by_name) for form in _forms(function)]
    fewest = min(found, key=len)
    if not fewest:
        return None
    owner = function.__qualname__.rpartition(".")[0].split(".")[-1]
    called = owner if name == "__init__" and owner else name
    return f"{called}(): {fewest[0]}"


def takes_function(name, function):
    """@error TypeError if `function` cannot be called."""
    if not callable(function):
        raise TypeError(f"{name}(): the first argument must be a function, not {_shown(function)}")

