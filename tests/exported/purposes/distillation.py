"""A student learns from a teacher whose weights are split, gathered, and never changed."""

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh, split_first

TOPOLOGY = "v5e:2x4"
LAYERS = {f"{who}/{part}": (f"{root}['{part}']",) for who, root in (("student", "params"), ("teacher", "teacher"))
          for part in ("first", "second")}


def lower(devices):
    mesh = make_mesh(devices, data=8)
    a, s, t, out = SIZES[:4]

    def model(who, p, x):
        with jax.named_scope(who):
            with jax.named_scope("first"):
                x = jax.nn.relu(x @ p["first"])
            with jax.named_scope("second"):
                return constrain(mesh, x @ p["second"], "data")

    def loss(params, teacher, x):
        wanted = jax.nn.softmax(jax.lax.stop_gradient(model("teacher", teacher, x)), -1)
        return -jnp.mean(jnp.sum(wanted * jax.nn.log_softmax(model("student", params, x), -1), -1))

    params = split_first(mesh, {"first": (a, s), "second": (s, out)}, "data")
    teacher = split_first(mesh, {"first": (a, t), "second": (t, out)}, "data")
    return lower_step(loss, params, teacher, abstract(mesh, (BATCH, a), "data"))
