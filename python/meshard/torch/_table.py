"""The table of lowerings: which operation of meshard computes an overload of ATen."""

LOWERINGS = {}
"""From the name of an overload, such as "aten.add.Tensor", to a function of meshard's tensors and Python's values."""


def lowers(*names):
    """Registers a function as the lowering of these overloads; a name without an overload means `default`."""

    def register(function):
        for name in names:
            full = name if name.count(".") == 2 else f"{name}.default"
            if full in LOWERINGS:
                raise ValueError(f"[torch] {full} has two lowerings")
            LOWERINGS[full] = function
        return function

    return register


def lowering_of(overload):
    """The lowering of an overload; None if the table has none."""
    return LOWERINGS.get(str(overload))
