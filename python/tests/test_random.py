"""Random numbers: those of jax.random for the same keys, and the same on any mesh."""

import inspect

import numpy as np
import pytest

import meshard
from meshard import Mesh, P, random
from meshard import _meshard

jax = pytest.importorskip("jax")

SEED = 1234567


def keys(seed=SEED):
    """The same key for both."""
    return random.key(seed), jax.random.PRNGKey(seed)


def same_bits(actual, expected):
    expected = np.asarray(expected)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    np.testing.assert_array_equal(actual.numpy(), expected)


def close(actual, expected, tolerance=3e-6):
    expected = np.asarray(expected)
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual.numpy().astype(np.float64), expected.astype(np.float64), rtol=tolerance,
                               atol=tolerance)


def test_every_function_is_exported():
    bound = {name for name in dir(_meshard.random) if not name.startswith("_")}
    assert set(random.__all__) == bound
    for name in random.__all__:
        assert len(inspect.getdoc(getattr(random, name))) > 30


@pytest.mark.parametrize("seed", [0, 1, -1, 2**31 - 1])
def test_keys(seed):
    mine, theirs = keys(seed)
    same_bits(mine, theirs)
    for one, other in zip(random.split(mine, 3), jax.random.split(theirs, 3), strict=True):
        same_bits(one, other)
    same_bits(random.split_into(mine, (2, 3)), jax.random.split(theirs, (2, 3)))
    same_bits(random.fold_in(mine, 7), jax.random.fold_in(theirs, 7))


def test_fold_in_takes_a_traced_number():
    mine, theirs = keys()
    folded = meshard.jit(lambda key, step: random.fold_in(key, step))
    same_bits(folded(mine, 5), jax.random.fold_in(theirs, 5))


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5)])
def test_bits(dtype, shape):
    mine, theirs = keys()
    same_bits(random.bits(mine, shape, dtype), jax.random.bits(theirs, shape, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_uniform(dtype):
    mine, theirs = keys()
    same_bits(random.uniform(mine, (5, 11), dtype), jax.random.uniform(theirs, (5, 11), dtype))
    close(random.uniform(mine, (50,), low=-2, high=3), jax.random.uniform(theirs, (50,), minval=-2, maxval=3))


def test_integers_and_choices():
    mine, theirs = keys()
    same_bits(random.randint(mine, (40,), -3, 17), jax.random.randint(theirs, (40,), -3, 17))
    same_bits(random.randint(mine, (40,), 0, 256, "uint8"), jax.random.randint(theirs, (40,), 0, 256, "uint8"))
    same_bits(random.permutation(mine, 30), jax.random.permutation(theirs, 30))
    rows = np.arange(24, dtype=np.float32).reshape(8, 3)
    same_bits(random.permutation(mine, rows), jax.random.permutation(theirs, rows))
    same_bits(random.shuffle(mine, rows, axis=1), jax.random.permutation(theirs, rows, axis=1, independent=True))
    same_bits(random.choice(mine, 10, (4, 2)), jax.random.choice(theirs, 10, (4, 2)))
    same_bits(random.choice(mine, rows, 3, replace=False), jax.random.choice(theirs, rows, (3,), replace=False))
    same_bits(random.bernoulli(mine, 0.3, (50,)), jax.random.bernoulli(theirs, 0.3, (50,)))
    same_bits(random.rademacher(mine, (20,)), jax.random.rademacher(theirs, (20,), "int32"))
    logits = np.log(np.array([[0.1, 0.2, 0.7], [0.5, 0.4, 0.1]], np.float32))
    same_bits(random.categorical(mine, logits, shape=(9, 2)), jax.random.categorical(theirs, logits, shape=(9, 2)))
    same_bits(random.poisson(mine, 3.0, (40,)), jax.random.poisson(theirs, 3.0, (40,)))
    same_bits(random.geometric(mine, 0.25, (40,)), jax.random.geometric(theirs, 0.25, (40,)))


CONTINUOUS = {
    "normal": ((), {}),
    "cauchy": ((), {}),
    "exponential": ((), {}),
    "gumbel": ((), {}),
    "laplace": ((), {}),
    "logistic": ((), {}),
    "maxwell": ((), {}),
    "beta": ((2.0, 3.0), {}),
    "chisquare": ((4.0,), {}),
    "gamma": ((2.5,), {}),
    "loggamma": ((0.05,), {}),
    "generalized_normal": ((1.5,), {}),
    "lognormal": ((0.7,), {}),
    "pareto": ((3.0,), {}),
    "rayleigh": ((2.0,), {}),
    "triangular": ((-1.0, 0.5, 2.0), {}),
    "truncated_normal": ((-1.5, 0.5), {}),
    "wald": ((1.5,), {}),
    "weibull_min": ((1.5, 2.0), {}),
    "student_t": ((5.0,), {"name": "t"}),
    "fisher_f": ((5.0, 7.0), {"name": "f"}),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name):
    mine, theirs = keys()
    parameters, named = CONTINUOUS[name]
    expected = getattr(jax.random, named.get("name", name))(theirs, *parameters, shape=(4, 25))
    close(getattr(random, name)(mine, *parameters, (4, 25)), expected, 2e-5)


def test_vectors():
    mine, theirs = keys()
    alpha = np.array([0.5, 2.0, 3.0], np.float32)
    close(random.dirichlet(mine, alpha, (6,)), jax.random.dirichlet(theirs, alpha, (6,)), 2e-5)
    mean, covariance = np.array([1.0, -1.0], np.float32), np.array([[2.0, 0.5], [0.5, 1.0]], np.float32)
    close(random.multivariate_normal(mine, mean, covariance, (6,)),
          jax.random.multivariate_normal(theirs, mean, covariance, (6,), method="cholesky"), 2e-5)
    close(random.ball(mine, 3, shape=(6,)), jax.random.ball(theirs, 3, shape=(6,)), 2e-5)
    q = random.orthogonal(mine, 4).numpy()
    np.testing.assert_allclose(q.T @ q, np.eye(4), atol=2e-6)
    close(random.orthogonal(mine, 4), jax.random.orthogonal(theirs, 4), 2e-5)


def test_threefry_is_the_generator():
    key = random.key(SEED)
    high, low = np.zeros(6, np.uint32), np.arange(6, dtype=np.uint32)
    first, second = random.threefry(key, high, low)
    np.testing.assert_array_equal(first.numpy() ^ second.numpy(), random.bits(key, 6).numpy())


def test_values_do_not_depend_on_the_mesh():
    mesh = Mesh({"data": 2, "model": 4})

    @meshard.jit
    def on_mesh(key):
        return meshard.mark_sharding(random.bits(key, (8, 12)), mesh, P("data", "model"))

    made = on_mesh(random.key(5))
    assert made.sharding.spec == P("data", "model")
    np.testing.assert_array_equal(made.numpy(), random.bits(random.key(5), (8, 12)).numpy())


def test_errors():
    with pytest.raises(meshard.InvalidArgumentError, match="test_random.py"):
        random.uniform(random.key(1), (2,), "int32")
    with pytest.raises(meshard.InvalidArgumentError):
        random.split(np.zeros(3, np.uint32), 2)
    with pytest.raises(TypeError):
        random.normal(random.key(1))
