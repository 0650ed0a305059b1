"""torch.autocast on the device: the rules that PyTorch has for GPUs."""

import torch
from torch.utils import _pytree as pytree

_LOW = frozenset("""_convolution addbmm addmm addmv addr baddbmm bmm chain_matmul conv1d conv2d conv3d conv_tbc
    conv_transpose1d conv_transpose2d conv_transpose3d convolution einsum gru_cell linalg_multi_dot linalg_vecdot linear
    lstm_cell matmul mm mv prelu rnn_relu_cell rnn_tanh_cell scaled_dot_product_attention _thnn_fused_gru_cell
    _thnn_fused_lstm_cell _scaled_dot_product_flash_attention""".split())
_WIDEST = frozenset("""addcdiv addcmul atan2 bilinear cross dot grid_sampler index_put scatter_add tensordot
    vdot""".split())
"""The operations in the dtype of autocast, and those in the widest of their arguments; all others are in float32."""


def _cast(structure, dtype):
    return pytree.tree_map_only(torch.Tensor, lambda each: each.to(dtype) if each.dtype in _CAST else each, structure)


_CAST = (torch.float32, torch.float16, torch.bfloat16)  # not float64, which autocast leaves as it is


def _widest(structure):
    found = {each.dtype for each in pytree.tree_leaves(structure) if isinstance(each, torch.Tensor)} & set(_CAST)
    return torch.float32 if len(found) > 1 else next(iter(found), torch.float32)


def _kernel(name, op, without, device_type):
    base = name.partition(".")[0]

    def kernel(*args, **kwargs):
        if base == "binary_cross_entropy":
            raise RuntimeError("torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast: "
                               "use binary_cross_entropy_with_logits or BCEWithLogitsLoss")
        # Within it, PyTorch's own rules do not apply again.
        with torch._C._ExcludeDispatchKeyGuard(without):
            if base in _LOW:
                dtype = torch.get_autocast_dtype(device_type)
            else:
                dtype = _widest((args, kwargs)) if base in _WIDEST else torch.float32
            return op(*_cast(args, dtype), **_cast(kwargs, dtype))

    return kernel


def register(library, key, device_type):
    """Registers the rules for the dispatch key of a device type. Returns what must stay alive."""
    name_of_key = f"Autocast{key}"
    without = torch._C.DispatchKeySet(torch._C._dispatch_key_parse(name_of_key))
    everything = torch.library.Library("_", "IMPL")
    everything.fallback(torch.library.fallthrough_kernel, name_of_key)
    for full in torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCUDA"):
        name = full.removeprefix("aten::")
        if name == full:
            continue
        packet, _, overload = name.partition(".")
        op = getattr(getattr(torch.ops.aten, packet), overload or "default")
        library.impl(name, _kernel(name, op, without, device_type), name_of_key)
    return everything
