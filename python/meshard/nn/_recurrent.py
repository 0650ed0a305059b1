"""Recurrent cells, and their loop over time."""

import dataclasses
import typing

from .._meshard import Tensor
from .._meshard import nn as _nn
from . import init
from ._layers import InitializerLike
from ._make import Maker

__all__ = ["GruCell", "LstmCell", "LstmState", "SimpleCell", "make_gru_cell", "make_lstm_cell", "make_simple_cell",
           "rnn"]


@dataclasses.dataclass(eq=False)
class SimpleCell:
    """A simple (Elman) cell: input [inputs, features], recurrent [features, features], bias [features]."""

    input: Tensor
    recurrent: Tensor
    bias: Tensor

    def __call__(self, state, x) -> Tensor:
        """The next state: tanh(x input + bias + state recurrent), [batch..., features]."""
        return _nn.simple_cell(self, state, x)


@dataclasses.dataclass(eq=False)
class LstmState:
    """The state of an LSTM cell: [batch..., features] each. `hidden` is its output."""

    cell: Tensor
    hidden: Tensor


@dataclasses.dataclass(eq=False)
class LstmCell:
    """An LSTM cell (Hochreiter and Schmidhuber: Long Short-Term Memory, 1997).

    input is [inputs, 4, features], recurrent [features, 4, features], bias [4, features]. The gates are input, forget,
    cell, output.
    """

    input: Tensor
    recurrent: Tensor
    bias: Tensor

    def __call__(self, state: LstmState, x) -> LstmState:
        """The next state: cell' = f cell + i g, hidden' = o tanh(cell').

        i, f and o are logistic and g is tanh of x input + bias + hidden recurrent.
        """
        return LstmState(*_nn.lstm_cell(self, state, x))


@dataclasses.dataclass(eq=False)
class GruCell:
    """A GRU cell (Cho et al., 2014).

    input is [inputs, 3, features], recurrent [features, 3, features], bias [3, features], new_bias [features]. The
    gates are reset, update, new.
    """

    input: Tensor
    recurrent: Tensor
    bias: Tensor
    new_bias: Tensor

    def __call__(self, state, x) -> Tensor:
        """The next state: (1 - z) n + z state.

        r and z are logistic of x input + bias + state recurrent, and n is tanh(x input + bias + r (state recurrent +
        new_bias)).
        """
        return _nn.gru_cell(self, state, x)


def _make(make_cell, make, inputs, features, names, input, recurrent):
    first, second = names
    return make_cell(make, inputs, features, first, second, input, recurrent)


def make_simple_cell(make: Maker, inputs: int, features: int, *, names: tuple[str, str] = ("embed", "hidden"),
                     input: InitializerLike = init.lecun_normal(),
                     recurrent: InitializerLike = init.orthogonal()) -> SimpleCell:
    """Creates a SimpleCell. `names` are those of the inputs' and the features' dimensions, for AxisRules.

    `input` and `recurrent` are initializers; the bias starts as zeros.
    """
    return SimpleCell(*_make(_nn.make_simple_cell, make, inputs, features, names, input, recurrent))


def make_lstm_cell(make: Maker, inputs: int, features: int, *, names: tuple[str, str] = ("embed", "hidden"),
                   input: InitializerLike = init.lecun_normal(),
                   recurrent: InitializerLike = init.orthogonal()) -> LstmCell:
    """Creates an LstmCell. `names` are those of the inputs' and the features' dimensions, for AxisRules.

    `input` and `recurrent` are initializers of each gate's matrix; the bias starts as zeros.
    """
    return LstmCell(*_make(_nn.make_lstm_cell, make, inputs, features, names, input, recurrent))


def make_gru_cell(make: Maker, inputs: int, features: int, *, names: tuple[str, str] = ("embed", "hidden"),
                  input: InitializerLike = init.lecun_normal(),
                  recurrent: InitializerLike = init.orthogonal()) -> GruCell:
    """Creates a GruCell. `names` are those of the inputs' and the features' dimensions, for AxisRules.

    `input` and `recurrent` are initializers of each gate's matrix; the biases start as zeros.
    """
    return GruCell(*_make(_nn.make_gru_cell, make, inputs, features, names, input, recurrent))


@typing.overload
def rnn(cell: LstmCell, xs, initial: LstmState | None = None, *, reverse: bool = False, lengths=None,
        unroll: int = 1) -> tuple[Tensor, LstmState]: ...


@typing.overload
def rnn(cell: SimpleCell | GruCell, xs, initial=None, *, reverse: bool = False, lengths=None,
        unroll: int = 1) -> tuple[Tensor, Tensor]: ...


def rnn(cell, xs, initial=None, *, reverse=False, lengths=None, unroll=1):
    """A cell applied to each position of xs [batch..., time, inputs], as one loop of the program.

    Returns the outputs [batch..., time, features] and the last state. `initial` is the first state; by default zeros.
    The products with the inputs of all positions are computed before the loop.

    >>> cell = ms.nn.create(None, 1, lambda make: ms.nn.make_lstm_cell(make, 3, 8))
    >>> outputs, state = ms.nn.rnn(cell, ms.ones((2, 5, 3)))
    >>> outputs.shape
    (2, 5, 8)

    With `reverse` the loop runs from the last position to the first; the results are in the order of time anyway.
    `lengths` are the numbers of positions of the sequences, integers [batch...]; the others are padding, where the
    state is kept and the output is 0. `unroll` is the number of steps per iteration of the compiled loop.

    Raises InvalidArgumentError for xs of rank below 2 or of another width than the cell's input, and for a state or
    lengths of another shape.
    """
    if isinstance(cell, LstmCell):
        outputs, last = _nn.rnn_of_lstm_cell(cell, xs, initial, reverse, lengths, unroll)
        return outputs, LstmState(*last)
    if isinstance(cell, GruCell):
        return _nn.rnn_of_gru_cell(cell, xs, initial, reverse, lengths, unroll)
    if isinstance(cell, SimpleCell):
        return _nn.rnn_of_simple_cell(cell, xs, initial, reverse, lengths, unroll)
    raise TypeError(f"rnn() takes a SimpleCell, LstmCell or GruCell, not {type(cell).__name__}: use scan() for others")
