"""Creates the parameters of a model directly on their devices."""

from .._meshard.nn import AxisRules, Initializer, Maker
from .._meshard import nn as _nn

__all__ = ["AxisRules", "Initializer", "Maker", "create", "describe"]


def _made(maker, make, strict):
    parameters = make(maker)
    if strict:
        maker._check_rules()
    return parameters


def create(rules: AxisRules | None, seed: int, make, dtype="float32", *, strict: bool = True):
    """The parameters that `make(maker)` requests, with values from this seed. They are the same on any mesh.

        mesh = Mesh({"data": 2, "model": 4})
        rules = nn.AxisRules(mesh, {"hidden": "model"})
        mlp = nn.create(rules, 1, lambda make: nn.make_mlp(make, 64, 256))
        mlp.up.weight.sharding.spec  # P(None, "model")

    `rules` may be None: then nothing is split or placed. A rule for a name that no dimension of the parameters and of
    the library's layers has is a NotFoundError with the nearest names, unless `strict=False`.

    >>> mlp = ms.nn.create(None, 1, lambda make: ms.nn.make_mlp(make, 4, 8))
    >>> mlp.up.weight.shape, mlp(ms.ones((2, 4))).shape
    ((4, 8), (2, 4))
    """
    return _made(_nn.maker_of_values(AxisRules() if rules is None else rules, seed, dtype), make, strict)


def describe(rules: AxisRules | None, make, dtype="float32", *, strict: bool = True):
    """The structure that create() returns, of abstract tensors: for checkpoints, and for explain() without hardware.

    >>> ms.nn.describe(None, lambda make: ms.nn.make_linear(make, 4, 8)).weight.shape
    (4, 8)
    """
    return _made(_nn.maker_of_types(AxisRules() if rules is None else rules, dtype), make, strict)
