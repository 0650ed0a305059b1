"""Blocks with a linear recurrence by an associative scan, a convolution over positions and a gate; weights split over all."""

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh, normalized, split_first

TOPOLOGY = "v5e:2x4"
LAYERS = {f"block{i}/{part}": tuple(f"['block{i}']['{n}']" for n in names) for i in range(2)
          for part, names in {"enter": ("enter", "gate"), "mix": ("taps", "decay"), "leave": ("leave",)}.items()}


def lower(devices):
    mesh = make_mesh(devices, fsdp=8)
    d = SIZES[0]
    inner = SIZES[1:3]

    def block(x, p):
        y = normalized(x)
        with jax.named_scope("enter"):
            hidden, gate = y @ p["enter"], jax.nn.silu((y @ p["gate"])).mean(-1, keepdims=True)
        with jax.named_scope("mix"):
            padded = jnp.pad(hidden, ((0, 0), (3, 0), (0, 0)))
            hidden = sum(padded[:, i:i + 16] * p["taps"][i] for i in range(4))
            decay = jax.nn.sigmoid(hidden + p["decay"])
            _, hidden = jax.lax.associative_scan(lambda l, r: (l[0] * r[0], r[0] * l[1] + r[1]), (decay, hidden), axis=1)
        with jax.named_scope("leave"):
            return constrain(mesh, x + (hidden * gate) @ p["leave"], "fsdp")

    def loss(params, x):
        for i in range(2):
            with jax.named_scope(f"block{i}"):
                x = block(x, params[f"block{i}"])
        return jnp.mean(x ** 2)

    params = {}
    for i, n in enumerate(inner):
        g, o = 8 * (101, 103)[i], n
        params[f"block{i}"] = split_first(mesh, {"enter": (d, n), "gate": (d, g), "leave": (3 * o // 3, d)}, "fsdp")
        params[f"block{i}"]["leave"] = abstract(mesh, (n, d), None, "fsdp")
        params[f"block{i}"]["taps"] = abstract(mesh, (4, n), None, "fsdp")
        params[f"block{i}"]["decay"] = abstract(mesh, (n,), "fsdp")
    return lower_step(loss, params, abstract(mesh, (BATCH, 16, d), "fsdp"))
