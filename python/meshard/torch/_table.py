"""The table of lowerings: which operation of meshard computes an overload of ATen."""

LOWERINGS = {}
"""From the name of an overload, such as "aten.add.Tensor", to a function of meshard's tensors and Python's values."""


def full_name(name):
    """The name of an overload; higher-order operators, which have no namespace, have no overloads either."""
    return f"{name}.default" if name.count(".") == 1 else name


def lowers(*names):
    """Registers a function as the lowering of these overloads; "aten.relu" means "aten.relu.default"."""

    def register(function):
        for name in names:
            full = full_name(name)
            if full in LOWERINGS:
                raise ValueError(f"[torch] {full} has two lowerings")
            LOWERINGS[full] = function
        return function

    return register


def lowering_of(overload):
    """The lowering of an overload; None if the table has none."""
    return LOWERINGS.get(str(overload))
