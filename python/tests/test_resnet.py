"""ResNet-18: the example in Python beside the same model of flax, and beside the example in C++."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import meshard
from meshard import Mesh, nn, random

ROOT = pathlib.Path(__file__).resolve().parents[2]
WHOLE = "MESHARD_NIGHTLY" in os.environ
STEPS, BATCH, SIZE, WIDTH = (20, 32, 64, 64) if WHOLE else (20, 16, 32, 8)

pytestmark = pytest.mark.skipif(not (ROOT / "examples/python").exists(), reason="needs the repository")


@pytest.fixture(scope="module")
def resnet():
    spec = importlib.util.spec_from_file_location("example_resnet", ROOT / "examples/python/resnet.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # for its dataclasses
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def trained(resnet):
    rules = nn.AxisRules(Mesh({"data": 8}), {"batch": "data"})
    return resnet.train(rules, STEPS, BATCH, SIZE, WIDTH, seed=1)


def numbers_of(structure):
    """The arrays of a structure by their names in checkpoints."""
    leaves = meshard.tree.leaves(structure)
    return {name: leaf.numpy() for name, leaf in zip(meshard.io.names(structure), leaves, strict=True)}


def place_in_flax(name):
    """The path of flax's parameter or statistic: modules of blocks have names with points."""
    *path, leaf = name.split(".")
    if path[0] == "blocks":
        path = [".".join(path[:3]), *path[3:]]
    if leaf in ("mean", "variance"):
        path.append("norm")
    return [*path, {"weight": "kernel", "variance": "var"}.get(leaf, leaf)]


def in_flax(structure):
    """The arrays of a structure as flax's dictionaries."""
    whole = {}
    for name, value in numbers_of(structure).items():
        *path, leaf = place_in_flax(name)
        table = whole
        for part in path:
            table = table.setdefault(part, {})
        table[leaf] = value
    return whole


def flax_resnet(linen, jnp):
    """The same model: modules have the paths of our parameters."""

    class ConvNorm(linen.Module):
        filters: int
        window: int
        stride: int

        @linen.compact
        def __call__(self, x):
            x = linen.Conv(self.filters, (self.window,) * 2, self.stride, "SAME", use_bias=False, name="conv")(x)
            # The fast variance loses digits: it is a difference of squares.
            return linen.BatchNorm(use_running_average=False, momentum=0.9, use_fast_variance=False, name="norm")(x)

    class Model(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.relu(ConvNorm(WIDTH, 7, 2, name="stem")(x))
            x = linen.max_pool(x, (3, 3), (2, 2), "SAME")
            for i in range(8):
                filters = WIDTH * 2 ** (i // 2)
                stride = 1 if x.shape[-1] == filters else 2
                y = linen.relu(ConvNorm(filters, 3, stride, name=f"blocks.{i}.first")(x))
                y = ConvNorm(filters, 3, 1, name=f"blocks.{i}.second")(y)
                if stride == 2:
                    x = ConvNorm(filters, 1, 2, name=f"blocks.{i}.shortcut")(x)
                x = linen.relu(x + y)
            return linen.Dense(10, name="head")(jnp.mean(x, (1, 2)))

    return Model()


def test_losses_and_statistics_are_those_of_flax(resnet, trained):
    jax, linen, optax = (pytest.importorskip(name) for name in ("jax", "flax.linen", "optax"))
    import jax.numpy as jnp
    first, state = nn.create(None, 1, lambda make: resnet.make_resnet(make, WIDTH))
    params, statistics = in_flax(first), in_flax(state)
    model, tx = flax_resnet(linen, jnp), optax.sgd(0.01, momentum=0.9)

    @jax.jit
    def step(params, statistics, moments, images, labels):
        def loss_of(params):
            logits, after = model.apply({"params": params, "batch_stats": statistics}, images, mutable=["batch_stats"])
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), after["batch_stats"]

        (loss, after), gradients = jax.value_and_grad(loss_of, has_aux=True)(params)
        updates, moments = tx.update(gradients, moments)
        return optax.apply_updates(params, updates), after, moments, loss

    moments, losses, rules = tx.init(params), [], nn.AxisRules()
    for i in range(1, STEPS + 1):
        images, labels = (x.numpy() for x in resnet.batch_of(rules, random.key(1), i, BATCH, SIZE))
        params, statistics, moments, loss = step(params, statistics, moments, images, labels)
        losses.append(float(loss))
    _, state, ours = trained
    np.testing.assert_allclose(ours, losses, rtol=0, atol=1e-4)
    assert losses[-1] < 0.8 * losses[0]
    worst = 0.0
    for name, value in numbers_of(state).items():
        expected = statistics
        for part in place_in_flax(name):
            expected = expected[part]
        size = max(1, float(np.abs(expected).max()))
        worst = max(worst, float(np.abs(value - expected).max()) / size)
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-4 * size, err_msg=name)
    print(f"width {WIDTH}, {SIZE} x {SIZE}, {BATCH} images: losses {losses[0]:.4f} to {losses[-1]:.4f}, within "
          f"{np.abs(np.subtract(ours, losses)).max():.1e}; running statistics within {worst:.1e}")


def test_losses_are_those_of_cpp(trained, tmp_path):
    folder = os.environ.get("MESHARD_EXAMPLES")
    if not folder and WHOLE:
        pytest.skip("needs the C++ examples")
    path = pathlib.Path(__file__).parent / "data/resnet_losses.txt"
    if folder:
        path = tmp_path / "losses.txt"
        arguments = ["--steps", STEPS, "--batch", BATCH, "--size", SIZE, "--width", WIDTH, "--losses", path]
        subprocess.run([pathlib.Path(folder) / "resnet", *map(str, arguments)], check=True, timeout=600,
                       stdout=subprocess.PIPE)
    np.testing.assert_allclose(trained[2], np.loadtxt(path), rtol=0, atol=1e-5)
