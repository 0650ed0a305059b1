"""Creates an optimizer's state before its first step, if the first step is then the same program as all others."""

import math
from typing import NamedTuple

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ._capture import as_captured, faked
from ._optimizers import Powers, swapped, traced_states
from ._table import decompositions


class _Unknown(Exception):
    """An operation whose result is not known to be a function of its arguments."""


_UNKNOWN = (torch.Tag.nondeterministic_seeded, torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape,
            torch.Tag.inplace_view)

_OF_TYPES = ("zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full")
"""Operations that read the type and shape of a tensor, not its elements."""

_SAME = ("clone", "detach", "alias", "lift_fresh", "lift_fresh_copy")

_IN_ORDER = (None, torch.contiguous_format, torch.preserve_format)


def _geometry(tensor):
    return tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.storage_offset()


def _is_whole(tensor):
    return tensor.is_contiguous() and tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()


def _storage(tensor):
    return tensor.untyped_storage()._cdata


def _constant(value):
    """The representation of a value of Python in a term: 0.0, -0.0, 0 and False are four different ones."""
    if isinstance(value, (torch.SymFloat, torch.SymInt)):
        return "symbol", str(value.node.expr)
    hash(value)
    return type(value), repr(value) if isinstance(value, float) else value


class _Terms:
    """Terms, each an operation and the terms of its arguments. Equal terms have equal numbers."""

    def __init__(self):
        self._numbers, self.terms, self._calls, self._known = {}, [], [], {}
        self.symbols = {}  # from those of numbers to the numbers

    def number(self, label, arguments=(), call=None):
        """`call` computes the tensor of a term from those of its arguments; None if that cannot be done."""
        number = self._numbers.setdefault((label, arguments), len(self.terms))
        if number == len(self.terms):
            self.terms.append((label, arguments))
            self._calls.append(call)
        return number

    def value(self, given):
        """The number of a symbol; any other value itself."""
        return float(given.node.expr.xreplace(self.symbols)) if isinstance(given, torch.SymFloat) else given

    def is_known(self, number):
        """Whether a term can be computed before a step."""
        if number not in self._known:
            self._known[number] = self._calls[number] is not None and all(map(self.is_known, self.terms[number][1]))
        return self._known[number]

    def tensor(self, number):
        return self._calls[number]([self.tensor(each) for each in self.terms[number][1]])


class _Numbering(TorchDispatchMode):
    """Keeps the term of the elements of each storage, also after writes through views."""

    def __init__(self, terms):
        super().__init__()
        self._terms, self._of, self._kept = terms, {}, []

    def set(self, tensor, number):
        self._kept.append(tensor)  # so that no other storage has this address
        self._of[_storage(tensor)] = number

    def get(self, tensor):
        """The term of a storage."""
        found = self._of.get(_storage(tensor))
        if found is not None:
            return found
        # A tensor that the optimizer makes of a number, such as torch.tensor(0.0).
        if isinstance(tensor, torch._subclasses.FakeTensor) or tensor.numel() > 16 or not _is_whole(tensor):
            raise _Unknown
        value = tensor.detach().clone()
        return self._terms.number(("constant", _geometry(tensor), repr(value.tolist())), (), lambda _: value.clone())

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(tag in func.tags for tag in _UNKNOWN):
            raise _Unknown
        name = func._schema.name.partition("::")[2]
        written = [args[i] if i < len(args) else kwargs.get(each.name) for i, each in enumerate(func._schema.arguments)
                   if each.alias_info is not None and each.alias_info.is_write]
        if name.startswith("_foreach_"):
            with self:
                return self._of_lists(func, name, written, args, kwargs)
        number = self._number_of(func, name.removesuffix("_"), written, args, kwargs)
        result = func(*args, **kwargs)
        if written:
            self._write(written, number)
            return result
        own = {_storage(each) for each in pytree.tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)}
        results = [each for each in pytree.tree_leaves(result) if isinstance(each, torch.Tensor)]
        for k, each in enumerate(results):
            if _storage(each) not in own:  # not a view
                self.set(each, number if k == 0 else self._terms.number(("result", k), (number,)))
        return result

    def _of_lists(self, func, name, written, args, kwargs):
        """An operation on lists is one operation for each of their elements."""
        functional = getattr(getattr(torch.ops.aten, name.removesuffix("_")), func._overloadname)
        decomposed = decompositions().get(functional)
        if decomposed is None or not name.endswith("_") and written:
            raise _Unknown
        results = decomposed(*args, **kwargs)
        for target, result in zip(args[0] if written else (), results):
            target.copy_(result)
        return None if written else results  # as PyTorch's own

    def _number_of(self, func, name, written, args, kwargs):
        """The term of the first result of a call."""
        leaves, structure = pytree.tree_flatten((args, kwargs))
        if name in _SAME and _is_whole(args[0]) and kwargs.get("memory_format") in _IN_ORDER:
            return self.get(args[0])
        if name == "copy" and _is_whole(args[0]) and _is_whole(args[1]) and _geometry(args[0]) == _geometry(args[1]):
            return self.get(args[1])
        is_tensor = [isinstance(each, torch.Tensor) for each in leaves]
        static = tuple(_geometry(each) if flag else _constant(each) for each, flag in zip(leaves, is_tensor))
        arguments = tuple(map(self.get, (each for each, flag in zip(leaves, is_tensor) if flag))) \
            if name not in _OF_TYPES else ()

        def call(tensors):
            given = iter(tensors if arguments else [_like(each) for each, flag in zip(leaves, is_tensor) if flag])
            own_args, own_kwargs = pytree.tree_unflatten(
                [next(given) if flag else self._terms.value(each) for each, flag in zip(leaves, is_tensor)], structure)
            return func(*own_args, **own_kwargs)

        simple = all(_is_whole(each) for each, flag in zip(leaves, is_tensor) if flag) and "empty" not in name
        return self._terms.number((name, func._overloadname, structure, static), arguments, call if simple else None)

    def _write(self, written, number):
        for k, target in enumerate(written):
            if not isinstance(target, torch._subclasses.FakeTensor):
                raise _Unknown  # from outside, or a list
            term = number if k == 0 else self._terms.number(("result", k), (number,))
            self.set(target, term if _is_whole(target) else
                     self._terms.number(("part", _geometry(target)), (self.get(target), term)))


def _like(tensor):
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)


class _Match:
    """Finds the states that make the first step equal to the later ones."""

    def __init__(self, terms, slots):
        self._terms = terms
        self._slots = slots  # from the term of a state in the later step to its type and shape
        self.found = {}
        self._same = set()

    def same(self, first, later):
        """Whether two terms have the same elements with the states found so far."""
        if first == later or (first, later) in self._same:
            return True
        if later in self._slots:
            return self.found.setdefault(later, first) == first
        (label, arguments), (other, others) = self._terms.terms[first], self._terms.terms[later]
        added = self._added_to_product(later)
        before = dict(self.found) if added else None
        same = label == other and len(arguments) == len(others) and all(map(self.same, arguments, others))
        if not same and added:
            # A sum of gradients begins with a gradient: -0.0 + x is x, for every x.
            self.found, self._same = before, set()
            slot, rest = added
            same = self.same(self._zero(slot), slot) and self.same(first, rest)
        if same:
            self._same.add((first, later))
        return same

    def _zero(self, slot):
        dtype, shape, _ = self._slots[slot]
        return self._terms.number(("-0.0", dtype, shape), (), lambda _: torch.full(shape, -0.0, dtype=dtype))

    def _added_to_product(self, term):
        """(state, x) of a term `state * positive number + x`."""
        (name, *_, static), arguments = self._terms.terms[term]
        if name != "add" or len(arguments) != 2 or static[0] != static[1] or not static[0][0].is_floating_point \
                or not all(repr(each) in ("1", "1.0", repr("1.0")) for _, each in static[2:]):
            return None
        product, rest = arguments
        if product not in self._slots:
            (name, *_, own), factors = self._terms.terms[product]
            if name != "mul" or len(factors) != 1 or own[0] != static[0] or own[1][0] is not float \
                    or not 0 < float(own[1][1]) < math.inf:
                return None
            product, = factors
        return (product, rest) if product in self._slots and static[0][:2] == self._slots[product][:2] else None


class _Elements(NamedTuple):
    dtype: torch.dtype
    shape: tuple
    term: int


class _Steps:
    """Steps of an optimizer on tensors without elements."""

    def __init__(self, optimizer, before_update, state, with_gradient):
        self._optimizer, self._before, self._state = optimizer, before_update, state
        self._with_gradient, self.terms = with_gradient, _Terms()
        rates = state.rates()
        existing = [optimizer.state[state.in_groups[i]][name] for i, name in state.slots]
        self._mode, fakes = faked([*state.parameters, *(each.detach() for each in state.parameters),
                                   *(each.detach() for each in existing),
                                   *(torch.tensor(rate, dtype=torch.float64) for rate in rates)])
        given = iter(fakes)
        self._leaves, self._gradients = ([next(given) for _ in state.parameters] for _ in range(2))
        self._slots = [(state.in_groups[i], name, next(given)) for i, name in state.slots]
        with self._mode:
            self._rates = [each.item() for each in given]
        self.terms.symbols = {symbol.node.expr: rate for symbol, rate in zip(self._rates, rates)}
        self._of = {id(parameter): leaf for parameter, leaf in zip(state.parameters, self._leaves)}

    def run(self, made):
        """(elements of the parameters, states of each parameter of the optimizer after a step, terms of the tensors of
        `made`), if the optimizer has the states `made` besides its own.

        States are dictionaries by name, with _Elements in place of tensors.
        """
        numbering, optimizer, parameters = _Numbering(self.terms), self._optimizer, self._state.in_groups
        with self._mode:
            new = [(parameter, name, torch.empty(value.shape, dtype=value.dtype))
                   for parameter, states in zip(parameters, made) for name, value in states.items()
                   if isinstance(value, _Elements)]
        slots = [*self._slots, *new]
        for kind, tensors in (("parameter", self._leaves), ("gradient", self._gradients),
                              ("state", [tensor for *_, tensor in slots])):
            for i, each in enumerate(tensors):
                numbering.set(each, self.terms.number((kind, i)))
        for i, (leaf, gradient) in enumerate(zip(self._leaves, self._gradients)):
            leaf.grad = gradient if i in self._with_gradient else None
        traced = traced_states(optimizer, self._of, slots)
        for parameter, states in zip(parameters, made):
            traced[self._of[id(parameter)]].update(
                (name, value) for name, value in states.items() if not isinstance(value, _Elements))
        with swapped(optimizer, self._of, traced, self._rates), torch.no_grad(), as_captured(), self._mode, numbering:
            if self._before is not None:
                self._before([leaf for leaf in self._leaves if leaf.requires_grad])
            with Powers():
                optimizer.step()

        def described(value):
            if isinstance(value, torch.Tensor) and not _is_whole(value):
                raise _Unknown
            return value if not isinstance(value, torch.Tensor) else \
                _Elements(value.dtype, tuple(value.shape), numbering.get(value))

        if not {id(each) for each in traced} <= set(map(id, self._leaves)):
            raise _Unknown  # a state that belongs to something else than a parameter
        return ([_Elements(each.dtype, tuple(each.shape), numbering.get(each)) for each in self._leaves],
                [{name: described(value) for name, value in traced.get(self._of[id(parameter)], {}).items()}
                 for parameter in parameters],
                [self.terms.number(("state", len(self._slots) + i)) for i in range(len(new))])


def first_states(optimizer, before_update, state, with_gradient):
    """The states from which all steps of an optimizer, also the first, are the same program; None if no states do that.

    The result has a dictionary by name for each parameter of the optimizer, without states that exist already.
    `with_gradient` has the indices of the model's parameters that have a gradient.
    """
    try:
        return _first_states(_Steps(optimizer, before_update, state, with_gradient), optimizer, state)
    except Exception:  # the step has it, too, or there are two programs
        return None


def _first_states(steps, optimizer, state):
    parameters, states, _ = steps.run([{} for _ in state.in_groups])
    made = [{name: value for name, value in own.items() if name not in optimizer.state.get(parameter, {})}
            for parameter, own in zip(state.in_groups, states)]
    if not any(made):
        return made
    later_parameters, later_states, slots = steps.run(made)
    tensors = [value for own in made for value in own.values() if isinstance(value, _Elements)]
    match = _Match(steps.terms, dict(zip(slots, tensors)))
    if [list(own) for own in states] != [list(own) for own in later_states]:
        return None
    pairs = [*zip(parameters, later_parameters), *((own[name], later[name]) for own, later in zip(states, later_states)
                                                   for name in own)]
    for first, later in pairs:
        if not isinstance(first, _Elements):
            if type(first) is not type(later) or first != later:
                return None
        elif not isinstance(later, _Elements) or first[:2] != later[:2] or not match.same(first.term, later.term):
            return None
    values = []
    for slot, elements in zip(slots, tensors):
        term = match.found.get(slot)  # None: the next step does not read it
        if term is not None and not steps.terms.is_known(term):
            return None
        value = torch.zeros(elements.shape, dtype=elements.dtype) if term is None else steps.terms.tensor(term)
        if value.dtype != elements.dtype or tuple(value.shape) != elements.shape:
            return None
        values.append(value.contiguous())
    values = iter(values)
    return [{name: next(values) if isinstance(value, _Elements) else value for name, value in own.items()}
            for own in made]
