"""Four models at the same time by vmap, each on a part of the devices, where its weights are split again."""

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh

TOPOLOGY = "v5e:4x4"
LAYERS = {"first": ("['first']",), "second": ("['second']",), "third": ("['third']",)}


def lower(devices):
    mesh = make_mesh(devices, member=4, fsdp=4)

    def one(params, x):
        with jax.named_scope("first"):
            x = jnp.tanh(x @ params["first"])
        with jax.named_scope("second"):
            x = jnp.tanh(x @ params["second"])
        with jax.named_scope("third"):
            return jnp.mean((x @ params["third"]) ** 2)

    def loss(params, x):
        return jnp.sum(jax.vmap(one)(params, constrain(mesh, x, "member", "fsdp")))

    a, b, c, d = SIZES[:4]
    params = {"first": abstract(mesh, (4, a, b), "member", "fsdp"), "second": abstract(mesh, (4, b, c), "member", "fsdp"),
              "third": abstract(mesh, (4, c, d), "member", "fsdp")}
    return lower_step(loss, params, abstract(mesh, (4, BATCH, a), "member", "fsdp"))
