"""Records a graph of ATen operations as operations of meshard, at the user's lines."""

import functools
import operator
import re

import torch

from . import _batches
from ._convert import to_meshard
from ._table import NEED_NODE, lowering_of
from .lowerings import collectives

_FRAME = re.compile(r'File "([^"\n]+)", line (\d+), in (\S+)')


def _at(function, args, kwargs):
    return function(*args, **kwargs)


@functools.lru_cache(maxsize=4096)
def _caller_at(file, line, name):
    """A function that calls another one, and whose code appears at this line: operations are recorded there."""
    first = _at.__code__.co_firstlineno
    call = next(l for *_, l in _at.__code__.co_lines() if l and l > first)
    code = _at.__code__.replace(co_filename=file, co_name=name, co_firstlineno=max(line - (call - first), 1))
    return type(_at)(code, {})


def place_of(node):
    """The user's line that made a node, as (file, line, function); None if it is not known."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    return (frames[-1][0], int(frames[-1][1]), frames[-1][2]) if frames else None


def missing(node):
    place = place_of(node)
    where = f'{place[0]}:{place[1]}: ' if place else ""
    return NotImplementedError(f"{where}[torch] {node.target} has no lowering to meshard")


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
    place = place_of(node)
    return _caller_at(*place)(function, args, kwargs) if place else function(*args, **kwargs)
