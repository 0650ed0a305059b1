"""Where the elements of PyTorch tensors are on a mesh."""

import functools
import gc
import weakref

import torch
import torch._dynamo
from torch._subclasses.fake_tensor import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor

import meshard as ms

from ._constraint import number_of, sharding_constraint
from ._convert import to_meshard
from ._held import Held
from .eager._tensors import DeviceTensor

_MARK = "_meshard_mark"


class _Mark:
    """The sharding of a tensor, and its value on the devices at one version of the tensor."""

    def __init__(self, sharding):
        self.sharding, self.version, self.value = sharding, None, None
        self.state_sharding = None  # of the states that an optimizer keeps for a parameter, if not as the parameter
        self.data = None  # of the tensor, with a version of its own

    def version_of(self, tensor):
        return tensor._version, None if self.data is None else self.data._version


class _Data(property):
    """The property `data` of PyTorch's tensors, through which PyTorch does not count writes.

    For a marked or placed tensor, the result shares a version that counts them.
    """

    __name__ = "data"


def _counting(plain):
    """A _Data around PyTorch's property."""
    def get(tensor):
        data = plain.__get__(tensor)
        mark = getattr(tensor, _MARK, None)
        if mark is None or isinstance(tensor, Held):
            return data
        if mark.data is None:
            mark.data = data
        return mark.data.detach()

    def write(tensor, value):
        plain.__set__(tensor, value)
        mark = getattr(tensor, _MARK, None)
        if mark is not None:
            mark.value = mark.data = None

    return _Data(get, write, doc=plain.__doc__)


if not isinstance(torch.Tensor.data, _Data):
    torch.Tensor.data = _counting(torch.Tensor.data)


def _sharding(mesh, spec, rank):
    return spec if isinstance(spec, ms.Sharding) else ms.Sharding(mesh, spec, rank)


@torch._dynamo.assume_constant_result
def _constant_number(mesh, spec, rank):
    return number_of(_sharding(mesh, spec, rank))


def is_captured(tensor):
    """Whether a tensor represents a value of a program that is being captured."""
    return torch.compiler.is_dynamo_compiling() or isinstance(tensor, FakeTensor | FunctionalTensor)


def mark_sharding(tensor, mesh, spec):
    """Sets the sharding of a tensor, as in `mark_sharding(weight, mesh, P("model", None))`. Returns the tensor.

    Programs place a marked tensor or parameter with this sharding, once, until PyTorch writes to it; elements that are
    already on the devices are moved now. Inside a function that is captured, the result and its gradient are
    constrained to the sharding.

        >>> weight = mt.mark_sharding(torch.ones(4, 8), ms.Mesh({"model": 4}), ms.P(None, "model"))
        >>> mt.sharding_of(weight).spec
        P(None, 'model')

    Raises InvalidArgumentError for a spec with more dimensions than the tensor, and NotFoundError for an axis that the
    mesh lacks.
    """
    if torch.compiler.is_dynamo_compiling():
        return sharding_constraint(tensor, _constant_number(mesh, spec, tensor.ndim))
    sharding = _sharding(mesh, spec, tensor.ndim)
    if is_captured(tensor):
        return sharding_constraint(tensor, number_of(sharding))
    if isinstance(tensor, DeviceTensor):
        tensor.mark(sharding)
        return tensor
    if isinstance(tensor, Held):
        tensor.value = ms.device_put(tensor.value, sharding)
    _set_mark(tensor, sharding, state_sharding_of(tensor))
    return tensor


_count = 0


def _set_mark(tensor, sharding, state_sharding):
    global _count
    _count += 1
    mark = _Mark(sharding)
    mark.state_sharding = state_sharding
    setattr(tensor, _MARK, mark)


def marks_made():
    """How often tensors were marked."""
    return _count


def set_state_sharding(parameter, sharding):
    """Sets the sharding of a parameter's optimizer states, if it is not the parameter's."""
    _set_mark(parameter, sharding_of(parameter), sharding)


def state_sharding_of(parameter):
    """The sharding of set_state_sharding(); None without a call."""
    mark = getattr(parameter, _MARK, None)
    return mark and mark.state_sharding


def sharding_of(tensor):
    """The sharding that a tensor was marked with; None without a mark."""
    if isinstance(tensor, DeviceTensor):
        return tensor.sharding
    mark = getattr(tensor, _MARK, None)
    return mark and mark.sharding


def _with_marks(deepcopy):
    """Marks copies of a module's parameters as the parameters are, because PyTorch does not copy their attributes."""

    @functools.wraps(deepcopy)
    def copied(tensor, memo):
        made = deepcopy(tensor, memo)
        if getattr(tensor, _MARK, None) is not None and made is not tensor:
            _set_mark(made, sharding_of(tensor), state_sharding_of(tensor))
        return made

    return copied


for _class in (torch.nn.Parameter, Held):
    if "__deepcopy__" in vars(_class) and not hasattr(vars(_class)["__deepcopy__"], "__wrapped__"):
        _class.__deepcopy__ = _with_marks(vars(_class)["__deepcopy__"])


def placed(tensor):
    """The value of a tensor as programs take it: placed once by its mark, or made of its current elements."""
    if type(tensor) is Held or isinstance(tensor, DeviceTensor):
        return tensor.value
    mark = getattr(tensor, _MARK, None)
    if mark is None:
        if not isinstance(tensor, torch.nn.Parameter):
            return to_meshard(tensor)
        mark = _Mark(None)
        setattr(tensor, _MARK, mark)
    version = mark.version_of(tensor)
    if mark.value is None or mark.version != version:
        value = to_meshard(tensor)
        mark.value = value if mark.sharding is None else ms.device_put(value, mark.sharding)
        mark.version = version
    return mark.value


def is_alone(tensor):
    """Whether no view and no array shares the memory of a tensor."""
    storage = tensor.untyped_storage()
    return torch._C._storage_Use_Count(storage._cdata) == 2  # the tensor's, and `storage`


def hold(tensor, value):
    """Turns a tensor of PyTorch in place into a Held one with this value; a tensor of the device is written to."""
    if type(tensor) is Held:
        tensor.value = value
        return
    if isinstance(tensor, DeviceTensor):
        tensor.write(value)
        return
    with torch.inference_mode(False):  # what is made in inference mode cannot be written to outside
        held = Held(value, requires_grad=tensor.requires_grad)
        if isinstance(tensor, torch.nn.Parameter):
            held = torch.nn.Parameter(held, requires_grad=tensor.requires_grad)
    attributes = {k: v for k, v in tensor.__dict__.items() if k != _MARK}
    mark = getattr(tensor, _MARK, None)
    if weakref.getweakrefcount(tensor):
        gc.collect()  # those of modes in which the module was exported
    if weakref.getweakrefcount(tensor):
        raise RuntimeError(f"[torch] a tensor {tuple(tensor.shape)} cannot be kept on the devices, because others have "
                           "weak references to it, such as programs of torch.compile: make the training step before "
                           "them, or train a copy.deepcopy() of the model")
    torch.utils.swap_tensors(tensor, held)
    tensor.__dict__.update(attributes)
    _set_mark(tensor, mark and mark.sharding, mark and mark.state_sharding)
