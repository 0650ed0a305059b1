"""Trains a small classifier of handwritten digits over a mesh of devices: the C++ example `digits` in Python.

    python examples/python/digits.py --mesh 2x4

The losses are those of the C++ program.
"""

import argparse
import dataclasses
import functools
import os
import pathlib

import numpy as np

import meshard
from meshard import Mesh, P, nn, optim

PIXELS, CLASSES, BATCH, HELD_BACK = 64, 10, 128, 360


class Random:
    """SplitMix64 (Steele, Lea and Flood, 2014): the same numbers as in C++."""

    def __init__(self, seed):
        self.state = seed

    def take(self, count):
        """The next `count` 64-bit numbers."""
        gamma = 0x9E3779B97F4A7C15
        z = np.uint64(self.state) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(gamma)
        self.state = (self.state + count * gamma) % 2**64
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))

    def shuffle(self, order):
        """Shuffles a list in place."""
        for i, number in zip(range(len(order), 1, -1), self.take(len(order) - 1).tolist()):
            order[i - 1], order[number % i] = order[number % i], order[i - 1]


# --- data -------------------------------------------------------------------------------------------------------------


def read_digits(path):
    """The pixels, 64 numbers in [0, 1] for each image, and the labels."""
    table = np.loadtxt(path, delimiter=",")
    return (table[:, :PIXELS] / 16).astype(np.float32), table[:, PIXELS].astype(np.int32)


def split(pixels, labels):
    """The training set, and a test set that is always the same."""
    order = list(range(len(labels)))
    Random(1998).shuffle(order)
    held_back, train = order[:HELD_BACK], order[HELD_BACK:]
    return (pixels[train], labels[train]), (pixels[held_back], labels[held_back])


def batches(pixels, labels, seed):
    """Random batches without end. Each pass over the data has a new order."""
    random, order = Random(seed), list(range(len(labels)))
    while True:
        random.shuffle(order)
        for first in range(0, len(order) - BATCH + 1, BATCH):
            numbers = order[first:first + BATCH]
            yield pixels[numbers], labels[numbers]


# --- model ------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Classifier:
    """An MLP with layers 64 -> 256 -> 128 -> 10.

    The first weight is split by columns and the second by rows, both over "model": each device computes its part of the
    256 hidden values and multiplies it by its own rows, so that one all-reduce combines the parts.
    """

    columns: nn.Linear
    rows: nn.Linear
    head: nn.Linear

    def __call__(self, images):
        """The logits of each image, f32[images, 10]."""
        return self.head(nn.relu(self.rows(nn.relu(self.columns(images)))))


def make_classifier(mesh, seed):
    """A model on the devices of `mesh`, whose weights depend on the seed only."""
    random = Random(seed)

    def make_linear(inputs, outputs, spec):
        # Uniform in [-limit, limit), for relu: He et al., 2015.
        limit = np.sqrt(6 / inputs)
        weight = (np.ldexp((random.take(inputs * outputs) >> np.uint64(11)).astype(np.float64), -52) - 1) * limit
        bias = np.zeros(outputs, np.float32)
        return nn.Linear(meshard.mark_sharding(weight.astype(np.float32).reshape(inputs, outputs), mesh, spec),
                         meshard.mark_sharding(bias, mesh, P(spec[1])))

    return Classifier(columns=make_linear(PIXELS, 256, P(None, "model")), rows=make_linear(256, 128, P("model", None)),
                      head=make_linear(128, CLASSES, P(None, None)))


# --- training ---------------------------------------------------------------------------------------------------------

adam = optim.Adam(rate=2e-3, epsilon=1e-6, form="efficient")


def loss_of(model, images, labels):
    """The mean cross-entropy of the predictions."""
    return nn.cross_entropy(model(images), labels)


@functools.partial(meshard.jit, donate_argnames=("model", "state"))
def train_step(model, state, images, labels):
    """One step of Adam: the new model and state, and the loss before the step."""
    loss, gradients = meshard.value_and_grad(loss_of)(model, images, labels)
    model, state = adam.update(model, gradients, state)
    return model, state, loss


def to_devices(pixels, labels, mesh):
    """The digits as tensors, split over "data"."""
    return meshard.mark_sharding(pixels, mesh, P("data", None)), meshard.mark_sharding(labels, mesh, P("data"))


def train(mesh, digits, steps, seed, progress=lambda step, loss: None):
    """The trained model, and the loss of every step."""
    model = make_classifier(mesh, seed)
    state = adam.init(model)
    losses = []
    for step, batch in zip(range(1, steps + 1), batches(*digits, seed)):
        model, state, loss = train_step(model, state, *to_devices(*batch, mesh))
        losses.append(float(loss))
        progress(step, losses[-1])
    return model, losses


def accuracy(model, digits, mesh):
    """The fraction of digits that the model classifies correctly."""
    images, labels = to_devices(*digits, mesh)
    logits = meshard.jit(lambda model, images: model(images))(model, images)
    return np.mean(logits.numpy().argmax(-1) == labels.numpy())


def main():
    cache = pathlib.Path(os.environ.get("MESHARD_CACHE", pathlib.Path.home() / ".cache/meshard"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mesh", default="2x4", help='devices along "data" (the batch) and "model" (the weights)')
    parser.add_argument("--devices", help="the ids of the devices, in row-major order: 4,5,6,7; default 0, 1, 2, ...")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1, help="of the initial weights and of the order of the digits")
    parser.add_argument("--data", default=cache / "data/digits.csv", help="64 pixels of 0..16 and a label in each line")
    parser.add_argument("--losses", type=pathlib.Path, help="writes the loss of every step, one per line")
    options = parser.parse_args()

    data, model = map(int, options.mesh.split("x"))
    devices = options.devices and list(map(int, options.devices.split(",")))
    mesh = Mesh({"data": data, "model": model}, device_ids=devices)
    meshard.configure_runtime(cpu_devices=max(8, mesh.size, *(id + 1 for id in devices or [])))
    digits, held_back = split(*read_digits(options.data))
    print(f"{len(digits[1])} training digits, {len(held_back[1])} held out; an MLP 64-256-128-10 on {mesh}")

    def progress(step, loss):
        if step * 10 % options.steps < 10:
            print(f"step {step:5} of {options.steps}   loss {loss:.4f}", flush=True)

    classifier, losses = train(mesh, digits, options.steps, options.seed, progress)
    print("the collectives of a training step:")
    for group in meshard.explain(train_step).groups:
        print(f"  {group}")
    print(f"accuracy on the held-out digits: {100 * accuracy(classifier, held_back, mesh):.2f} %")
    if options.losses:
        options.losses.write_text("\n".join(map(repr, losses)) + "\n")


if __name__ == "__main__":
    main()
