"""A call, and the table of operations that can be drawn."""

import dataclasses
import typing

OPERATIONS = {}  # family -> {name: draw}


@dataclasses.dataclass
class Call:
    """The computation of one case.

    inputs: numpy arrays, the operands in order. f: the same call in JAX, from arrays to an array or a tuple. at: the
    attributes, as the README of the recorded cases describes them. exact: results must be equal, even floats.
    derivative: whether derivatives make sense. mappable: whether any permutation of an operand's elements is also a valid
    operand. positions: results are positions or counts, which are i32 in meshard and as wide as JAX's integers in JAX.
    matrix: operands are matrices, whose algorithms are stable in the norm, not for each element. by_operand: result k is a
    derivative by inexact operand k.
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
