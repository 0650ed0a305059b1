"""A program whose types mypy checks against the package's stubs (`./dev python types`). It also runs."""

import dataclasses
from typing import Any

import numpy as np

import meshard
from meshard import Tensor


@dataclasses.dataclass
class Model:
    weight: Tensor
    bias: Tensor


def loss_of(model: Model, x: Tensor, y: Tensor) -> Tensor:
    difference = x @ model.weight + model.bias - y
    return meshard.mean(difference * difference)


@meshard.jit(donate_argnums=0)
def step(model: Model, x: Tensor, y: Tensor) -> tuple[Tensor, Model]:
    loss, gradient = meshard.value_and_grad(loss_of)(model, x, y)
    better: Model = meshard.tree.map(lambda w, g: w - 0.1 * g, model, gradient)
    return loss, better


def train(steps: int) -> float:
    x = meshard.asarray(np.ones((8, 4), np.float32))
    y = meshard.asarray(np.zeros((8, 2), np.float32))
    model = Model(meshard.ones((4, 2)), meshard.zeros((2,)))
    for _ in range(steps):
        loss, model = step(model, x, y)
    traces: int = step.stats.traces
    assert traces == 1
    return float(loss)


def sums(x: Tensor) -> tuple[Tensor, Any]:
    def body(total: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
        return total + row, total

    return meshard.scan(body, meshard.zeros((4,)), x)


def batched(x: Tensor) -> Tensor:
    rows: Tensor = meshard.vmap(lambda row: row * 2.0)(x)
    first: Tensor = rows[0]
    shape: tuple[int, ...] = rows.shape
    assert shape[1:] == first.shape
    return -rows + 1


if __name__ == "__main__":
    print(train(3), sums(meshard.ones((3, 4)))[0].numpy(), batched(meshard.ones((2, 2))))
