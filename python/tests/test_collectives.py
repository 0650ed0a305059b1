"""Communication between the devices of a manual region, by its public names."""

import inspect
import textwrap

import numpy as np
import pytest

import meshard as ms
from meshard import P

MESH = ms.Mesh({"x": 4})
NAMES = ["all_reduce", "all_gather", "all_gather_invariant", "reduce_scatter", "all_to_all", "collective_permute",
         "ring_shift", "axis_index", "vary"]
DATA = np.arange(16, dtype=np.float32).reshape(8, 2)


def manual(f, out_specs=P("x"), data=DATA):
    return ms.manual(MESH, P("x"), out_specs)(f)(data).numpy()


@pytest.mark.parametrize("name", NAMES)
def test_names_are_public_and_described(name):
    assert name in dir(ms)
    assert len([line for line in getattr(ms, name).__doc__.splitlines() if "->" not in line and line.strip()]) >= 1


def test_the_example_of_manual_runs():
    text = inspect.getdoc(ms.manual)
    lines = [line for line in text.splitlines() if line.startswith("    ")]
    assert lines
    names = {"ms": ms, "meshard": ms, "P": P, "mesh": MESH, **{name: getattr(ms, name) for name in dir(ms)}}
    names["mesh"] = MESH
    exec(textwrap.dedent("\n".join(lines)), names)  # noqa: S102  (it is the documentation's program)
    assert names["total"](ms.ones((8,))).item() == 8


def test_all_reduce():
    np.testing.assert_array_equal(manual(lambda x: ms.all_reduce(ms.sum(x, axis=0), "x"), P()), DATA.sum(0))
    np.testing.assert_array_equal(manual(lambda x: ms.all_reduce(ms.max(x, axis=0), "x", kind="max"), P()), DATA.max(0))


def test_all_gather():
    np.testing.assert_array_equal(manual(lambda x: ms.all_gather(x, "x", axis=0)), np.tile(DATA, (4, 1)))
    np.testing.assert_array_equal(manual(lambda x: ms.all_gather_invariant(x, "x", axis=0), P()), DATA)


def test_reduce_scatter():
    got = manual(lambda x: ms.reduce_scatter(ms.all_gather(x, "x", axis=0), "x", axis=0))
    np.testing.assert_array_equal(got, 4 * DATA)


def test_all_to_all():
    square = np.arange(64, dtype=np.float32).reshape(8, 8)
    got = manual(lambda x: ms.all_to_all(x, "x", 1, 0), P(None, "x"), square)
    np.testing.assert_array_equal(got, square)


def test_permutations():
    shifted = np.roll(DATA.reshape(4, 2, 2), 1, axis=0).reshape(8, 2)
    np.testing.assert_array_equal(manual(lambda x: ms.ring_shift(x, "x", 1)), shifted)
    pairs = [(i, (i + 1) % 4) for i in range(4)]
    np.testing.assert_array_equal(manual(lambda x: ms.collective_permute(x, "x", pairs)), shifted)


def test_axis_index_and_vary():
    got = manual(lambda x: x * 0 + ms.astype(ms.axis_index("x"), "float32"))
    np.testing.assert_array_equal(got[:, 0], np.repeat(np.arange(4), 2))
    np.testing.assert_array_equal(manual(lambda x: ms.vary(ms.ones((2, 2)), "x") * x), DATA)
