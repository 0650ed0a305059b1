"""A call, and the table of those that can be drawn."""

import dataclasses
import typing

OPERATIONS = {}  # family -> {name: draw}


@dataclasses.dataclass
class Call:
    """What one case computes.

    inputs: numpy arrays, the operands in order. f: the same in JAX, from arrays to an array or a tuple. at: the
    attributes, as the README of the recorded cases describes them. exact: the result has to be equal, also where it is
    a float. derivative: whether derivatives make sense. mappable: whether any order of an operand's elements is an
    operand too. positions: results that are places or counts: i32 in meshard, in JAX as wide as its integers. matrix:
    its operands are matrices as wholes: algorithms for these are stable by the norm, not for each element. by_operand:
    result k is a derivative by inexact operand k.
    """
    inputs: list
    f: typing.Callable
    at: dict = dataclasses.field(default_factory=dict)
    exact: bool = False
    derivative: bool = True
    mappable: bool = True
    positions: bool = False
    matrix: bool = False
    by_operand: bool = False


def operation(family, name=None):
    """Registers a function from a Draw to a Call."""
    def register(draw):
        OPERATIONS.setdefault(family, {})[name or draw.__name__] = draw
        return draw
    return register
