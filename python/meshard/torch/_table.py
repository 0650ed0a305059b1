"""The table of lowerings: which operation of meshard computes an overload of ATen."""

import functools

LOWERINGS = {}
"""From the name of an overload, such as "aten.add.Tensor", to a function of meshard's tensors and Python's values."""


def full_name(name):
    """The name of an overload; higher-order operators, which have no namespace, have no overloads either."""
    return f"{name}.default" if name.count(".") == 1 else name


NEED_NODE = set()
"""The lowerings that receive the torch.fx.Node."""


def lowers(*names, with_node=False):
    """Registers a function as the lowering of these overloads; "aten.relu" means "aten.relu.default".

    With `with_node`, the function receives the torch.fx.Node as the keyword `node`, as it depends on more than values.
    """

    def register(function):
        if with_node:
            NEED_NODE.add(function)
        for name in names:
            full = full_name(name)
            if full in LOWERINGS:
                raise ValueError(f"[torch] {full} has two lowerings")
            LOWERINGS[full] = function
        return function

    return register


RESULTS = {}
"""From the name of an overload to a function that makes its results without elements; see results_of()."""


def results_of(*names):
    """Registers a function that computes the results of these overloads for tensors without elements.

    It is for overloads whose sizes PyTorch wrongly treats as dependent on elements.
    """
    def register(function):
        RESULTS.update((full_name(name), function) for name in names)
        return function

    return register


def lowering_of(overload):
    """The lowering of an overload, or of a function of `torch` on numbers; None if the table has none."""
    return LOWERINGS.get(str(overload)) or LOWERINGS.get(f"torch.{getattr(overload, '__name__', '')}.default")


@functools.cache
def decompositions():
    """The decompositions, most of them PyTorch's, of the overloads that the table of lowerings does not have."""
    from torch._decomp import core_aten_decompositions, decomposition_table

    from ._decompositions import own_decompositions

    table = {**decomposition_table, **core_aten_decompositions(), **own_decompositions()}
    return {overload: function for overload, function in table.items() if str(overload) not in LOWERINGS}
