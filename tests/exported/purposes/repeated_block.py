"""One block that is applied six times in a loop, with an embedding of the turn; its weights are split over all devices."""

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh, normalized, split_first

TOPOLOGY = "v5e:2x4"
LAYERS = {"turns": ("['turns']",), "mix": ("['mix']",), "mlp": ("['up']", "['down']"), "read": ("['read']",)}


def lower(devices):
    mesh = make_mesh(devices, fsdp=8)
    d, f, out, m = SIZES[:4]

    def loss(params, x):
        def turn(i, x):
            with jax.named_scope("turns"):
                x = x + params["turns"][i]
            with jax.named_scope("mix"):
                x = x + jnp.tanh(jnp.swapaxes(x, 1, 2) @ jnp.ones((16, 16)) / 16).swapaxes(1, 2) @ params["mix"] @ jnp.ones((m, d)) / m
            with jax.named_scope("mlp"):
                y = jax.nn.relu(normalized(x) @ params["up"]).reshape(*x.shape[:2], f, 5).max(-1)
                return constrain(mesh, x + y @ params["down"], "fsdp")

        x = jax.lax.fori_loop(0, 6, turn, constrain(mesh, x, "fsdp"))
        with jax.named_scope("read"):
            return jnp.mean((x @ params["read"]) ** 2)

    params = split_first(mesh, {"up": (d, 5 * f), "down": (f, d), "mix": (d, m), "read": (d, out)}, "fsdp")
    params["turns"] = abstract(mesh, (8, d), None, "fsdp")
    return lower_step(loss, params, abstract(mesh, (BATCH, 16, d), "fsdp"))
