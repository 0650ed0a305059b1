"""A program whose types mypy checks against the package's stubs (`./dev python types`). It also runs."""

import dataclasses
from typing import Any

import numpy as np

import meshard
from meshard import Tensor, optim
from meshard.pipeline import Pipeline, Stage, one_forward_one_backward, timeline


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


def pipelined(steps: int) -> float:
    stages = [Stage(meshard.Mesh({"x": 4}, [0, 1, 2, 3]), meshard.ones((4, 4)), lambda w, x: meshard.tanh(x @ w)),
              Stage(meshard.Mesh({"x": 4}, [4, 5, 6, 7]), meshard.ones((4,)), lambda w, h, x: meshard.mean(h @ w),
                    name="last")]
    schedule = one_forward_one_backward(2, 4)
    work: str = schedule.order(0)[0].work
    bubble: float = timeline(schedule, forward=[1.0, 2.0]).bubble
    assert work == "forward" and 0 < bubble < 1
    pipeline = Pipeline(stages, schedule, optimizer=optim.Sgd(rate=0.1))
    losses = [float(pipeline.step([meshard.ones((2, 4))] * 4)) for _ in range(steps)]
    peaks: list[int] = pipeline.stats.peak_activations
    assert peaks == [2, 1]
    return losses[-1]


if __name__ == "__main__":
    print(pipelined(2), train(3), sums(meshard.ones((3, 4)))[0].numpy(), batched(meshard.ones((2, 2))))
