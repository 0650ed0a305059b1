#!/usr/bin/env python3
"""Exports small programs with JAX, runs them with JAX, and writes the exports and what JAX computed.

usage: record_run.py FOLDER

Writes NAME.bin, what `jax.export` serialized, and NAME.npz: the arguments as in0, in1, ..., the results as out0, out1,
... in the order of the module, as JAX computed them on 8 CPU devices. Needs JAX and flatbuffers.
"""

import os
import pathlib
import sys

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"


def whole(value):
    """The value as an array; if it is split over "y" and unreduced over "x", the maximum or the minimum along "x"."""
    import numpy as np

    spec = getattr(getattr(value, "sharding", None), "spec", None)
    if not getattr(spec, "unreduced", None):
        return np.asarray(value)
    combine = {"max": np.max, "min": np.min}[spec.unreduced_kind.name]
    rows = np.stack([np.asarray(shard.data) for shard in value.addressable_shards]).reshape(2, -1)
    return combine(rows, axis=0)


def programs():
    """name: (function, arguments, keywords of the call, arguments of jit, arguments of export)."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax
    from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P, UnreducedKind

    devices = np.array(jax.devices())
    auto = (AxisType.Auto,) * 2
    grid = Mesh(devices.reshape(2, 4), ("x", "y"), axis_types=auto)
    reverse = Mesh(devices[::-1].reshape(2, 4), ("x", "y"), axis_types=auto)
    explicit = Mesh(devices.reshape(2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)
    random = np.random.default_rng(47)

    def f32(*shape):
        return random.standard_normal(shape).astype(np.float32)

    def put(value, *spec, mesh=grid):
        return jax.device_put(value, NamedSharding(mesh, P(*spec)))

    def loss(params, x):
        hidden = x
        for w, b in zip(params["w"], params["b"]):
            hidden = jnp.tanh(hidden @ w + b)
        return jnp.mean(hidden * hidden)

    def step(params, x):
        value, gradient = jax.value_and_grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), {"loss": value}

    def params(place):
        return {"w": [place(f32(16, 16), None, "y") for _ in range(2)], "b": [place(f32(16), "y") for _ in range(2)]}

    def ring(x):
        return lax.fori_loop(0, 3, lambda i, y: lax.ppermute(y, "y", [(i, (i + 1) % 4) for i in range(4)]) + 1, x)

    def plain(value, *spec):
        return value

    one = np.array([1, 2], np.uint32)
    yield "train_donated", step, (params(put), put(f32(8, 16), "x")), {}, {"donate_argnums": 0}, {}
    yield "train_one_device", step, (params(plain), f32(8, 16)), {}, {}, {}
    yield "by_name", lambda x, *, scale, bias: x * scale["s"] + bias[1], (f32(4),), \
        {"scale": {"s": f32(4), "t": f32(2)}, "bias": (f32(4), f32(4))}, {}, {}
    yield "unused", lambda a, b, c: {"twice": a * 2, "sum": (c + 1, None)}, (f32(3), f32(4, 4), np.arange(5, dtype=np.int32)), {}, {}, {}
    yield "platforms", lambda x: lax.platform_dependent(x, cpu=lambda x: x @ x.T, tpu=lambda x: x @ x.T * 2), \
        (put(f32(8, 16), "x", "y"),), {}, {}, {"platforms": ["tpu", "cpu"]}
    yield "ring", jax.shard_map(ring, mesh=grid, in_specs=P("x", "y"), out_specs=P("x", "y")), \
        (put(f32(8, 16), "x", "y"),), {}, {}, {}
    yield "scan_open", lambda x, s: lax.scan(lambda c, a: (c * 0.9 + a, c.sum()), jnp.zeros((8, 16)), x * s), \
        (put(f32(12, 8, 16), None, "x", "y"), np.float32(0.5)), {}, {}, {}
    yield "reverse_order", lambda x: x @ x.T, (put(f32(8, 16), "x", "y", mesh=reverse),), {}, {}, {}
    with jax.set_mesh(explicit):
        yield "explicit_axes", lambda a, b: jnp.einsum("ij,jk->ik", a, b, out_sharding=P("x", "y")), \
            (put(f32(8, 16), "x", None, mesh=explicit), put(f32(16, 8), None, "y", mesh=explicit)), {}, {}, {}
        # The shards hold maxima and minima over parts of the rows.
        highest, lowest = (P("y", unreduced={"x"}, unreduced_kind=kind) for kind in (UnreducedKind.max, UnreducedKind.min))
        rows = put(f32(8, 16), "x", "y", mesh=explicit)

        def extrema(x):
            return lax.reduce_max(x, axes=(0,), out_sharding=highest), lax.reduce_min(x, axes=(0,), out_sharding=lowest)

        yield "unreduced_results", extrema, (rows,), {}, {}, {}
        yield "unreduced_inside", lambda x: [jax.reshard(value, P("y")) * 2 for value in extrema(x)], (rows,), {}, {}, {}
        yield "unreduced_arguments", lambda a, b: jax.reshard(a, P("y")) - jax.reshard(b, P("y")), \
            jax.jit(extrema)(rows), {}, {}, {}
    yield "complex", lambda a: (a * 2, jnp.abs(a), jnp.fft.fft(a, axis=1)), ((f32(4, 8) + 1j * f32(4, 8)).astype(np.complex64),), {}, {}, {}
    yield "random_bits", lambda key: jax.random.normal(jax.random.wrap_key_data(key), (8, 8)), (one,), {}, {}, {}
    yield "shared", lambda x: (x, jax.lax.with_sharding_constraint(x, NamedSharding(grid, P("x", "y"))) * 2), (f32(8, 16),), {}, {}, {}
    yield "lapack", lambda a, b: jnp.linalg.solve(a, b), (f32(4, 4), f32(4)), {}, {}, {}
    yield "derivative", lambda x, y: x * x * y, (put(f32(8), "x"), put(f32(8), "y")), {}, {}, {}


def main(folder):
    import jax
    import numpy as np
    from jax import export

    folder = pathlib.Path(folder)
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/(?=tests/exported/)")  # paths of any machine
    for name, function, arguments, named, of_jit, of_export in programs():
        inputs = [np.array(whole(value)) for value in jax.tree.leaves((arguments, named))]
        expected = [whole(value) for value in jax.tree.leaves(jax.jit(function)(*arguments, **named))]
        if name == "ring":  # the oldest convention that is supported
            jax.config.update("jax_export_calling_convention_version", 9)
        exported = export.export(jax.jit(function, **of_jit), **of_export)(*arguments, **named)
        jax.config.update("jax_export_calling_convention_version", 10)
        (folder / f"{name}.bin").write_bytes(exported.serialize(vjp_order=1 if name == "derivative" else 0))
        values = {f"in{i}": value for i, value in enumerate(inputs)}
        values.update({f"out{i}": value for i, value in enumerate(expected)})
        np.savez(folder / f"{name}.npz", **values)


if __name__ == "__main__":
    main(*sys.argv[1:])
