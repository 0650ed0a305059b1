"""A policy and a value function on a shared body, with a loss for each and a buffer of observations."""

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh, split_first

TOPOLOGY = "v5e:2x4"
LAYERS = {name: (f"['{name}']",) for name in ("body", "policy", "value")}


def lower(devices):
    mesh = make_mesh(devices, data=8)
    a, h, actions, v = SIZES[:4]

    def loss(params, observed, rewards):
        with jax.named_scope("body"):
            x = constrain(mesh, jnp.tanh(observed @ params["body"]["w"] + params["body"]["b"]), "data")
        with jax.named_scope("policy"):
            policy = jax.nn.log_softmax(x @ params["policy"]["w"], -1)
        with jax.named_scope("value"):
            value = jax.nn.relu(x @ params["value"]["w"]) @ params["value"]["b"]
        advantage = rewards - value
        return jnp.mean(advantage ** 2) - jnp.mean(policy[:, 0] * jax.lax.stop_gradient(advantage))

    params = split_first(mesh, {"body": {"w": (a, h), "b": (h,)}, "policy": {"w": (h, actions)}, "value": {"w": (h, v), "b": (v,)}}, "data")
    return lower_step(loss, params, abstract(mesh, (BATCH, a), "data"), abstract(mesh, (BATCH,), "data"))
