"""Records a graph of ATen operations as operations of meshard, at the user's lines."""

import contextlib
import contextvars
import functools
import operator
import re

import torch

from . import _batches
from ._convert import to_meshard
from ._lines import is_library
from ._table import NEED_NODE, lowering_of
from .lowerings import collectives

_FRAME = re.compile(r'File "([^"\n]+)", line (\d+), in (\S+)')
_MODULE = re.compile(r'^\s*in module "([^"\n]*)"', re.MULTILINE)

NUMBERS = "node of PyTorch"
"""In place of a file, where the lines are numbers of nodes."""

_numbered = contextvars.ContextVar("the nodes that are recorded at their numbers", default=None)


@contextlib.contextmanager
def numbered():
    """While active, nodes are recorded at lines of NUMBERS: line i is node i - 1 of the yielded list."""
    nodes = []
    token = _numbered.set(nodes)
    try:
        yield nodes
    finally:
        _numbered.reset(token)


def _at(function, args, kwargs):
    return function(*args, **kwargs)


@functools.lru_cache(maxsize=4096)
def _caller_at(file, line, name):
    """A function that calls another one and whose code has this line, where operations are then recorded."""
    first = _at.__code__.co_firstlineno
    call = next(l for *_, l in _at.__code__.co_lines() if l and l > first)
    code = _at.__code__.replace(co_filename=file, co_name=name, co_firstlineno=line - (call - first))
    return type(_at)(code, {})


def place_of(node):
    """The user's line that made a node, as (file, line, function); None if it is not known."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    if not frames:
        return None
    file, line, function = next((each for each in reversed(frames) if not is_library(each[0])), frames[-1])
    return file, int(line), function


def module_of(node):
    """The path of the module that made a node, such as `model.layers.0.mlp`; empty if it is not known."""
    found = _MODULE.findall(node.meta.get("stack_trace") or "")
    if found:
        return found[-1]
    calls = list((node.meta.get("nn_module_stack") or {}).values())  # of exported programs
    return calls[-1][0] if calls else ""


def where(node):
    """`file:line: ` of the user's line that made a node, to begin a message with; empty if unknown."""
    place = place_of(node)
    return f"{place[0]}:{place[1]}: " if place else ""


def missing(node):
    return NotImplementedError(f"{where(node)}[torch] {node.target} has no lowering to meshard")


def run_graph(module, inputs):
    """The results of a torch.fx.GraphModule of ATen operations for tensors of meshard."""
    values = {}
    remaining = iter(inputs)
    for node in module.graph.nodes:
        if node.op == "placeholder":
            values[node] = next(remaining)
        elif node.op == "get_attr":
            values[node] = _attribute(module, node.target)
        elif node.op == "output":
            return torch.fx.node.map_arg(node.args[0], values.__getitem__)
        else:
            values[node] = _call(node, values)
    raise ValueError("[torch] the graph has no output")


def _attribute(module, path):
    found = operator.attrgetter(path)(module)
    return to_meshard(found) if isinstance(found, torch.Tensor) else found


def _call(node, values):
    if node.op != "call_function":
        raise missing(node)
    args = torch.fx.node.map_arg(node.args, values.__getitem__)
    kwargs = torch.fx.node.map_arg(node.kwargs, values.__getitem__)
    plain = getattr(node.target, "__module__", "") in ("_operator", "math", _batches.__name__, collectives.__name__)
    function = node.target if plain else lowering_of(node.target)
    if function is None:
        raise missing(node)
    if function in NEED_NODE:
        kwargs = {**kwargs, "node": node}
    place, numbers = place_of(node), _numbered.get()
    if numbers is not None:
        numbers.append(node)
        place = NUMBERS, len(numbers), node.name
    try:
        return _caller_at(*place)(function, args, kwargs) if place else function(*args, **kwargs)
    except NotImplementedError as error:
        if not where(node):
            raise
        raise NotImplementedError(f"{where(node)}{error}") from error
    except Exception as error:
        symbols = (torch.SymInt, torch.SymFloat, torch.SymBool)
        if not any(isinstance(each.meta.get("val"), symbols) for each in node.all_input_nodes):
            raise
        raise NotImplementedError(f"{where(node)}[torch] {node.target} takes a number that is read from a tensor, which is "
                                  "known only when the program runs") from error
