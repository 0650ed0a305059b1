"""Compares entries of PyTorch's op_db, compiled by meshard.torch, with PyTorch's CPU."""

import contextlib
import dataclasses

import torch
from torch.utils import _pytree as pytree

import meshard.torch as mt


@dataclasses.dataclass
class Verdict:
    """What became of an entry: "right", "wrong", "missing" (no lowering), "error", or "skipped"."""

    kind: str
    reason: str = ""


def name_of(entry):
    """The name of an entry with its variant."""
    return f"{entry.name}.{entry.variant_test_name}" if entry.variant_test_name else entry.name


def difference(wanted, got):
    """Empty if two results are equal up to rounding, else how they differ."""
    if not isinstance(wanted, torch.Tensor):
        return "" if wanted == got or (wanted != wanted and got != got) else f"{got} for {wanted}"
    if not isinstance(got, torch.Tensor):
        return f"{type(got)} for a tensor"
    if wanted.dtype != got.dtype:
        return f"dtype {got.dtype} for {wanted.dtype}"
    if wanted.shape != got.shape:
        return f"shape {tuple(got.shape)} for {tuple(wanted.shape)}"
    tolerance = 1e-4 if wanted.dtype in (torch.float32, torch.complex64) else None
    try:
        torch.testing.assert_close(got.detach(), wanted.detach(), equal_nan=True, rtol=tolerance, atol=tolerance,
                                   check_stride=False, check_device=False)
    except AssertionError as error:
        return "values: " + " ".join(str(error).split())[:120]
    return ""


# --- what PyTorch does not specify ------------------------------------------------------------------------

def _dimension(entry, sample):
    """The dimension along which a sample sorts or selects."""
    position = {"argsort": 0, "mode": 0, "sort": 0, "topk": 1, "kthvalue": 1}[entry.name]
    given = sample.args[position] if len(sample.args) > position else -1
    return sample.kwargs.get("dim", given)


def _finds_other_equal_elements(entry, sample, wanted, got):
    """Whether the indices are of elements that equal those of PyTorch's: which of equal elements is found is open."""
    if entry.name not in ("argsort", "mode", "sort", "topk", "kthvalue") or sample.kwargs.get("stable"):
        return False
    if not isinstance(sample.input, torch.Tensor):
        return False
    x, dim = sample.input.detach(), _dimension(entry, sample)

    def elements(indices):
        if not x.ndim:
            return x
        return x.gather(dim, indices if indices.ndim == x.ndim else indices.unsqueeze(dim))

    values_differ = entry.name != "argsort" and difference(wanted[0], got[0])
    return not values_differ and not difference(elements(wanted[-1]), elements(got[-1]))


def _is_unitary(vectors):
    return torch.allclose(vectors.mH @ vectors, torch.eye(vectors.shape[-1], dtype=vectors.dtype), atol=1e-3)


def _has_other_phases(entry, sample, wanted, got):
    """Whether factors differ from PyTorch's by the phases of their vectors, which are open."""
    if entry.name in ("linalg.eigh", "linalg.eig"):
        (values, vectors), a = got[:2], sample.input.detach()
        if entry.name == "linalg.eigh" and sample.kwargs.get("UPLO", "L") == "L":
            a = torch.tril(a) + torch.tril(a, -1).mT.conj()
        elif entry.name == "linalg.eigh":
            a = torch.triu(a) + torch.triu(a, 1).mT.conj()
        scaled = vectors * values.unsqueeze(-2).to(vectors.dtype)
        return not difference(wanted[0], values) and torch.allclose(a.to(vectors.dtype) @ vectors, scaled, atol=1e-3)
    if entry.name in ("svd", "linalg.svd", "svd_lowrank", "pca_lowrank") and len(got) == 3:
        is_adjoint = entry.name == "linalg.svd"

        def product(u, s, v):
            rank = s.shape[-1]
            right = v[..., :rank, :] if is_adjoint else v[..., :rank].mH
            return (u[..., :rank] * s.unsqueeze(-2).to(u.dtype)) @ right

        return not difference(wanted[1], got[1]) and not difference(product(*wanted), product(*got)) \
            and _is_unitary(got[0]) and _is_unitary(got[2].mH if is_adjoint else got[2])
    return False


@contextlib.contextmanager
def _other_seed(seed):
    """While active, samples that set the seed themselves do not."""
    own = torch.manual_seed
    own(seed)
    torch.manual_seed = lambda *_: None
    try:
        yield
    finally:
        torch.manual_seed = own


# --- entries ---------------------------------------------------------------------------------------------

class _Sample:
    """One sample as a function of its tensors."""

    def __init__(self, entry, sample, gradients):
        self.entry, self.sample, self.gradients = entry, sample, gradients
        self._flat, self._structure = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        self._places = [i for i, each in enumerate(self._flat) if isinstance(each, torch.Tensor)]

    def tensors(self):
        """Fresh copies of the tensors."""
        return [self._flat[i].detach().clone().requires_grad_(self._flat[i].requires_grad) for i in self._places]

    def __call__(self, *tensors):
        flat = list(self._flat)
        for place, tensor in zip(self._places, tensors, strict=True):
            flat[place] = tensor
        first, args, kwargs = pytree.tree_unflatten(flat, self._structure)
        result = self.entry.op(first, *args, **kwargs)
        return self.sample.output_process_fn_grad(result) if self.gradients else result

    def is_random(self, wanted):
        """Whether another seed gives other elements; so does memory that nobody has written to."""
        name = name_of(self.entry)
        if "empty" in name:
            return True
        draws = any(word in name for word in ("random", "drop", "bernoulli", "multinomial", "attention"))
        for seed in range(1, 5 if draws else 2):
            with _other_seed(seed):
                again = pytree.tree_leaves(self(*self.tensors()))
            if any(difference(x, y) for x, y in zip(wanted, again) if isinstance(x, torch.Tensor)):
                return True
        return False

    def compare(self):
        """Empty if results, and gradients if wanted, are PyTorch's; None if PyTorch itself refuses the sample."""
        inputs, own = self.tensors(), self.tensors()
        try:
            wanted = pytree.tree_leaves(self(*inputs))
        except Exception:  # noqa: BLE001  (whatever PyTorch raises)
            return None
        is_random = self.is_random(wanted)
        got = pytree.tree_leaves(mt.compile(self)(*own))
        for x, y in zip(wanted, got, strict=True):
            found = difference(x, y)
            if found.startswith("values") and (
                    is_random or _finds_other_equal_elements(self.entry, self.sample, wanted, got)
                    or _has_other_phases(self.entry, self.sample, wanted, got)):
                continue
            if found:
                return found
        return "" if is_random or not self.gradients else self._compare_gradients(wanted, got, inputs, own)

    @staticmethod
    def _compare_gradients(wanted, got, inputs, own):
        pairs = [(x, y) for x, y in zip(wanted, got) if isinstance(x, torch.Tensor) and x.requires_grad]
        leaves = [(x, y) for x, y in zip(inputs, own) if x.requires_grad]
        if not pairs or not leaves:
            return ""
        seeds = [torch.randn_like(x) for x, _ in pairs]
        of_pytorch, ours = (torch.autograd.grad([pair[i] for pair in pairs], [leaf[i] for leaf in leaves],
                                                [seed.clone() for seed in seeds], allow_unused=True) for i in (0, 1))
        for (leaf, _), x, y in zip(leaves, of_pytorch, ours):
            found = difference(*(torch.zeros_like(leaf) if each is None else each for each in (x, y)))
            if found:
                return f"gradient {found}"
        return ""


def compare(entry, dtype, most_samples, gradients=False):
    """The Verdict of an entry of op_db, for at most so many of its samples."""
    if dtype not in entry.supported_dtypes("cpu"):
        return Verdict("skipped", f"it has no {dtype}")
    if gradients and not entry.supports_autograd:
        return Verdict("skipped", "it has no derivative")
    try:
        torch.manual_seed(0)
        samples = list(entry.sample_inputs("cpu", dtype, requires_grad=gradients))
        for sample in samples[::max(1, len(samples) // most_samples)]:
            if found := _Sample(entry, sample, gradients).compare():
                return Verdict("wrong", found)
    except Exception as error:  # noqa: BLE001  (the verdict says what it is)
        text = " ".join(str(error).split())
        kind = "missing" if "has no lowering" in text else "error"
        return Verdict(kind, f"{type(error).__name__}: {text[:220]}")
    return Verdict("right")
