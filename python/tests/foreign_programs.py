"""Programs of structures of arrays, by name; compare_foreign.py draws the arrays' libraries."""

import dataclasses
import pathlib
import tempfile
import typing

import numpy as np

import meshard as ms
from meshard import P


class Pair(typing.NamedTuple):
    left: typing.Any
    right: typing.Any


@dataclasses.dataclass
class Part:
    w: typing.Any
    kind: str = dataclasses.field(default="part", metadata={"static": True})


SHAPES = ((), (3,), (2, 3), (4, 2))
FLOATS = ("float32", "float32", "float64", "float16", "bfloat16", "complex64")
ANY = (*FLOATS, "int32", "int8", "uint16", "int64", "bool")


def array_of(rng, shape, dtype):
    """Random elements, of which no program overflows."""
    dtype = ms.asarray(0, dtype=dtype).numpy().dtype
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        return rng.integers(0, 7, shape).astype(dtype)
    values = rng.uniform(0.5, 1.5, shape)
    return (values + 1j * rng.uniform(0.5, 1.5, shape)).astype(dtype) if dtype.kind == "c" else values.astype(dtype)


def structure_of(rng, leaf, depth=2):
    """A random structure, not empty, whose leaves `leaf()` makes."""
    kind = rng.integers(0, 6) if depth else 0
    if kind == 0:
        return leaf()
    parts = [structure_of(rng, leaf, depth - 1) for _ in range(rng.integers(1, 4))]
    if kind == 1:
        return {f"p{i}": part for i, part in enumerate(parts)}
    if kind == 2:
        return parts
    if kind == 3:
        return tuple(parts)
    return Pair(parts[0], parts[-1]) if kind == 4 else Part(parts[0])


def loss(p):
    """A float of rank 0 that depends on every element."""
    total = ms.zeros(())
    for i, leaf in enumerate(ms.tree.leaves(p)):
        real = ms.real(leaf * ms.conj(leaf)) if leaf.dtype.kind == "c" else leaf
        total = total + ms.sum(ms.sin(ms.astype(real, "float32") * (i + 1)))
    return total * total


def doubled(p):
    return ms.tree.map(lambda x: x + x, p)


def _leaves(dtypes=FLOATS, shapes=SHAPES):
    def draw(rng):
        def leaf():
            return array_of(rng, shapes[rng.integers(len(shapes))], dtypes[rng.integers(len(dtypes))])
        return structure_of(rng, leaf)
    return draw


def _like(rng, p):
    return ms.tree.map(lambda x: array_of(rng, x.shape, x.dtype), p)


@ms.jit
def _jitted(p, factor):
    return ms.tree.map(lambda x: x * factor, p)


@ms.custom_vjp
def _own(p):
    return loss(p)


_own.defvjp(lambda p: (loss(p), p), lambda p, g: (ms.tree.map(lambda x: x * ms.astype(g, x.dtype), p),))


def _restored(p):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "a.safetensors"
        state = {"p": p, "step": 3}
        ms.io.save(path, state)
        return ms.io.restore(path, like=state)


def _stepped(p, g):
    adam = ms.optim.Adam(rate=0.125)
    new, state = adam.update(p, g, adam.init(p))
    return ms.optim.Sgd(rate=0.5, momentum=0.5).init(new), new, state, ms.optim.clip_by_global_norm(g, 0.5)


def _scanned(p, xs):
    def step(carry, x):
        return ms.tree.map(lambda c: c + c, carry), ms.tree.map(lambda y: y * y, x)
    return ms.scan(step, p, xs)


def _summed_by_device(x):
    mesh = ms.Mesh({"x": 2})
    return ms.manual(mesh, P("x"), P())(lambda part: ms.all_reduce(ms.sum(part, axis=0), "x"))(x)


def _operators(x, y):
    own = ms.asarray(x)
    return [own + y, own * y, own - y, own == y, own <= y, ms.add(x, y), ms.where(own == y, x, y), ms.stack([x, y]),
            ms.concat([ms.reshape(x, (-1,)), ms.reshape(y, (-1,))]), ms.sum(x), ms.maximum(x, y)]


def _same_shape(dtypes):
    def draw(rng):
        shape, dtype = SHAPES[rng.integers(len(SHAPES))], dtypes[rng.integers(len(dtypes))]
        return array_of(rng, shape, dtype), array_of(rng, shape, dtype)
    return draw


def _batch(rng):
    return _leaves(("float32",), ((2,), (2, 3), (2, 2)))(rng)


def _twice(draw):
    def both(rng):
        p = draw(rng)
        return p, _like(rng, p)
    return both


_STORED = tuple(dtype for dtype in ANY if dtype != "complex64")
_REAL = ("float32", "float64", "float16", "bfloat16")

# name: (arguments of a random number generator, function of these).
PROGRAMS = {
    "grad": (lambda rng: (_leaves(FLOATS)(rng),), lambda p: ms.grad(loss)(p)),
    "value_and_grad": (_twice(_leaves(FLOATS)), lambda p, q: ms.value_and_grad(
        lambda a, b: loss(a) * loss(b), argnums=(0, 1))(p, q)),
    "vjp": (_twice(_leaves(FLOATS)), lambda p, q: ms.vjp(doubled, p)[1](q)),
    "jvp": (_twice(_leaves(FLOATS)), lambda p, q: ms.jvp(doubled, (p,), (q,))),
    "linearize": (_twice(_leaves(_REAL)), lambda p, q: ms.linearize(loss, p)[1](q)),
    "hvp": (_twice(_leaves(("float32",))), lambda p, q: ms.hvp(loss, (p,), (q,))),
    "hessian": (lambda rng: (_leaves(("float32",), ((), (2,)))(rng),), lambda p: ms.hessian(loss)(p)),
    "jacrev": (lambda rng: (_leaves(("float32",), ((), (2,)))(rng),), lambda p: ms.jacrev(doubled)(p)),
    "jit": (lambda rng: (_leaves(ANY)(rng),), lambda p: _jitted(p, 2)),
    "jit_of_grad": (lambda rng: (_leaves(FLOATS)(rng),), lambda p: ms.jit(ms.grad(loss))(p)),
    "grad_of_jit": (_twice(_leaves(("float32",))), lambda p, q: ms.grad(lambda a: loss(a) * ms.jit(loss)(q))(p)),
    "checkpoint": (lambda rng: (_leaves(FLOATS)(rng),), lambda p: ms.grad(ms.checkpoint(loss))(p)),
    "custom_vjp": (lambda rng: (_leaves(("float32",))(rng),), lambda p: (_own(p), ms.grad(_own)(p))),
    "vmap": (lambda rng: (_batch(rng),), lambda p: ms.vmap(loss)(p)),
    "scan": (lambda rng: (_leaves(ANY[:-1])(rng), _batch(rng)), _scanned),
    "map": (lambda rng: (_batch(rng),), lambda p: ms.map(loss, p)),
    "fori": (lambda rng: (_leaves(("float32", "int32"))(rng),), lambda p: ms.fori_loop(0, 3, lambda i, c: doubled(c), p)),
    "while": (lambda rng: (_leaves(("float32",))(rng), np.float32(4)), lambda p, end: ms.while_loop(
        lambda c: c[0] < end, lambda c: (c[0] + 1, doubled(c[1])), (0.0, p))),
    "cond": (lambda rng: (rng.random() < 0.5, _leaves(ANY[:-1])(rng)), lambda on, p: ms.cond(
        ms.asarray(on), doubled, lambda q: ms.tree.map(lambda x: x, q), p)),
    "switch": (lambda rng: (array_of(rng, (), "int32"), _leaves(FLOATS)(rng)), lambda i, p: ms.switch_case(
        i, [loss, lambda q: loss(q) * 2], p)),
    "mark": (lambda rng: (_leaves(ANY, ((4, 2), (2, 3), (8,)))(rng),), lambda p: ms.mark_sharding(
        p, ms.Mesh({"d": 2}), P("d"))),
    "transfer": (lambda rng: (_leaves(ANY, ((4, 2), (8,)))(rng),), lambda p: ms.transfer(p, ms.Mesh({"d": 2}), P("d"))),
    "manual": (lambda rng: (array_of(rng, (4, 2), "float32"),), _summed_by_device),
    "tree": (_twice(_leaves(ANY[:-1])), lambda p, q: ms.tree.map(lambda a, b: a + b, p, q)),
    "files": (lambda rng: (_leaves(_STORED)(rng),), _restored),
    "optim": (_twice(_leaves(("float32", "bfloat16"))), _stepped),
    "operators": (_same_shape(_STORED[:-1]), _operators),
    "asarray": (lambda rng: (_leaves(ANY)(rng),), lambda p: [ms.asarray(x) for x in ms.tree.leaves(p)]),
    "linear": (lambda rng: (array_of(rng, (2, 3), "float32"), array_of(rng, (3, 4), "float32"),
                            array_of(rng, (4,), "float32")), lambda x, w, b: ms.nn.Linear(w, b)(x)),
    "callback": (lambda rng: (array_of(rng, (2, 3), "float32"),), lambda x: ms.pure_callback(np.sin, x, x)),
}
