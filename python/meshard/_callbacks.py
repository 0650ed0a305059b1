"""Python functions that compiled programs call, and what is reported to the user."""

import sys

import numpy

from . import _meshard, tree
from ._foreign_arrays import tensor_of
from ._meshard import Advice, Tensor

__all__ = ["pure_callback", "debug_print", "set_debug_print_handler", "set_advice_handler", "all_advice", "Advice",
           "set_stall_handler", "stall_seconds", "set_stall_seconds"]


def _is_dataclass(value):
    """dataclasses.is_dataclass, without the module, whose import takes about 1 ms."""
    return hasattr(value if isinstance(value, type) else type(value), "__dataclass_fields__")


def _types_in(types):
    """The structure with an abstract tensor for each object that has a shape and a dtype."""
    if isinstance(types, Tensor):
        return types
    if _meshard.is_foreign_array(types):
        return tensor_of(types)
    if hasattr(types, "shape") and hasattr(types, "dtype"):
        return _meshard.abstract_tensor(tuple(types.shape), types.dtype)
    if isinstance(types, dict):
        return {key: _types_in(value) for key, value in types.items()}
    if isinstance(types, tuple) and hasattr(types, "_fields"):
        return type(types)(*[_types_in(value) for value in types])
    if isinstance(types, (list, tuple)):
        return type(types)([_types_in(value) for value in types])
    if types is None or _is_dataclass(types):
        return types
    raise TypeError("a result type is an object with a shape and a dtype, such as abstract_tensor(shape, dtype), or a "
                    f"structure of these; not {types!r}")


def _arrays_like(types, result, path="the result"):
    """The arrays of a structure like `types`, in order."""
    if isinstance(types, Tensor):
        return [numpy.asarray(result) if hasattr(result, "dtype") else numpy.asarray(result, dtype=types.dtype)]
    if isinstance(types, dict):
        if not isinstance(result, dict) or result.keys() != types.keys():
            raise TypeError(f"{path} of the callback must be a dict with the keys {sorted(types)}, not {result!r}")
        return [array for key in sorted(types) for array in _arrays_like(types[key], result[key], f"{path}[{key!r}]")]
    if isinstance(types, (list, tuple)):
        if not isinstance(result, (list, tuple)) or len(result) != len(types):
            raise TypeError(f"{path} of the callback must be a sequence of {len(types)}, not {result!r}")
        return [array for i, (one, other) in enumerate(zip(types, result))
                for array in _arrays_like(one, other, f"{path}[{i}]")]
    if _is_dataclass(types):
        import dataclasses
        if type(result) is not type(types):
            raise TypeError(f"{path} of the callback must be a {type(types).__name__}, not {result!r}")
        return [array for field in dataclasses.fields(types) if not field.metadata.get("static", False)
                for array in _arrays_like(getattr(types, field.name), getattr(result, field.name),
                                          f"{path}.{field.name}")]
    if result is not None:
        raise TypeError(f"{path} of the callback must be None, not {result!r}")
    return []


def pure_callback(function, result_types, *args):
    """Calls a Python function with the values of tensors, as NumPy arrays, and returns its results as tensors.

    `result_types` is an object with a shape and a dtype (`abstract_tensor(shape, dtype)`, a tensor, an array), or a
    structure of these; the function returns arrays of these types in the same structure. Outside of jit, vmap and
    manual functions it is called at once; inside, each time the program runs.

    The function must depend on nothing but its arguments: the compiler may remove or repeat the call, and every device
    of a program makes it, with the whole arguments, in a thread of its own that takes the interpreter's lock. Inside a
    manual function, each device passes its local values. Under vmap it is called once for each member. It has no
    derivative: use custom_vjp. It must not wait for tensors. An exception becomes the error of the program, with its
    type, text and line.

    >>> @ms.jit
    ... def f(x):
    ...     return ms.pure_callback(np.cumsum, ms.abstract_tensor(x.shape, x.dtype), x)
    >>> f(ms.ones(3)).tolist()
    [1.0, 2.0, 3.0]
    """
    types = _types_in(result_types)
    wanted, around = tree.flatten(types)
    leaves, arguments = tree.flatten(args)

    def call(arrays):
        return _arrays_like(types, function(*arguments.unflatten(arrays)))

    results = _meshard.pure_callback(call, leaves, [(each.shape, each.dtype) for each in wanted])
    return around.unflatten(results)


def _positional(format, values, named):
    """The format with `{}` for each value, and the values in order."""
    import string
    text, ordered, automatic = "", [], 0
    for piece, name, spec, conversion in string.Formatter().parse(format):
        text += piece.replace("{", "{{").replace("}", "}}")
        if name is None:
            continue
        if spec or conversion:
            raise ValueError(f"debug_print prints whole tensors, without a format such as {{{name}:{spec}}}")
        if name == "":
            name, automatic = automatic, automatic + 1
        text += "{}"
        if isinstance(name, str) and not name.isdigit():
            if name not in named:
                raise ValueError(f"the format has {{{name}}}, but no value has this name")
            ordered.append(named[name])
        elif int(name) < len(values):
            ordered.append(values[int(name)])
        else:
            raise ValueError(f"the format has {{{name}}}, but there are {len(values)} values without a name")
    return text, ordered


def debug_print(format, *values, **named):
    """Prints a line with the elements of tensors when the program runs: `debug_print("x = {}, y = {y}", x, y=y)`.

    `{}` is the next value, `{0}` that of a position, `{y}` that of a name; `{{` and `}}` are braces. Outside of jit,
    vmap and manual functions, the values are computed and printed at once; inside, the program prints them each time
    it runs. The lines of one program may appear in any order, from a thread of the plugin; sync() waits for them. A
    sharded value is printed whole, once; inside a manual function each device prints its own.

    Lines go to sys.stdout, or to the function set by set_debug_print_handler().

    >>> ms.debug_print("x = {}", ms.arange(3))
    x = [0, 1, 2]
    """
    if named or "{" in format.replace("{}", "").replace("{{", ""):
        format, values = _positional(format, values, named)
    _meshard.debug_print(format, values)


def _print_line(line):
    sys.stdout.write(line + "\n")


def set_debug_print_handler(handler):
    """Sets the function that receives each line of debug_print(), without its line break. None prints to sys.stdout.

    It may be called from several threads, and must not wait for tensors. An exception becomes the error of the program.
    """
    _meshard.set_debug_print_handler(_print_line if handler is None else handler)


def set_advice_handler(handler):
    """Sets the function that is called with each new piece of Advice; None disables the calls.

    Without it, advice is written to the standard error stream if the log level is at least "warning" or
    MESHARD_ADVICE=1 is set. It may be called from several threads.
    """
    _meshard.set_advice_handler(handler)


def all_advice():
    """All advice given so far, oldest first."""
    return _meshard.all_advice()


def set_stall_handler(handler):
    """Sets the function that is called with a text once for each wait that takes too long; None disables the calls."""
    _meshard.set_stall_handler(handler)


def stall_seconds():
    """How long a wait may take before it is reported."""
    return _meshard.stall_seconds()


def set_stall_seconds(seconds):
    """Sets how long a wait may take before it is reported; 0 disables the reports."""
    _meshard.set_stall_seconds(seconds)


set_debug_print_handler(None)
