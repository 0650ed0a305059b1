"""Compares entries of PyTorch's op_db, compiled by meshard.torch or on its device, with PyTorch's CPU."""

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
    of_all: bool = False
    """Whether all samples of the entry were compared."""


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

    def __init__(self, entry, sample, gradients, op):
        self.entry, self.sample, self.gradients_wanted, self._op = entry, sample, gradients, op
        self._flat, self._structure = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        self._places = [i for i, each in enumerate(self._flat) if isinstance(each, torch.Tensor)]

    def tensors(self):
        """Fresh copies of the tensors."""
        return [self._flat[i].detach().clone().requires_grad_(self._flat[i].requires_grad) for i in self._places]

    def __call__(self, *tensors, device=None):
        flat = [device if device and str(each) == "cpu" else each for each in self._flat]
        for place, tensor in zip(self._places, tensors, strict=True):
            flat[place] = tensor
        first, args, kwargs = pytree.tree_unflatten(flat, self._structure)
        result = self._op(first, *args, **kwargs)
        return self.sample.output_process_fn_grad(result) if self.gradients_wanted else result

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

    def prepare(self):
        """Computes PyTorch's results; False if it refuses the sample."""
        self._own = self.tensors()
        try:
            self._wanted = pytree.tree_leaves(self(*self._own))
        except Exception:  # noqa: BLE001  (whatever PyTorch raises)
            return False
        self._is_random = self.is_random(self._wanted)
        return True

    def difference(self, got):
        """Empty if the results are PyTorch's."""
        got = pytree.tree_leaves(got)
        if len(got) != len(self._wanted):
            return f"{len(got)} results for {len(self._wanted)}"
        for i, (x, y) in enumerate(zip(self._wanted, got)):
            found = difference(x, y)
            if found.startswith("values") and (
                    self._is_random or self._is_as_precise(i, y)
                    or _finds_other_equal_elements(self.entry, self.sample, self._wanted, got)
                    or _has_other_phases(self.entry, self.sample, self._wanted, got)):
                continue
            if found:
                return found
        return ""

    def gradient_difference(self, pairs, ours, seeds):
        """Empty if the gradients `ours` of these pairs are PyTorch's."""
        for i, (x, y) in enumerate(zip(self.gradients(pairs, seeds), ours, strict=True)):
            bad = difference(x, y)
            if bad and not (x.dtype in _WIDE and is_as_close(self.precise_gradients(seeds)[i], x, y)):
                return f"gradient {bad}"
        return ""

    def _is_as_precise(self, i, got):
        if self._wanted[i].dtype not in _WIDE:
            return False
        precise = pytree.tree_leaves(self(*map(_doubled, self.tensors())))[i]
        return precise.shape == got.shape and is_as_close(precise, self._wanted[i], got)

    def precise_gradients(self, seeds):
        """PyTorch's gradients in double precision."""
        leaves = [_doubled(each) for each in self.tensors()]
        results = [each for each in pytree.tree_leaves(self(*leaves)) if isinstance(each, torch.Tensor)
                   and each.requires_grad]
        return _gradients(results, [each for each in leaves if each.requires_grad], [_doubled(each) for each in seeds])

    def gradient_pairs(self, got):
        """The results of PyTorch and their equals in `got` that have a derivative; none if the sample is random."""
        return [] if self._is_random or not any(each.requires_grad for each in self._own) else [
            (x, y) for x, y in zip(self._wanted, pytree.tree_leaves(got))
            if isinstance(x, torch.Tensor) and x.requires_grad]

    def gradients(self, pairs, seeds):
        """PyTorch's gradients."""
        leaves = [each for each in self._own if each.requires_grad]
        return _gradients([x for x, _ in pairs], leaves, seeds)


_WIDE = {torch.bfloat16: torch.float64, torch.float16: torch.float64, torch.float32: torch.float64,
         torch.complex64: torch.complex128}


def is_as_close(precise, wanted, got):
    """Whether a result is about as close to that of double precision as PyTorch's; one rounding is allowed to both."""
    precise = precise.detach()
    if not torch.equal(torch.isfinite(got), torch.isfinite(precise)):
        return False
    distances = [(each.detach().to(precise.dtype) - precise).abs().nan_to_num(0, 0, 0).max() for each in (wanted, got)]
    rounding = torch.finfo(wanted.dtype).eps * precise.abs().nan_to_num(0, 0, 0).max()
    return bool(distances[1] <= 3 * distances[0] + rounding)


def _doubled(value):
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().to(_WIDE.get(value.dtype, value.dtype)).requires_grad_(value.requires_grad)


def _gradients(results, leaves, seeds):
    found = torch.autograd.grad(results, leaves, [seed.clone() for seed in seeds], allow_unused=True)
    return [torch.zeros_like(leaf) if each is None else each for leaf, each in zip(leaves, found)]


def _run(samples):
    """What became of samples that are compiled as one program: for each, empty if it is right, or a difference."""
    tensors = [each.tensors() for each in samples]
    sizes = [len(each) for each in tensors]

    def all_of(*flat):
        given = iter(flat)
        return [sample(*(next(given) for _ in range(size))) for sample, size in zip(samples, sizes)]

    got = mt.compile(all_of)(*(each for group in tensors for each in group))
    found = [sample.difference(each) for sample, each in zip(samples, got)]
    if not any(sample.gradients_wanted for sample in samples):
        return found
    pairs = [[] if bad else sample.gradient_pairs(each) for sample, each, bad in zip(samples, got, found)]
    seeds = [[torch.randn_like(x) for x, _ in each] for each in pairs]
    leaves = [[each for each in group if each.requires_grad] if pair else [] for group, pair in zip(tensors, pairs)]
    if not any(pairs):
        return found
    ours = iter(_gradients([y for each in pairs for _, y in each], [each for group in leaves for each in group],
                           [each for group in seeds for each in group]))
    for i, (sample, pair, seed, group) in enumerate(zip(samples, pairs, seeds, leaves)):
        own = [next(ours) for _ in group]
        found[i] = found[i] or pair and sample.gradient_difference(pair, own, seed)
    return found


def run_on_device(samples):
    """As _run(), but each sample by itself, eagerly on the device."""
    device = mt.device()

    def moved(tensor):
        return tensor.detach().to(device).requires_grad_(tensor.requires_grad)

    def on_host(made):
        return pytree.tree_map_only(mt.DeviceTensor, lambda each: each.cpu(), made)

    tensors = [[moved(each) for each in sample.tensors()] for sample in samples]
    made = [sample(*given, device=device) for sample, given in zip(samples, tensors)]
    mt.sync(*(each for each in pytree.tree_leaves(made) if isinstance(each, mt.DeviceTensor)))
    found = [sample.difference(on_host(each)) for sample, each in zip(samples, made)]
    for i, (sample, given) in enumerate(zip(samples, tensors)):
        if any(type(each) is torch.Tensor for each in pytree.tree_leaves(made[i])):
            found[i] = found[i] or "a result that is not on the device"
        pairs = sample.gradient_pairs(made[i]) if sample.gradients_wanted and not found[i] else []
        if pairs:
            seeds = [torch.randn_like(x) for x, _ in pairs]
            ours = _gradients([y for _, y in pairs], [each for each in given if each.requires_grad],
                              [moved(each) for each in seeds])
            found[i] = sample.gradient_difference(pairs, on_host(ours), seeds)
    return found


def _written_to_out(entry):
    def op(*args, **kwargs):
        out = pytree.tree_map(torch.empty_like, entry.op(*args, **kwargs))
        entry.op(*args, **kwargs, out=out)
        return out

    return op


def _written_in_place(entry):
    def op(first, *args, **kwargs):
        first = first.clone()
        made = entry.inplace_variant(first, *args, **kwargs)
        return [first, made] if made is not first else first

    return op


def variant(entry, name):
    """The function of a variant of an entry: "plain", "in place", or "out"; None if it has none."""
    if name == "in place":
        return _written_in_place(entry) if entry.inplace_variant is not None else None
    if name == "out":
        return _written_to_out(entry) if entry.supports_out else None
    return entry.op


_TOGETHER = 8
"""How many samples are compiled as one program."""


def compare(entry, dtype, most_samples, gradients=False, run=_run, op=None):
    """The Verdict of an entry of op_db, for at most so many of its samples; a wrong value counts more than an error.

    `run` says what became of a list of samples; `op` is a variant of the entry's function.
    """
    if dtype not in entry.supported_dtypes("cpu"):
        return Verdict("skipped", f"it has no {dtype}")
    if gradients and not entry.supports_autograd:
        return Verdict("skipped", "it has no derivative")
    torch.manual_seed(0)
    # Not by sample_inputs(), which seeds PyTorch's generators, at some cost, for each sample.
    samples = list(entry.sample_inputs_func(entry, "cpu", dtype, gradients))
    total, count = len(samples), min(len(samples), most_samples)
    samples = [_Sample(entry, samples[i * len(samples) // count], gradients, op or entry.op) for i in range(count)]
    samples = [each for each in samples if each.prepare()]
    verdicts = [Verdict("right")]
    for start in range(0, len(samples), _TOGETHER):
        together = samples[start:start + _TOGETHER]
        try:
            verdicts += [Verdict("wrong", found) if found else Verdict("right") for found in run(together)]
        except Exception:  # noqa: BLE001  (each by itself says which has the error)
            verdicts += [_verdict_of_one(each, run) for each in together]
    worst = max(verdicts, key=lambda each: ("right", "missing", "error", "wrong").index(each.kind))
    return dataclasses.replace(worst, of_all=count == total)


def _verdict_of_one(sample, run):
    try:
        found = run([sample])[0]
        return Verdict("wrong", found) if found else Verdict("right")
    except Exception as error:  # noqa: BLE001  (the verdict says what it is)
        text = " ".join(str(error).split())
        return Verdict("missing" if "has no lowering" in text else "error", f"{type(error).__name__}: {text[:220]}")
