"""Tensors of PyTorch on the device "meshard": lazy values of meshard, with PyTorch's aliases and in-place writes."""

import collections
import copy
import functools
import weakref

import torch
from torch.utils._mode_utils import no_dispatch

import meshard as ms

from ..._meshard import compute
from .._convert import to_host, to_meshard
from .._dtypes import to_meshard as to_meshard_dtype
from .._dtypes import to_torch
from .._table import lowering_of
from ._views import SharesPlaces

DEVICE = torch.device("cpu")
"""Set by register(), because the name is known only after it."""

_make = torch.Tensor._make_wrapper_subclass
_LARGEST = 1 << 60
_grad = torch.Tensor.grad
_data = torch._C.TensorBase.data


class Storage:
    """The elements of tensors that alias each other, as one dense value of meshard, which is replaced at each write."""

    __slots__ = ("value", "version", "sharding", "is_listed", "__weakref__")

    def __init__(self, value, sharding=None):
        self.value, self.version, self.sharding, self.is_listed = value, 0, sharding, False

    def write(self, value):
        if self.sharding is not None:
            value = ms.mark_sharding(value, self.sharding)
        self.value = value
        self.version += 1
        if not self.is_listed:
            self.list()

    def list(self):
        """Registers the storage as one whose value may only be recorded so far."""
        self.is_listed = True
        _recorded.append(weakref.ref(self))
        if len(_recorded) >= _most[0]:
            _recorded[:] = [each for each in _recorded if each() is not None]
            _most[0] = 2 * max(len(_recorded), _FEWEST)


_recorded, _FEWEST = [], 1 << 14
_most = [_FEWEST]
"""Weak references to the storages with values that may only be recorded, and how many may be kept until the dead go."""


def recorded_values():
    """The values of live tensors that are only recorded so far; from now on they count as computed."""
    alive = [storage for each in _recorded if (storage := each()) is not None]
    _recorded.clear()
    for each in alive:
        each.is_listed = False
    # Values that are local to each device exist only inside programs.
    return [each.value for each in alive if each.value.is_recorded and not is_local(each.value)]


@functools.cache
def _class_of_torch(kind):
    """A class of meshard's errors that is also a RuntimeError, as PyTorch's errors are."""
    if issubclass(kind, RuntimeError):
        return kind
    return type(kind.__name__, (kind, RuntimeError), {"__doc__": kind.__doc__, "__module__": kind.__module__})


def is_local(value):
    """Whether each device has its own value, inside a manual region."""
    return value.placement.startswith("manual")


class Step:
    """A view of a value: how to read its elements, and how to make a value in which they are replaced."""

    __slots__ = ("read", "replaced")

    def __init__(self, read, replaced):
        self.read, self.replaced = read, replaced


class Conjugation(Step):
    """The view that conj() is."""

    __slots__ = ()


class Negation(Step):
    """A view whose elements are negated in the CPU's memory, such as imag of a conjugate."""

    __slots__ = ()


class Parts(Step):
    """The view of real and imaginary parts."""

    __slots__ = ()


def signs(steps):
    """The values of is_conj() and is_neg() of such a view on the CPU."""
    is_conj = is_neg = False
    for step in steps:
        is_neg ^= type(step) is Negation
        is_conj = is_conj ^ (type(step) is Conjugation) and type(step) is not Parts
    return is_conj, is_neg


def resolved(kind, tensor):
    """A tensor that is not a view of this kind; a copy where PyTorch copies on the CPU."""
    return tensor.clone() if signs(tensor._steps)[kind is Negation] else tensor


class DeviceTensor(torch.Tensor):
    """A tensor on the device "meshard".

    Its elements are those of a Storage, seen through steps of views. Operations are recorded, and run when elements
    are needed on the host or mt.sync() is called.
    """

    _mark = None
    """The sharding of a view."""

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if len(types) > 1:  # another class, which wraps tensors of the device
            return NotImplemented
        handler = _handlers.get(id(func)) or new_handler(func)
        try:
            return handler(args, kwargs) if kwargs else handler(args, _NONE)
        except ms.Error as error:
            error.__class__ = _class_of_torch(type(error))
            raise

    @property
    def value(self):
        """The tensor of meshard with the elements that this one has now."""
        storage = self._storage
        steps = self._steps
        if not steps:
            return storage.value
        if self._seen != storage.version:
            value = storage.value
            for step in steps:
                value = step.read(value)
            if self._mark is not None:
                value = ms.mark_sharding(value, self._mark)
            self._value, self._seen = value, storage.version
        return self._value

    def write(self, value, is_uniform=False):
        """Replaces the elements, also of tensors that share them; `is_uniform`: elements at one place are equal."""
        storage, steps = self._storage, self._steps
        if not steps:
            return storage.write(value)
        before = [storage.value]
        for step in steps[:-1]:
            before.append(step.read(before[-1]))
        try:
            written = value
            for step, whole in zip(reversed(steps), reversed(before)):
                written = step.replaced(whole, written)
        except SharesPlaces:
            written = self._written_to_places(value, is_uniform)
        storage.write(written)

    def _written_to_places(self, value, is_uniform):
        """The elements of the storage after a write to those at the offset and strides of this tensor."""
        like = torch.empty_strided(self.shape, self.stride(), dtype=self.dtype, device="meta")
        whole = self._storage.value
        if not is_uniform and torch._debug_has_internal_overlap(like) == 1:
            raise RuntimeError("unsupported operation: more than one element of the written-to tensor refers to a "
                               "single memory location. Please clone() the tensor before performing the operation.")
        if to_torch(whole.dtype) != self.dtype:
            raise NotImplementedError("[torch] a write through a view that repeats elements, and has another dtype than "
                                      f"its {to_torch(whole.dtype)} elements: write to the tensor itself")
        is_conj, is_neg = signs(self._steps)
        value = ms.conj(value) if is_conj else value
        value = ms.negative(value) if is_neg else value
        return lowering_of("aten.as_strided_scatter.default")(whole, value, self.shape, self.stride(),
                                                              self.storage_offset())

    def mark(self, sharding):
        """Shards the elements: those that exist now, at once, and what is written later."""
        storage = self._storage
        if self._steps:
            self._mark, self._seen = sharding, -1
            return
        storage.value = ms.mark_sharding(storage.value, sharding)
        storage.sharding = sharding

    @property
    def sharding(self):
        """The sharding that it was marked with; None if it was not."""
        return self._mark if self._steps else self._storage.sharding

    @property
    def grad(self):
        """The gradient, as for any tensor; the gradient of a marked tensor has its mark."""
        found = _grad.__get__(self)
        sharding = self.sharding
        if sharding is not None and isinstance(found, DeviceTensor) and found.sharding is None:
            found.mark(sharding)
        return found

    @grad.setter
    def grad(self, value):
        _grad.__set__(self, value)

    @grad.deleter
    def grad(self):
        _grad.__delete__(self)

    @property
    def data(self):
        """The same elements without a derivative, as for any tensor."""
        return same_elements(self)

    @data.setter
    def data(self, other):
        given = other if isinstance(other, DeviceTensor) else other.to(DEVICE)
        sharding = self.sharding if self.shape == given.shape else None
        adopt(self, given)
        if sharding is not None and given.sharding is None:  # also another dtype is marked as the tensor was
            self._storage, self._steps = Storage(ms.mark_sharding(given.value, sharding), sharding), ()
            self._storage.list()

    def host(self):
        """A new CPU tensor with a copy of the elements.

        If they are only recorded, everything recorded is computed as one program: a step and the values read from it.
        Only these elements are waited for.
        """
        value = self.value
        num_reads[0] += 1
        if value.is_recorded:
            compute(recorded_values())
        return to_host(value)

    def __repr__(self, *, tensor_contents=None):
        text = repr(self.detach().host())
        options = f", device='{self.device}'"
        if self.grad_fn is not None:
            options += f", grad_fn=<{type(self.grad_fn).__name__}>"
        elif self.requires_grad:
            options += ", requires_grad=True"
        name = "Parameter containing:\n" if isinstance(self, torch.nn.Parameter) else ""
        return f"{name}{text[:-1]}{options})"

    def __reduce_ex__(self, protocol):
        # As tensors of other devices without storages, so that torch.load() trusts them and maps their device.
        if isinstance(self, torch.nn.Parameter):
            return torch._utils._rebuild_parameter, (self.detach(), self.requires_grad, collections.OrderedDict())
        return (torch._utils._rebuild_device_tensor_from_cpu_tensor,
                (self.detach().cpu(), self.dtype, str(self.device), self.requires_grad))

    def __copy__(self):
        made = view_of(self, self, self._steps).requires_grad_(self.requires_grad)
        return torch.nn.Parameter(made, self.requires_grad) if isinstance(self, torch.nn.Parameter) else made

    def __format__(self, spec):
        return format(self.item(), spec) if self.ndim == 0 else object.__format__(self, spec)

    def numpy(self, *, force=False):
        """The elements as a NumPy array if `force` is true; otherwise a TypeError, as for any device."""
        if not force:
            raise TypeError(f"can't convert a tensor on the device \"{DEVICE.type}\" to numpy: call .cpu() first")
        return self.detach().cpu().numpy()

    def tolist(self):
        """The elements as nested lists of Python numbers."""
        return self.host().tolist()

    def __coerce_same_metadata_as_tangent__(self, expected_metadata, expected_type=None):
        """For AOTAutograd, which captures tensors of the device as plain ones: gradients need no conversion."""
        return self

    def __deepcopy__(self, memo):
        if not self.is_leaf:
            raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                               "protocol")
        if id(self) in memo:
            return memo[id(self)]
        made = self.detach().clone().requires_grad_(self.requires_grad)
        if self.sharding is not None:
            made.mark(self.sharding)
        if isinstance(self, torch.nn.Parameter):
            made = torch.nn.Parameter(made, self.requires_grad)
        elif self.grad is not None:
            made.grad = copy.deepcopy(self.grad, memo)
        memo[id(self)] = made
        return made


def check_device(device):
    """Raises RuntimeError for a device of this type that does not exist."""
    if device is not None and torch.device(device).index not in (None, 0):
        raise RuntimeError(f"[torch] there is no device {device}: all tensors are on {DEVICE}, and meshes say on which "
                           "of the real devices")


num_reads = [0]
"""How often the host has read elements."""
is_as_torch_xla = [False]
"""Whether two things are as in torch_xla, not as on the CPU: dimensions of size 1 of contiguous views have the strides
of new tensors, by which PyTorch chooses between derivatives of products, and classes may be floats."""
_NONE = {}
_handlers = {}
"""From the id of an overload, whose hash is slow, to its handler `(args, kwargs) -> results`."""
_overloads = []
"""The overloads, so that each id stays that of one of them."""
_find_handler = []
"""The function that finds the handler of an overload: find_handler() of _operations."""


def handler_of(func):
    """The handler of an overload, which also serves calls that PyTorch dispatches to the device."""
    return _handlers.get(id(func)) or new_handler(func)


def new_handler(func):
    _overloads.append(func)
    handler = _handlers[id(func)] = _find_handler[0](func)
    return handler


def _device_error(func, tensor):
    return RuntimeError("Expected all tensors to be on the same device, but found at least two devices, "
                        f"{DEVICE} and {tensor.device}! ({func}: a tensor {tuple(tensor.shape)} "
                        f"{tensor.dtype}; call .to(\"{DEVICE.type}\"))")


def value_of(func, given, index=False):
    """An argument as lowerings take it."""
    if isinstance(given, DeviceTensor):
        return given.value
    if isinstance(given, list | tuple):
        return type(given)([value_of(func, each, index) for each in given])
    if isinstance(given, torch.Tensor):
        # As on other devices, a tensor of the host may stand for a number, and for indices.
        if given.ndim == 0 or index:
            return to_meshard(given)
        raise _device_error(func, given)
    return given


def _tensor(storage, steps, shape, dtype, **places):
    """A tensor with the elements of a storage, seen through `steps`."""
    if 0 in shape:
        places["storage_size"] = _LARGEST  # PyTorch asks for it in resize()
    made = _make(DeviceTensor, shape, dtype=dtype, device=DEVICE, **places)
    made._storage, made._steps, made._seen = storage, steps, -1
    return made


def wrap(value, sharding=None):
    """A tensor with elements of its own."""
    storage = Storage(value, sharding)
    storage.list()
    return _tensor(storage, (), value.shape, to_torch(value.dtype))


def wrap_strided(value, stride):
    """Like wrap(), with the strides of a dense tensor whose dimensions are permuted."""
    order = sorted(range(value.ndim), key=lambda d: -stride[d])
    inverse = tuple(order.index(d) for d in range(value.ndim))
    storage = Storage(ms.permute_dims(value, tuple(order)))
    storage.list()
    step = Step(lambda whole: ms.permute_dims(whole, inverse), lambda whole, part: ms.permute_dims(part, tuple(order)))
    made = _tensor(storage, (step,), value.shape, to_torch(value.dtype), strides=stride)
    made._value, made._seen = value, 0
    return made


def adopt(tensor, other):
    """Gives a tensor of the device the type, places and elements of another one; they share elements from now on."""
    _data.__set__(tensor, other)
    tensor._storage, tensor._steps, tensor._seen = other._storage, other._steps, -1
    tensor._mark = other._mark


def _set_places(tensor, *places):
    """Sets size, strides and offset, which autograd does not see."""
    with no_dispatch(), torch._C._AutoDispatchBelowADInplaceOrView():
        torch.ops.aten.as_strided_.default(tensor, *places)


def resize(tensor, size):
    """Gives a tensor without elements another size; the elements are unspecified."""
    if tensor._steps and tensor._storage.value.size:
        raise NotImplementedError("[torch] a view without elements of a tensor that has some cannot grow over them: "
                                  "write to a tensor of its own")
    stride = torch.empty(size, device="meta").stride()
    _set_places(tensor, size, stride, 0)
    tensor._storage, tensor._steps = Storage(ms.zeros(tuple(size), dtype=to_meshard_dtype(tensor.dtype))), ()


def view_of(tensor, like, steps):
    """A tensor with the elements of another one's storage, seen through `steps`, with sizes and strides as `like`."""
    return view_at(tensor, places_of(like), steps)


def places_of(like):
    """The sizes, strides, offset and dtype of a tensor."""
    stride = like.stride()
    if is_as_torch_xla[0] and like.is_contiguous():
        stride = torch._prims_common.make_contiguous_strides_for(like.shape)
    return like.shape, stride, like.storage_offset(), like.dtype


def view_at(tensor, places, steps):
    """Like view_of(), with these sizes, strides, offset and dtype."""
    shape, stride, offset, dtype = places
    return _tensor(tensor._storage, steps, shape, dtype, strides=stride, storage_offset=offset)


def same_elements(tensor):
    if not tensor._steps:
        return _tensor(tensor._storage, (), tensor.shape, tensor.dtype)
    made = view_of(tensor, tensor, tensor._steps)
    if tensor._mark is not None:
        made._mark = tensor._mark
    return made
