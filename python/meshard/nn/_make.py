"""Creates the parameters of a model directly on their devices."""

from .._meshard.nn import AxisRules, Initializer, Maker
from .._meshard import nn as _nn

__all__ = ["AxisRules", "Initializer", "Maker", "create", "describe"]


def create(rules: AxisRules | None, seed: int, make, dtype="float32"):
    """The parameters that `make(maker)` requests, with values from this seed. They are the same on any mesh.

        mesh = Mesh({"data": 2, "model": 4})
        rules = nn.AxisRules(mesh, {"hidden": "model"})
        mlp = nn.create(rules, 1, lambda make: nn.make_mlp(make, 64, 256))
        mlp.up.weight.sharding.spec  # P(None, "model")

    `rules` may be None: then nothing is split or placed.
    """
    return make(_nn.maker_of_values(AxisRules() if rules is None else rules, seed, dtype))


def describe(rules: AxisRules | None, make, dtype="float32"):
    """The same structure, of abstract tensors: for checkpoints, and for explain() without the hardware."""
    return make(_nn.maker_of_types(AxisRules() if rules is None else rules, dtype))
