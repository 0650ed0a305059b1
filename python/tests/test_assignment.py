"""What assignments to elements and in-place operators change: the tensor that is named, or it is an error."""

import numpy as np
import pytest

import meshard as ms

MESH = ms.Mesh({"x": 8})


def matrix():
    return ms.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))


def assign(x, key, value):
    x[key] = value


# --- parts are values ----------------------------------------------------------------------------


@pytest.mark.parametrize("part", [
    lambda x: x[0], lambda x: x[:, 1:], lambda x: x[::-1], lambda x: x[None], lambda x: x.T, lambda x: x.mT,
    lambda x: x.transpose(), lambda x: x.transpose(1, 0), lambda x: x.reshape(3, 2), lambda x: x.reshape(-1),
    lambda x: x.ravel(), lambda x: x.swapaxes(0, 1), lambda x: x[None].squeeze(), lambda x: next(iter(x)),
    lambda x: ms.reshape(x, (6,)), lambda x: x + 1, lambda x: ms.asarray(x, copy=True)])
def test_an_assignment_to_a_temporary_is_an_error(part):
    x = matrix()
    with pytest.raises(TypeError, match="lost"):
        part(x)[0] = 5
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("part", [lambda x: x[0], lambda x: x[:, 1], lambda x: x.T, lambda x: x.reshape(6),
                                  lambda x: [row for row in x][1]])
def test_an_assignment_to_a_part_is_an_error_while_the_whole_is_there(part):
    x = matrix()
    row = part(x)
    with pytest.raises(TypeError, match=r"not a view.*copy\(\)"):
        row[0] = 5
    own = part(x).copy()
    own[0] = 5
    own += 1
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_an_in_place_operator_gives_a_part_a_new_value():
    x = matrix()
    row = x[0]
    row += 1
    assert row.tolist() == [1, 2, 3] and x.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_part_of_nothing_else_may_be_assigned_to():
    x = ms.arange(6).reshape(2, 3)
    x[0, 1] = 7
    x[1] += 10
    assert x.tolist() == [[0, 7, 2], [13, 14, 15]]
    y = (x * 2)[0]
    y[0] = -1
    assert y.tolist() == [-1, 14, 4]


def test_in_place_operators_on_elements_write_to_the_tensor():
    x, expected = matrix(), matrix().numpy().copy()
    x[0] += 1
    x[1, 2] *= 3
    x[:, 0] -= 5
    x[0, 1] /= 2
    x[..., 2] **= 2
    expected[0] += 1
    expected[1, 2] *= 3
    expected[:, 0] -= 5
    expected[0, 1] /= 2
    expected[..., 2] **= 2
    np.testing.assert_array_equal(x.numpy(), expected)
    held = {"w": x}
    held["w"][0] = 0
    held["w"][1] += 1
    assert x[0].tolist() == [0, 0, 0] and x[1, 1].item() == 5
    with pytest.raises(TypeError, match="lost"):
        x[0][1] += 1


def test_a_whole_index_is_a_copy():
    x = matrix()
    y, z = x[...], x.copy()
    y[0, 0] = z[0, 0] = 9
    assert x[0, 0].item() == 0 and y[0, 0].item() == z[0, 0].item() == 9


# --- captured tensors ----------------------------------------------------------------------------


def transformations():
    vector = np.ones(3, np.float32)
    return {
        "jit": lambda f: ms.jit(f)(vector),
        "grad": lambda f: ms.grad(lambda x: ms.sum(f(x)))(vector),
        "vjp": lambda f: ms.vjp(f, vector),
        "jvp": lambda f: ms.jvp(f, (vector,), (vector,)),
        "hessian": lambda f: ms.hessian(lambda x: ms.sum(f(x)))(vector),
        "vmap": lambda f: ms.vmap(f)(vector[None]),
        "checkpoint": lambda f: ms.checkpoint(f)(vector),
        "scan": lambda f: ms.scan(lambda c, x: (f(x), c), vector, vector[None]),
        "while_loop": lambda f: ms.while_loop(lambda c: ms.sum(c) < 3, f, ms.zeros(3)),
        "fori_loop": lambda f: ms.fori_loop(0, 2, lambda i, c: f(c), ms.zeros(3)),
        "cond": lambda f: ms.cond(ms.asarray(True), f, f, vector),
        "manual": lambda f: ms.manual(MESH, ms.P("x"), ms.P("x"), f)(np.ones(24, np.float32)),
        "jit of grad": lambda f: ms.jit(ms.grad(lambda x: ms.sum(f(x))))(vector),
        "jit in jit": lambda f: ms.jit(lambda x: ms.jit(f)(x))(vector),
    }


@pytest.mark.parametrize("name", transformations())
@pytest.mark.parametrize("change", [lambda t, x: assign(t, 0, x[0]), lambda t, x: t.__iadd__(x)], ids=["element", "+="])
def test_a_captured_tensor_cannot_be_assigned_to(name, change):
    table = ms.zeros(3)

    def f(x):
        change(table, x)
        return table * x

    with pytest.raises(ms.FailedPreconditionError, match=r"captures.*copy\(\)"):
        transformations()[name](f)
    assert table.tolist() == [0, 0, 0]
    table[0] = 1  # allowed again
    assert table.tolist() == [1, 0, 0]


@pytest.mark.parametrize("name", transformations())
def test_own_tensors_may_be_assigned_to(name):
    table = ms.zeros(3)

    def f(x):
        made = [ms.zeros(3), ms.asarray([0.0, 0, 0]), table.copy(), table[...], +table, table.astype("float32")]
        if name == "manual":  # where a local value cannot be assigned to elements of a full one
            made = [x * 0, +x, x.copy()]
        for own in made:
            own[0] = x[0]
            own += 1
            x = x + own * 0
        return x

    transformations()[name](f)
    assert table.tolist() == [0, 0, 0]


# --- arguments of jitted functions ---------------------------------------------------------------


def change(x, state):
    x[0] = 5
    state["n"] += 1
    state["w"][1] = x[0] * 2
    return x, state["n"]


@pytest.mark.parametrize("wrap", [lambda f: f, ms.jit, lambda f: ms.jit(ms.jit(f)), lambda f: ms.jit(lambda *a: f(*a))])
def test_a_jitted_function_changes_what_the_plain_one_changes(wrap):
    f = wrap(change)
    for _ in range(2):
        x, state = ms.ones(3), {"w": ms.zeros(2), "n": ms.asarray(1)}
        n = state["n"]
        y, count = f(x, state)
        assert x.tolist() == y.tolist() == [5, 1, 1]
        assert state["w"].tolist() == [0, 10] and n.item() == count.item() == 2


def test_an_argument_of_another_library_cannot_be_changed():
    f = ms.jit(lambda x: assign(x, 0, 1.0) or x)
    array = np.zeros(2, np.float32)
    with pytest.raises(TypeError, match="another library"):
        f(array)
    assert array.tolist() == [0, 0]


def test_a_jitted_function_that_changes_a_sharded_argument():
    x = ms.mark_sharding(ms.zeros(8), MESH, ms.P("x"))
    f = ms.jit(lambda x: assign(x, slice(1, 3), 4.0))
    f(x)
    f(x)
    assert x.tolist() == [0, 4, 4, 0, 0, 0, 0, 0] and f.stats.traces <= 2


KEYS = [1, (2, -1), slice(1, 4), (slice(None), 2), (..., slice(None, None, -2)), [0, 3, 3, 1], ([1, 1], [0, 0]),
        (slice(0, 2), [2, 2, 0]), np.arange(20).reshape(5, 4) % 3 == 0, np.array([True, False, True, True, False])]


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "min", "max"])
def test_at_combines_each_element_as_often_as_the_key_has_it(name, key):
    ufunc = {"min": np.minimum, "max": np.maximum}.get(name) or getattr(np, name)
    start = np.arange(20, dtype="float32").reshape(5, 4) + 1
    for values in (3.0, np.arange(start[key].size, dtype="float32").reshape(start[key].shape) + 2):
        expected = start.copy()
        ufunc.at(expected, key, values)
        x = ms.asarray(start)
        for run in (lambda x, v: getattr(x.at[key], name)(v), ms.jit(lambda x, v: getattr(x.at[key], name)(v))):
            np.testing.assert_allclose(run(x, ms.asarray(values)).numpy(), expected, rtol=1e-6)
        np.testing.assert_array_equal(x.numpy(), start)


def test_at_sets_gets_and_applies():
    x = ms.asarray(np.arange(6, dtype="float32"))
    assert x.at[[1, 4]].set([9, 8]).tolist() == [0, 9, 2, 3, 8, 5]
    assert x.at[2:4].get().tolist() == [2, 3]
    assert x.at[::2].apply(lambda v: -v).tolist() == [0, 1, -2, 3, -4, 5]
    gradient = ms.grad(lambda v: (v.at[[0, 0]].add(v[1:3]) * 2).sum())(x)
    assert gradient.tolist() == [2, 4, 4, 2, 2, 2]
    with pytest.raises(TypeError, match="at\\[\\].divide of int32"):
        ms.asarray([1, 2]).at[0].divide(2)
    with pytest.raises(ValueError, match="do not broadcast"):
        x.at[0:2].add(np.ones(3, "float32"))


def test_divmod_and_round():
    x = ms.asarray([7.25, -3.6])
    assert [each.tolist() for each in divmod(x, 2)] == [[3, -2], pytest.approx([1.25, 0.4])]
    assert [each.tolist() for each in divmod(9, ms.asarray([4, 2]))] == [[2, 4], [1, 1]]
    assert round(x).tolist() == [7, -4] and round(x, 1).tolist() == pytest.approx([7.2, -3.6])
