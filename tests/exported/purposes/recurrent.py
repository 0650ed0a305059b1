"""A recurrent net over 16 positions in a scan; its weights are split, and the input and the output are dense layers."""

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh, split_first

TOPOLOGY = "v5e:2x4"
LAYERS = {"input": ("['input']",), "cell": ("['forget']", "['keep']", "['back']"), "output": ("['output']",)}


def lower(devices):
    mesh = make_mesh(devices, data=8)
    a, h, m, out = SIZES[:4]

    def loss(params, x):
        with jax.named_scope("input"):
            x = constrain(mesh, x @ params["input"], "data")

        def cell(state, x):
            with jax.named_scope("cell"):
                forget = jax.nn.sigmoid(state @ params["forget"][:h] + x @ params["forget"][h:])
                state = forget * state + (1 - forget) * jnp.tanh(state @ params["keep"] @ params["back"])
                return constrain(mesh, state, "data"), None
        state = constrain(mesh, jnp.zeros((BATCH, h)), "data")
        state, _ = jax.lax.scan(cell, state, jnp.moveaxis(x, 1, 0))
        with jax.named_scope("output"):
            return jnp.mean((state @ params["output"]) ** 2)

    params = split_first(mesh, {"input": (a, m), "forget": (h + m, h), "keep": (h, 4 * 67), "back": (4 * 67, h), "output": (h, out)},
                         "data")
    return lower_step(loss, params, abstract(mesh, (BATCH, 16, a), "data"))
