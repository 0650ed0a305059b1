"""Programs for export_database.py: functions of JAX with their arguments, as its users write and export them.

Imported by the interpreter that exports them, which need not have meshard. `programs()` yields `Program`s; those of
libraries that the interpreter lacks (optax, flax, equinox) are left out, and `missing_libraries()` names them.
"""

import dataclasses
import importlib.util

import export_functions
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

LIBRARIES = ("optax", "flax", "equinox")
DEVICES = np.array(jax.devices()[:8])


def mesh_of(devices, names, kind=AxisType.Auto):
    return Mesh(devices, names, axis_types=(kind,) * len(names))


GRID = mesh_of(DEVICES.reshape(2, 4), ("x", "y"))
LINE = mesh_of(DEVICES, ("d",))
CUBE = mesh_of(DEVICES.reshape(2, 2, 2), ("a", "b", "c"))
SQUARE = mesh_of(DEVICES[:4].reshape(2, 2), ("x", "y"))
REVERSED = mesh_of(DEVICES[::-1].reshape(2, 4), ("x", "y"))
EXPLICIT = mesh_of(DEVICES.reshape(2, 4), ("x", "y"), AxisType.Explicit)


@dataclasses.dataclass
class Program:
    name: str
    function: object
    arguments: tuple
    named: dict = dataclasses.field(default_factory=dict)
    of_jit: dict = dataclasses.field(default_factory=dict)
    of_export: dict = dataclasses.field(default_factory=dict)
    derivative: bool = False  # exported with its vjp, which is compared too
    mesh: object = None  # set while it is traced (explicit axes)
    refused: str = ""  # part of the reason, if it cannot run here


def missing_libraries():
    return [name for name in LIBRARIES if importlib.util.find_spec(name) is None]


def put(value, *spec, mesh=GRID):
    return jax.device_put(value, NamedSharding(mesh, P(*spec)))


def mark(value, *spec, mesh=GRID):
    return lax.with_sharding_constraint(value, NamedSharding(mesh, P(*spec)))


class Draw:
    """Values of one seed."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def f32(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32)

    def bf16(self, *shape):
        return self.f32(*shape).astype(jnp.bfloat16)

    def i32(self, *shape, end=10):
        return self.random.integers(0, end, shape).astype(np.int32)

    def c64(self, *shape):
        return (self.f32(*shape) + 1j * self.f32(*shape)).astype(np.complex64)


# --- functions of matrices ---------------------------------------------------------------------------------


def functions_of_matrices(draw):
    families = {
        "scipy": export_functions.scipy_functions(),
        "numpy": export_functions.numpy_functions(),
        "lax": export_functions.other_functions(),
    }
    smooth = (
        "sin",
        "tanh",
        "softmax",
        "cumsum",
        "sort",
        "var",
        "pad",
        "einsum",
        "einsum3",
        "logsumexp",
        "roll",
        "norm",
        "gelu",
        "take",
        "where",
        "convolve",
        "erf",
        "gammaln",
        "clip",
        "reduce_window",
        "rfft",
        "swish",
        "log_softmax",
        "stack",
        "resize",
        "interp",
        "kron",
        "logaddexp",
    )
    for family, functions in families.items():
        for name, function in functions.items():
            yield Program(f"{family}_{name}", function, (draw.f32(16, 16),), derivative=name in smooth)
            yield Program(
                f"{family}_{name}_split", function, (put(draw.f32(16, 16), "x", "y"),), derivative=name in smooth
            )
    for name, function in export_functions.linear_algebra().items():
        yield Program(f"linalg_{name}", function, (draw.f32(6, 6), draw.f32(6, 2)))
        yield Program(f"linalg_{name}_split", function, (put(draw.f32(6, 6), "x"), put(draw.f32(6, 2), "x")))
    yield Program(
        "linalg_batch", lambda a: jnp.linalg.cholesky(a @ a.mT + 6 * jnp.eye(4)), (put(draw.f32(8, 4, 4), "x"),)
    )
    yield Program("linalg_complex", lambda a: jnp.linalg.inv(a + 8 * jnp.eye(5)), (draw.c64(5, 5),))


# --- steps, loops, structures -----------------------------------------------------------------------------


def mlp(params, x):
    for w, b in zip(params["w"], params["b"]):
        x = jnp.tanh(x @ w + b)
    return x


def mlp_loss(params, x, y):
    return jnp.mean((mlp(params, x) - y) ** 2)


def mlp_step(params, x, y):
    loss, gradient = jax.value_and_grad(mlp_loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), {"loss": loss}


def mlp_scan(params, x, y):
    return lax.scan(lambda p, _: mlp_step(p, x, y), params, None, length=5)


def attention(q, k, v):
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 4
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(jnp.where(mask, scores, -1e9), -1), v)


def layer_norm(x, scale):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * scale


def models(draw):
    def params(place):
        return {
            "w": [place(draw.f32(16, 16) * 0.3, None, "y") for _ in range(3)],
            "b": [place(draw.f32(16), "y") for _ in range(3)],
        }

    for suffix, place in (("", lambda value, *spec: value), ("_split", put)):
        batch = lambda: (params(place), place(draw.f32(8, 16), "x"), place(draw.f32(8, 16), "x"))
        yield Program(f"mlp{suffix}", mlp, batch()[:2], derivative=True)
        yield Program(f"mlp_grad{suffix}", jax.value_and_grad(mlp_loss), batch())
        yield Program(f"mlp_step{suffix}", mlp_step, batch())
        yield Program(f"mlp_step_donated{suffix}", mlp_step, batch(), of_jit={"donate_argnums": 0})
        yield Program(f"mlp_scan{suffix}", mlp_scan, batch())
        yield Program(
            f"attention{suffix}",
            attention,
            tuple(place(draw.f32(4, 8, 6, 16), "x", "y") for _ in range(3)),
            derivative=True,
        )
        yield Program(
            f"layer_norm{suffix}",
            layer_norm,
            (place(draw.f32(8, 16), "x", "y"), place(draw.f32(16), "y")),
            derivative=True,
        )
        yield Program(
            f"convolution{suffix}",
            lambda x, w: lax.conv_general_dilated(x, w, (2, 2), "SAME"),
            (place(draw.f32(8, 3, 8, 8), "x"), place(draw.f32(4, 3, 3, 3))),
            derivative=True,
        )
        yield Program(
            f"experts{suffix}",
            lambda x, w, g: jnp.einsum("te,tef->tf", jax.nn.softmax(x @ g), jnp.einsum("td,edf->tef", x, w)),
            (place(draw.f32(16, 8), "x"), place(draw.f32(4, 8, 8), "y"), place(draw.f32(8, 4))),
            derivative=True,
        )
        yield Program(
            f"remat{suffix}",
            jax.grad(lambda x: jax.checkpoint(lambda y: jnp.sin(jnp.sin(y)))(x).sum()),
            (place(draw.f32(8, 16), "x", "y"),),
        )
    yield Program(
        "dot_product_attention",
        lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True),
        tuple(draw.f32(2, 8, 4, 16) for _ in range(3)),
    )
    yield Program("hessian", jax.hessian(lambda x: jnp.sum(jnp.sin(x) ** 3)), (draw.f32(5),))
    yield Program("jacobian_split", jax.jacfwd(lambda x: jnp.sin(x) * 2), (put(draw.f32(8), "d", mesh=LINE),))
    yield Program("vmap", jax.vmap(lambda a, b: a @ b), (draw.f32(5, 3, 4), draw.f32(5, 4, 2)))


def loops_and_branches(draw):
    yield Program(
        "scan",
        lambda x: lax.scan(lambda c, a: (c * 0.9 + a, c.sum()), jnp.zeros(16), x),
        (draw.f32(12, 16),),
        derivative=True,
    )
    yield Program(
        "scan_split",
        lambda x: lax.scan(lambda c, a: (c * 0.9 + a, c.sum()), jnp.zeros((8, 16)), x),
        (put(draw.f32(12, 8, 16), None, "x", "y"),),
    )
    yield Program(
        "while_split",
        lambda x: lax.while_loop(lambda s: s[1] < 5, lambda s: (jnp.sin(s[0] @ s[0].T), s[1] + 1), (x, 0)),
        (put(draw.f32(8, 8), "x", "y"),),
    )
    yield Program(
        "cond_split",
        lambda p, x: lax.cond(p, lambda x: x @ x, lambda x: x + 1, x),
        (np.bool_(True), put(draw.f32(8, 8), "x", "y")),
    )
    yield Program("switch", lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.exp], x), (np.int32(2), draw.f32(5)))
    yield Program(
        "fori_split",
        lambda x: lax.fori_loop(0, 4, lambda i, x: x + jnp.roll(x, 1, 0), x),
        (put(draw.f32(16, 4), "d", mesh=LINE),),
    )
    yield Program("map", lambda x: lax.map(lambda row: jnp.outer(row, row).sum(0), x), (draw.f32(5, 4),))
    yield Program(
        "nested_jit",
        lambda x: jax.jit(lambda y: jax.jit(jnp.sin)(y) + 1)(x) * jax.jit(jnp.sin)(x),
        (put(draw.f32(8), "d", mesh=LINE),),
        derivative=True,
    )

    @jax.custom_vjp
    def sine(x):
        return jnp.sin(x) * x

    sine.defvjp(lambda x: (sine(x), x), lambda x, g: (g * jnp.cos(x),))
    yield Program("custom_vjp", jax.grad(lambda x: sine(x).sum()), (put(draw.f32(16, 4), "d", mesh=LINE),))
    yield Program("custom_vjp_exported", sine, (draw.f32(16, 4),), derivative=True)

    @jax.custom_jvp
    def exponential(x):
        return jnp.exp(x)

    exponential.defjvp(lambda primals, tangents: (exponential(primals[0]), tangents[0] * 2))
    yield Program("custom_jvp", lambda x: jax.jvp(exponential, (x,), (x,)), (draw.f32(4),))


def structures(draw):
    yield Program(
        "by_name",
        lambda x, *, scale, bias: x * scale["s"] + bias[1],
        (draw.f32(4),),
        {"scale": {"s": draw.f32(4), "t": draw.f32(2)}, "bias": (draw.f32(4), draw.f32(4))},
    )
    yield Program(
        "nested",
        lambda t: {"a": [t[0], t[1]["z"]], "b": (None, {"c": t[1]["y"] + 1})},
        ((draw.f32(2), {"z": draw.f32(3), "y": draw.f32(4)}),),
    )
    yield Program("no_arguments", lambda: jnp.float32(3.0) + jnp.arange(4), ())
    yield Program("scalars", lambda a, b: a * b, (np.float32(2.5), np.int32(4)))
    yield Program("empty", lambda x: (x * 2, x.sum()), (np.zeros((0, 4), np.float32),))
    yield Program("unused", lambda a, b, c: a * 2, (draw.f32(3), draw.f32(4, 4), draw.i32(5)))
    yield Program("many", lambda *a: sum(a), tuple(draw.f32(4) for _ in range(60)))
    yield Program("passed_through", lambda x, y: (y, x, x + 1), (draw.f32(3), draw.f32(4)))
    yield Program("constant_result", lambda x: (x * 2, jnp.arange(16.0)), (put(draw.f32(8, 16), "x", "y"),))
    yield Program("one_value_split", lambda x: x + 1, (put(np.float32(3)),))


# --- manual regions, marks, meshes ------------------------------------------------------------------------


def manual_programs(draw):
    def manual(function, mesh, ins, outs, **options):
        return jax.shard_map(function, mesh=mesh, in_specs=ins, out_specs=outs, **options)

    grid = lambda: (put(draw.f32(8, 16), "x", "y"),)
    line = lambda *shape: (put(draw.f32(*shape), "d", mesh=LINE),)
    ring = [(i, (i + 1) % 8) for i in range(8)]
    yield Program(
        "manual_psum", manual(lambda x: lax.psum(x, "x"), GRID, P("x", "y"), P(None, "y")), grid(), derivative=True
    )
    yield Program(
        "manual_all_gather",
        manual(lambda x: lax.all_gather(x, "y", axis=1, tiled=True), GRID, P("x", "y"), P("x", None), check_vma=False),
        grid(),
    )
    yield Program(
        "manual_psum_scatter",
        manual(lambda x: lax.psum_scatter(x, "d", tiled=True), LINE, P(), P("d"), check_vma=False),
        (put(draw.f32(16, 4), mesh=LINE),),
    )
    yield Program(
        "manual_all_to_all",
        manual(lambda x: lax.all_to_all(x, "d", 1, 0, tiled=True), LINE, P("d"), P(None, "d"), check_vma=False),
        line(16, 8),
    )
    yield Program(
        "manual_ppermute",
        manual(lambda x: lax.ppermute(x, "d", ring), LINE, P("d"), P("d")),
        line(16, 4),
        derivative=True,
    )
    yield Program(
        "manual_axis_index",
        manual(lambda x: x * lax.axis_index("d").astype(jnp.float32), LINE, P("d"), P("d")),
        line(16, 4),
    )
    yield Program("manual_pmax", manual(lambda x: lax.pmax(x, ("x", "y")), GRID, P("x", "y"), P(None, None)), grid())
    yield Program("manual_partial", manual(lambda x: lax.psum(x, "x"), GRID, P("x"), P(), axis_names={"x"}), grid())
    yield Program("manual_pmean", manual(lambda x: lax.pmean(x * 2, "d"), LINE, P("d"), P()), line(16, 4))
    yield Program(
        "manual_scan",
        manual(
            lambda x: lax.scan(lambda c, _: (lax.ppermute(c, "d", ring), c.sum(keepdims=True)), x, None, length=3)[0],
            LINE,
            P("d"),
            P("d"),
        ),
        line(16, 4),
    )
    yield Program(
        "manual_half",
        manual(lambda x: lax.psum(x, "x"), SQUARE, P("x", "y"), P(None, "y")),
        (put(draw.f32(8, 16), "x", "y", mesh=SQUARE),),
    )
    yield Program(
        "manual_two",
        lambda x: manual(
            lambda z: (lax.pmin(z, "x"), lax.axis_size("y") * z), GRID, P("x", "y"), (P(None, "y"), P("x", "y"))
        )(x),
        grid(),
    )
    yield Program(
        "manual_grad",
        jax.grad(lambda x: manual(lambda z: lax.psum(jnp.sin(z), "x"), GRID, P("x", "y"), P(None, "y"))(x).sum()),
        grid(),
    )

    def attend(q, k):
        def turn(_, state):
            total, keys = state
            return total + q @ keys.T, lax.ppermute(keys, "d", ring)

        return lax.fori_loop(0, 8, turn, (lax.pcast(jnp.zeros((2, 2)), "d", to="varying"), k))[0]

    if hasattr(lax, "pcast"):
        yield Program("manual_ring", manual(attend, LINE, (P("d"), P("d")), P("d")), line(16, 4) + line(16, 4))


def marked_programs(draw):
    grid = lambda *shape: put(draw.f32(*(shape or (8, 16))), "x", "y")
    yield Program("marks", lambda x: mark(mark(jnp.sin(x), "y", "x") @ x.T, "x"), (grid(),), derivative=True)
    yield Program("uneven", lambda x: mark(x[:7, :9] * 2, "x", "y")[:, :5].sum(0), (grid(),))
    yield Program(
        "out_shardings", lambda x: x @ x.T, (grid(),), of_jit={"out_shardings": NamedSharding(GRID, P("y", "x"))}
    )
    yield Program("open_argument", lambda x, y: x @ y, (grid(), draw.f32(16, 4)))
    yield Program("all_open", lambda x: (x, mark(x, "x", "y") * 2), (draw.f32(8, 16),))
    yield Program("reversed_devices", lambda x: x @ x.T, (put(draw.f32(8, 16), "x", "y", mesh=REVERSED),))
    yield Program(
        "three_axes",
        lambda x, y: jnp.einsum("abc,cd->abd", x, y),
        (put(draw.f32(4, 4, 8), "a", "b", "c", mesh=CUBE), put(draw.f32(8, 4), ("b", "c"), mesh=CUBE)),
    )
    yield Program("gather", lambda x, i: x[i], (grid(16, 8), put(draw.i32(6, end=16))), derivative=True)
    yield Program(
        "scatter",
        lambda x, i, u: x.at[i].add(u),
        (grid(16, 8), put(draw.i32(6, end=16)), put(draw.f32(6, 8), None, "y")),
    )
    yield Program("slice", lambda x, i: lax.dynamic_slice(x, (i, 0), (4, 8)), (grid(16, 8), np.int32(3)))
    yield Program(
        "update", lambda x, u: lax.dynamic_update_slice(x, u, (2, 1)), (grid(16, 8), put(draw.f32(4, 4), "x"))
    )
    explicit = lambda *shape, spec: jax.device_put(draw.f32(*shape), NamedSharding(EXPLICIT, P(*spec)))
    yield Program(
        "explicit_einsum",
        lambda a, b: jnp.einsum("ij,jk->ik", a, b, out_sharding=P("x", "y")),
        (explicit(8, 16, spec=("x", None)), explicit(16, 8, spec=(None, "y"))),
        mesh=EXPLICIT,
    )
    yield Program(
        "explicit_reshard",
        lambda a: jax.sharding.reshard(jnp.sin(a), P("y", "x")),
        (explicit(8, 16, spec=("x", "y")),),
        mesh=EXPLICIT,
    )
    yield Program(
        "explicit_scan",
        lambda a: lax.scan(lambda c, _: (jnp.tanh(c), c.sum()), a, None, length=3),
        (explicit(8, 16, spec=("x", "y")),),
        mesh=EXPLICIT,
    )


# --- dtypes, random numbers, platforms --------------------------------------------------------------------


def dtypes(draw):
    yield Program("bf16", jnp.tanh, (draw.bf16(7, 3),))
    yield Program(
        "bf16_split",
        lambda a, b: (a.astype(jnp.float32) @ b.astype(jnp.float32)).astype(jnp.bfloat16),
        (put(draw.bf16(8, 16), "x", "y"), put(draw.bf16(16, 8), "y")),
    )
    yield Program("f16", lambda a: a * 2 + 1, (draw.f32(4, 4).astype(np.float16),))
    for name in ("float8_e4m3fn", "float8_e5m2"):
        yield Program(
            name, lambda a, name=name: (a.astype(jnp.float32) * 2).astype(name), (draw.f32(4, 4).astype(name),)
        )
    yield Program("int4_inside", lambda a: (a.astype(jnp.int4) + 1).astype(jnp.int32), (draw.i32(4, 4, end=6),))
    yield Program(
        "int4_argument",
        lambda a: (a + 1).astype(jnp.int32),
        (jnp.asarray(draw.i32(4, 4, end=6), jnp.int4),),
        refused="4",
    )
    yield Program("int4_result", lambda a: (a + 1).astype(jnp.int4), (draw.i32(4, 4, end=6),), refused="4")
    yield Program("complex", lambda a, b: (a * b, jnp.abs(a), jnp.real(b)), (draw.c64(4, 4), draw.c64(4, 4)))
    yield Program(
        "complex_split", lambda a: jnp.fft.ifft(jnp.fft.fft(a, axis=1) * 2, axis=1), (put(draw.c64(8, 16), "x", "y"),)
    )
    yield Program(
        "integers", lambda a, b: (a // (b + 1), a % (b + 1), a << 1, a ^ b), (draw.i32(8, 8, end=100), draw.i32(8, 8))
    )
    yield Program("uint8", lambda a: (a + a, a >> 1), (draw.i32(8, end=255).astype(np.uint8),))
    yield Program("bools_split", lambda a: (jnp.any(a, 0), jnp.logical_not(a)), (put(draw.f32(8, 8) > 0, "x", "y"),))


def random_programs(draw):
    key = np.array([5, 7], np.uint32)
    sample = lambda function: lambda data, *more: function(jax.random.wrap_key_data(data), *more)
    yield Program("random_normal", sample(lambda k: jax.random.normal(k, (8, 8))), (key,))
    yield Program("random_uniform_split", sample(lambda k: mark(jax.random.uniform(k, (8, 16)), "x", "y")), (put(key),))
    yield Program("random_integers", sample(lambda k: jax.random.randint(k, (64,), 0, 100)), (key,))
    yield Program("random_categorical", sample(jax.random.categorical), (key, draw.f32(8, 5)))
    yield Program("random_permutation", sample(lambda k: jax.random.permutation(k, 32)), (key,))
    yield Program("random_gamma", sample(lambda k: jax.random.gamma(k, 2.0, (16,))), (key,))
    yield Program("random_split", sample(lambda k: jax.random.key_data(jax.random.split(k, 4))), (key,))


def platforms(draw):
    three = {"platforms": ["cpu", "cuda", "tpu"]}
    yield Program("three_platforms", lambda x: jnp.sin(x) * 2, (draw.f32(4, 4),), of_export=three)
    branch = lambda x: lax.platform_dependent(x, cpu=lambda x: x @ x.T, tpu=lambda x: x @ x.T * 2)
    yield Program("platform_branch", branch, (draw.f32(4, 4),), of_export={"platforms": ["tpu", "cpu"]})
    yield Program(
        "platform_branch_split", branch, (put(draw.f32(8, 16), "x", "y"),), of_export={"platforms": ["tpu", "cpu"]}
    )
    yield Program("other_platform", lambda x: x * 2, (draw.f32(4),), of_export={"platforms": ["tpu"]}, refused="tpu")


# --- libraries --------------------------------------------------------------------------------------------


def register_namedtuples(value, seen=set()):
    """Lets an export keep the named tuples of an optimizer's state."""
    if not isinstance(value, tuple):
        return
    if hasattr(value, "_fields") and type(value) not in seen:
        seen.add(type(value))
        name = f"{type(value).__module__}.{type(value).__name__}"
        jax.export.register_namedtuple_serialization(type(value), serialized_name=name)
    for each in value:
        register_namedtuples(each)


def library_programs(draw):
    missing = missing_libraries()
    if "optax" not in missing:
        import optax

        for name in ("sgd", "adam", "adamw", "lamb", "lion", "rmsprop", "adafactor"):
            rule = getattr(optax, name)(1e-2)

            def step(params, state, x, y, rule=rule):
                loss, gradient = jax.value_and_grad(mlp_loss)(params, x, y)
                updates, state = rule.update(gradient, state, params)
                return optax.apply_updates(params, updates), state, loss

            params = {"w": [put(draw.f32(16, 16) * 0.3, None, "y")], "b": [put(draw.f32(16), "y")]}
            state = rule.init(params)
            register_namedtuples(state)
            yield Program(f"optax_{name}", step, (params, state, put(draw.f32(8, 16), "x"), put(draw.f32(8, 16), "x")))
    if "flax" not in missing:
        import flax.linen as nn

        class Net(nn.Module):
            @nn.compact
            def __call__(self, x):
                x = nn.relu(nn.BatchNorm(use_running_average=True)(nn.Conv(8, (3, 3))(x)))
                return nn.Dense(10)(nn.LayerNorm()(x.reshape(x.shape[0], -1)))

        x = draw.f32(8, 8, 8, 3)
        variables = Net().init(jax.random.key(0), x)
        yield Program("flax", Net().apply, (variables, x), derivative=True)
        yield Program(
            "flax_split", Net().apply, (jax.tree.map(lambda v: put(v, mesh=LINE), variables), put(x, "d", mesh=LINE))
        )
    if "equinox" not in missing:
        import equinox

        model = equinox.nn.MLP(8, 4, 16, 2, key=jax.random.key(1))
        weights, static = equinox.partition(model, equinox.is_array)
        yield Program(
            "equinox",
            lambda leaves, x: jax.vmap(
                equinox.combine(jax.tree.unflatten(jax.tree.structure(weights), leaves), static)
            )(x),
            (jax.tree.leaves(weights), draw.f32(8, 8)),
            derivative=True,
        )


def programs():
    draw = Draw(47)
    for family in (
        functions_of_matrices,
        models,
        loops_and_branches,
        structures,
        manual_programs,
        marked_programs,
        dtypes,
        random_programs,
        platforms,
        library_programs,
    ):
        yield from family(draw)
