"""Two slices with whole copies, fully sharded inside a slice: a scan over layers that are computed again."""

from .common import BATCH, SIZES, abstract, attention, attention_shapes, constrain, jax, jnp, lower_step, make_mesh_over_slices, normalized, split_first

TOPOLOGY, SLICES = "v5e:2x4", 2
LAYERS = {"attn": tuple(f"['{n}']" for n in ("wq", "wk", "wv", "wo")), "mlp": ("['up']", "['down']"), "head": ("['head']",)}


def lower(devices):
    mesh = make_mesh_over_slices(devices, 2, fsdp=8)
    batch = ("dcn", "fsdp")
    d, k, v, f, out = SIZES[:5]

    @jax.checkpoint
    def block(x, p):
        with jax.named_scope("attn"):
            x = constrain(mesh, x + attention(normalized(x), p), batch)
        with jax.named_scope("mlp"):
            return constrain(mesh, x + jax.nn.relu(normalized(x) @ p["up"]).reshape(*x.shape[:2], f, 3).sum(-1) @ p["down"], batch), None

    def loss(params, x):
        x, _ = jax.lax.scan(block, x, params["blocks"])
        with jax.named_scope("head"):
            return jnp.mean((x @ params["head"]) ** 2)

    shapes = {n: (4, *s) for n, s in {**attention_shapes(d, k, v), "up": (d, 3 * f), "down": (f, d)}.items()}
    params = {"blocks": split_first(mesh, shapes, "fsdp", after=1), "head": abstract(mesh, (d, out), "fsdp")}
    return lower_step(loss, params, abstract(mesh, (2 * BATCH, 16, d), batch))
