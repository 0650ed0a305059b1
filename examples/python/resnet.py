"""Trains ResNet-18 on synthetic images, with the batch split over the devices: the C++ example `resnet` in Python.

    python examples/python/resnet.py --steps 20 --width 16

The losses are those of the C++ program.
"""

import argparse
import dataclasses
import functools
import pathlib

import numpy as np

import meshard
from meshard import Mesh, P, nn, optim, random

STAGES, BLOCKS_PER_STAGE, CLASSES = 4, 2, 10

# --- model ------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class ConvNorm:
    """A convolution without bias, and the normalization of its result."""

    conv: nn.Conv
    norm: nn.BatchNorm

    def __call__(self, x, state, stride, training):
        """The result, and the new running statistics."""
        y = self.conv(x, strides=stride, padding="same")
        return self.norm(y, state, training=training, momentum=0.9)


@dataclasses.dataclass
class BlockState:
    """The running statistics of a block's normalizations."""

    first: nn.BatchStatistics
    second: nn.BatchStatistics
    shortcut: nn.BatchStatistics | None


@dataclasses.dataclass
class Block:
    """Two convolutions, and the way around them: the identity, or a convolution of 1 x 1 where the size changes."""

    first: ConvNorm
    second: ConvNorm
    shortcut: ConvNorm | None

    def __call__(self, x, state, training):
        """The result, and the new state."""
        stride = 1 if self.shortcut is None else 2
        y, first = self.first(x, state.first, stride, training)
        y, second = self.second(nn.relu(y), state.second, 1, training)
        shortcut = None
        if self.shortcut is not None:
            x, shortcut = self.shortcut(x, state.shortcut, stride, training)
        return nn.relu(x + y), BlockState(first, second, shortcut)


@dataclasses.dataclass
class State:
    """The running statistics of all normalizations."""

    stem: nn.BatchStatistics
    blocks: list[BlockState]


@dataclasses.dataclass
class ResNet:
    """The parameters of ResNet-18 (He et al.: Deep Residual Learning for Image Recognition, 2016)."""

    stem: ConvNorm
    blocks: list[Block]
    head: nn.Linear

    def __call__(self, images, state, training):
        """The logits [batch, classes] of images [batch, height, width, 3], and the new state."""
        x, stem = self.stem(images, state.stem, 2, training)
        x = nn.max_pool(nn.relu(x), 3, strides=2, padding="same")
        blocks = []
        for block, own in zip(self.blocks, state.blocks, strict=True):
            x, own = block(x, own, training)
            blocks.append(own)
        return self.head(meshard.mean(x, axis=(1, 2))), State(stem, blocks)


def make_conv_norm(make, window, inputs, outputs, scale=nn.init.ones()):
    conv = nn.make_conv(make, (window, window), inputs, outputs, bias=False, kernel=nn.init.he_normal())
    return ConvNorm(conv, nn.BatchNorm(make((outputs,), P("filters"), scale),
                                       make((outputs,), P("filters"), nn.init.zeros())))


def make_resnet(make, width=64):
    """Creates (parameters, state). Names of dimensions are "channels" and "filters"."""
    stem, state, inputs = make_conv_norm(make, 7, 3, width), nn.make_batch_statistics(make, width), width
    blocks, states = [], []
    for i in range(STAGES * BLOCKS_PER_STAGE):
        outputs = width << i // BLOCKS_PER_STAGE
        first = make_conv_norm(make, 3, inputs, outputs)
        # Blocks begin as their shortcuts (Goyal et al., 2017).
        second = make_conv_norm(make, 3, outputs, outputs, scale=nn.init.zeros())
        own = [nn.make_batch_statistics(make, outputs) for _ in range(2)]
        shortcut = None
        if inputs != outputs:
            shortcut = make_conv_norm(make, 1, inputs, outputs)
            own.append(nn.make_batch_statistics(make, outputs))
        else:
            own.append(None)
        blocks.append(Block(first, second, shortcut))
        states.append(BlockState(*own))
        inputs = outputs
    head = nn.make_linear(make, inputs, CLASSES, names=("channels", "classes"))
    return ResNet(stem, blocks, head), State(state, states)


# --- training ---------------------------------------------------------------------------------------------------------

sgd = optim.Sgd(rate=0.01, momentum=0.9)


@functools.partial(meshard.jit, donate_argnames=("model", "state", "velocities"))
def train_step(model, state, velocities, images, labels):
    """One step of SGD with momentum: the new model, state and velocities, and the loss before the step."""
    def loss_of(model):
        logits, after = model(images, state, True)
        return nn.cross_entropy(logits, labels), after

    (loss, state), gradients = meshard.value_and_grad(loss_of, has_aux=True)(model)
    model, velocities = sgd.update(model, gradients, velocities)
    return model, state, velocities, loss


def batch_of(rules, key, step, count, size):
    """The synthetic images of a step and their labels: a pattern for each class, and noise."""
    labels = rules.mark(np.array([(7 * i + 3 * step) % CLASSES for i in range(count)], np.int32), P("batch"))
    patterns = random.normal(random.fold_in(key, 0), (CLASSES, size, size, 3))
    noise = random.normal(random.fold_in(key, step), (count, size, size, 3))
    return rules.mark(noise + meshard.take(patterns, labels, axis=0), P("batch")), labels


def train(rules, steps, batch, size, width, seed, progress=lambda step, loss: None):
    """The trained model, its state, and the loss of every step."""
    model, state = nn.create(rules, seed, lambda make: make_resnet(make, width))
    velocities, key, losses = sgd.init(model), random.key(seed), []
    for step in range(1, steps + 1):
        model, state, velocities, loss = train_step(model, state, velocities, *batch_of(rules, key, step, batch, size))
        losses.append(float(loss))
        progress(step, losses[-1])
    return model, state, losses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", type=int, default=8, help='devices along "data"')
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32, help="images of a step")
    parser.add_argument("--size", type=int, default=64, help="height and width of an image")
    parser.add_argument("--width", type=int, default=64, help="filters of the first stage")
    parser.add_argument("--seed", type=int, default=1, help="of the initial weights and of the images")
    parser.add_argument("--losses", type=pathlib.Path, help="writes the loss of every step, one per line")
    parser.add_argument("--save", type=pathlib.Path, help="writes parameters and running statistics (safetensors)")
    options = parser.parse_args()
    meshard.configure_runtime(cpu_devices=max(8, options.devices))
    rules = nn.AxisRules(Mesh({"data": options.devices}), {"batch": "data"})
    model, state, losses = train(rules, options.steps, options.batch, options.size, options.width, options.seed,
                                 lambda step, loss: print(f"step {step:3}   loss {loss:.4f}", flush=True))
    # The statistics of all batches, instead of those of one.
    images, labels = batch_of(rules, random.key(options.seed), options.steps + 1, options.batch, options.size)
    evaluated = meshard.jit(lambda model, state, x, labels: nn.cross_entropy(model(x, state, False)[0], labels))
    print(f"loss of other images, with the running statistics: {float(evaluated(model, state, images, labels)):.4f}")
    if options.losses:
        options.losses.write_text("\n".join(map(repr, losses)) + "\n")
    if options.save:
        meshard.io.save(options.save, (model, state))


if __name__ == "__main__":
    main()
