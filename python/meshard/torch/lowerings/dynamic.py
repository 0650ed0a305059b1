"""Operations whose result has a size that depends on elements: a program has fixed sizes, so they are errors."""

from .._table import lowers

_ADVICE = {
    "aten.nonzero.default": "torch.nonzero_static(x, size=...), or torch.where",
    "aten.masked_select.default": "torch.where, or a product with the mask",
    "aten.bincount.default": "torch.zeros(...).scatter_add",
    "aten._unique.default": "", "aten._unique2.default": "", "aten.unique_dim.default": "",
    "aten.unique_consecutive.default": "", "aten.unique_dim_consecutive.default": "",
}


class DependsOnElements(NotImplementedError):
    """The size of a result depends on elements."""


def refuse(name, advice):
    """Raises the error for an operation, with what to use instead."""
    instead = f"use {advice}, or " if advice else ""
    raise DependsOnElements(f"[torch] the size of the result of {name} depends on the elements, and a program has "
                              f"fixed sizes: {instead}call it outside of the compiled function")


def _refused(name, advice):
    return lambda *args, **kwargs: refuse(name, advice)


for _name, _advice in _ADVICE.items():
    lowers(_name)(_refused(_name, _advice))
