"""A frozen net whose weights are split, and a trained head on top; only the head has gradients."""

from .common import BATCH, SIZES, abstract, constrain, descend, jax, jnp, make_mesh, shardings_of, split_first

TOPOLOGY = "v5e:2x4"
LAYERS = {"front/a": ("base['a']",), "front/b": ("base['b']",), "head": ("['wide']", "['narrow']")}


def lower(devices):
    mesh = make_mesh(devices, fsdp=8)
    s = SIZES[:5]

    def loss(params, base, x):
        with jax.named_scope("front"):
            with jax.named_scope("a"):
                x = constrain(mesh, jax.nn.relu(x @ base["a"].astype(x.dtype)), "fsdp")
            with jax.named_scope("b"):
                x = constrain(mesh, jax.nn.relu(x @ base["b"].astype(x.dtype)), "fsdp")
        x = jax.lax.stop_gradient(x)
        with jax.named_scope("head"):
            x = constrain(mesh, jax.nn.relu(x @ params["wide"]), "fsdp")
            return jnp.mean((x @ params["narrow"]) ** 2)

    def step(params, base, x):
        value, gradients = jax.value_and_grad(loss)(params, base, x)
        return descend(params, gradients), value

    params = split_first(mesh, {"wide": (s[2], s[3]), "narrow": (s[3], s[4])}, "fsdp")
    base = split_first(mesh, {"a": (s[0], s[1]), "b": (s[1], s[2])}, "fsdp", dtype=jnp.bfloat16)
    return jax.jit(step, donate_argnums=0, out_shardings=(shardings_of(params), None)).lower(
        params, base, abstract(mesh, (BATCH, s[0]), "fsdp"))
