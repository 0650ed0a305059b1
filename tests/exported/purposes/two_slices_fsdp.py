"""Two slices: the batch is split over the network between them, the weights over the devices of a slice."""

from .common import BATCH, SIZES, abstract, constrain, jax, jnp, lower_step, make_mesh_over_slices, split_first

TOPOLOGY, SLICES = "v5e:2x4", 2
LAYERS = {f"dense{i}": (f"['w{i}']",) for i in range(3)}


def lower(devices):
    mesh = make_mesh_over_slices(devices, SLICES, fsdp=8)

    def loss(params, x):
        for i in range(3):
            with jax.named_scope(f"dense{i}"):
                x = constrain(mesh, jax.nn.relu(x @ params[f"w{i}"]), ("dcn", "fsdp"))
        return jnp.mean(x ** 2)

    params = split_first(mesh, {f"w{i}": (SIZES[i], SIZES[i + 1]) for i in range(3)}, "fsdp")
    return lower_step(loss, params, abstract(mesh, (2 * BATCH, SIZES[0]), ("dcn", "fsdp")))
