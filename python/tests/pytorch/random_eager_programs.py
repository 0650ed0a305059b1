"""Random eager programs on the device "meshard" beside PyTorch's CPU: views, writes, marks, backward passes.

usage: random_eager_programs.py [--programs 100] [--seed 0] [--statements 14] [--print]

A program is a list of lines, each of which PyTorch's CPU runs without an error. A program that differs on the device is
shrunk, and printed as a script that fails. --print prints each program before it runs.
"""

import argparse
import collections
import os
import random
import re
import sys
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

PRELUDE = '''\
import torch
import meshard as ms
import meshard.torch as mt

MESHES = [({"a": 2, "b": 4}, range(8)), ({"a": 8}, range(8)), ({"a": 2}, [0, 1]), ({"a": 2}, [2, 3]),
          ({"a": 2, "b": 2}, [4, 5, 6, 7]), ({"a": 2}, [1, 5]), ({"a": 4}, [7, 5, 6, 4])]


def data(seed, shape, dtype=torch.float32):
    """Elements of the CPU that all dtypes have, so that sums of few are exact."""
    made = torch.randint(-8, 9, shape, generator=torch.Generator().manual_seed(seed)) / 4
    if dtype.is_complex:
        return torch.complex(made, made.flip(-1) if made.ndim else made).to(dtype)
    return made.abs().to(dtype) if dtype == torch.uint8 else made > 0 if dtype == torch.bool else made.to(dtype)


def index(seed, shape, size):
    """Indices without repetition, as far as there are enough."""
    count = torch.Size(shape).numel()
    order = torch.randperm(size, generator=torch.Generator().manual_seed(seed)).repeat(count // size + 1)
    return order[:count].reshape(shape)


def mark(tensor, mesh, *spec):
    if tensor.device.type == "meshard":
        axes, ids = MESHES[mesh]
        mt.mark_sharding(tensor, ms.Mesh(axes, device_ids=list(ids)), ms.P(*spec))


def sync(dev):
    if torch.device(dev).type == "meshard":
        mt.sync()
'''

_prelude = compile(PRELUDE, "prelude", "exec")

_DTYPES = ["torch.float32"] * 8 + ["torch.float64", "torch.int64", "torch.int64", "torch.int32", "torch.bool",
                                   "torch.complex64", "torch.uint8", "torch.bfloat16"]


def _templates(text):
    return [each for line in text.strip().splitlines() for each in line.split("  ")]


# {x}: a tensor; {d}, {e}: its dimensions; {i}: an index along {d}; {s}: a slice; {n}: a small number.
_VIEWS = _templates("""
{x}[{s}]  {x}[{s}]  {x}[..., {s}]  {x}[:, {s}]  {x}[{i0}]  {x}[..., {i1}]  {x}[None]  {x}.select({d}, {i})
{x}.narrow({d}, 0, {n})  {x}.transpose({d}, {e})  {x}.transpose({d}, {e})  {x}.t()  {x}.mT  {x}.T
{x}.movedim({d}, {e})  {x}.permute({p})  {x}.diagonal()  {x}.diagonal({o}, {d}, {e})  {x}.as_strided({as})
{x}.as_strided({as})  torch.view_as_real({x})  torch.view_as_complex({x})  {x}.real  {x}.imag  {x}.conj()
{x}.unfold({d}, {n}, {n})  {x}.expand({n}, *{x}.shape)  {x}.expand_as({x})  {x}[None].expand({n}, *{x}.shape)
{x}.split({n}, {d})[0]  {x}.split({n}, {d})[-1]  {x}.chunk({n}, {d})[-1]  {x}.unbind({d})[{i}]  {x}.reshape({r})
{x}.view({r})  {x}.view(-1)  {x}.flatten()  {x}.flatten({d}, {e})  {x}.ravel()  {x}.unsqueeze({d})  {x}.squeeze()
{x}.squeeze({d})  {x}.unflatten({d}, (-1, {n}))  {x}.view({x}.dtype)  {x}.view_as({x})  {x}.detach()  {x}.data
{x}.swapaxes({d}, {e})  {x}.tensor_split({n}, {d})[0]  {x}.view_as({x})  torch.atleast_2d({x})  {x}.adjoint()
{x}.resolve_conj()  {x}.contiguous()  {x}.to(dev)  {x}.broadcast_to(({n}, *{x}.shape))  {x}.split([1, {n}], {d})[1]
""")

# {y}: a tensor that has about the shape of {v}; {c}: a number; {m}: a mask.
_WRITES = _templates("""
{v}.add_({y})  {v}.add_({y}, alpha={n})  {v}.mul_({y})  {v}.sub_({y})  {v}.div_(4)  {v}.copy_({y})  {v}.copy_({y})
{v}.fill_({c})  {v}.zero_()  {v}.neg_()  {v}.sin_()  {v}.atan_()  {v}.clamp_(-1, 1)  {v}.relu_()  {v}.abs_()
{v}.masked_fill_({m}, {c})  {v}.masked_fill_({m}, torch.tensor({c}))  {v}.scatter_({d}, {I}, {c})
{v}.scatter_({d}, {I}, {w})  {v}.scatter_add_({d}, {I}, {w})  {v}.index_put_(({J},), {c1})
{v}.index_fill_({d}, {J}, {c})  {v}.index_add_({d}, {J}, {v}.index_select({d}, {J}))
{v}.index_copy_({d}, {J}, {v}.index_select({d}, {J}) + 1)  {v}.lerp_({w}, 0.25)  {v}.addcmul_({w}, {w}, value=2)
{v}.tril_()  {v}.triu_(1)  {v}.fill_diagonal_({c})  {v}.pow_(2)  {v}.logical_not_()  {v}.gt_({y})  {v}.eq_({y})
{v}.remainder_(3)  {v}.floor_()  {v}.cumsum_({d})  {v}.flip({d}).add_(1)  {v}[{s}] = {c}  {v}[{m}] = {c}
{v}[{J}] = {c}  {v}[..., {i1}] += {c}  {v}[{m}] *= {n}  {v}[{s}] = {v}[{s}].clone()  {v}.masked_scatter_({m}, {u})
{v}.put_({L}, {c1}.expand(2).to(dev))  {v}.where({m}, {c})  {v}.bitwise_and_(5)  {v}.maximum({w})  {x}.t_()
{x}.transpose_({d}, {e})  {x}.squeeze_()  {x}.unsqueeze_({d})  {x} += {y}  {x} *= {c}  {x} -= {y}  {x}.data.mul_({n})
{x}.data = {x}.data * 2  {x}.data = {w}  {x}.data[{s}] = {c}  {x}.requires_grad_()  {x}.detach_()
torch.add({w}, {y}, out={v})  torch.mul({w}, {c}, out={v})  torch.sin({w}, out={v})  torch.cumsum({w}, {d}, out={v})
torch.where({m}, {w}, {v}, out={v})  torch.stack([{w}, {w}], out={z})  torch.cat([{x}, {x}], {d}, out={z})
torch.matmul({x}, {x}.mT, out={z})  torch.sum({x}, {d}, out={z})  torch.index_select({x}, {d}, {J}, out={z})
torch.sort({x}, {d}, stable=True, out=({z}, torch.empty_like({z}, dtype=torch.int64)))
torch.clamp({w}, -1, 1, out={v})  torch._foreach_add_([{v}, {x}], [{w}, {x}])  torch._foreach_mul_([{x}, {z}], {n})
torch._foreach_zero_([{v}])  torch._foreach_copy_([{v}, {z}], [{w}, {z}])  torch._foreach_lerp_([{v}], [{w}], 0.5)
torch._foreach_neg_([{x}, {z}])  torch._foreach_addcmul_([{v}], [{w}], [{w}], 2)  torch._foreach_sub_([{z}, {x}], 1)
torch._foreach_clamp_max_([{x}], 1)
""")

_VALUES = _templates("""
{x} + {y}  {x} * {y}  {x} - {y}  {x} * {c}  {c} - {x}  {x}.sin()  {x}.sum()  {x}.sum({d})  {x}.mean({d}, keepdim=True)
{x}.clone()  {x}.clone()  {x}.amax({d})  {x}.max({d}).values  {x}.sort({d}, stable=True).values  {x}.cumsum({d})
{x} @ {x}.mT  torch.cat([{x}, {x}], {d})  torch.stack([{x}, {w}])  torch.where({m}, {x}, {y})  {x}[{m}]  {x}[{J}]
{x}.index_select({d}, {J})  {x}.gather({d}, {I})  {x}.to({t})  {x}.float()  {x}.double()  {x} > {y}  {x}.flip({d})
{x}.roll(1, {d})  {x}.repeat({n}, *[1] * {x}.ndim)  torch.zeros_like({x})  torch.ones_like({x})
{x}.new_full(({n},), {c})  torch.full_like({x}, {c})  torch.empty_like({x}).copy_({x})  {x}.masked_fill({m}, {c})
{x}.add({y}, alpha={n})  torch.arange({n}, device=dev)  torch.zeros({n}, {n}, device=dev)  {x}.abs().sqrt()
{x}.nonzero()  {x}.unique()  {x}.contiguous()  torch.einsum('...i,...i->...', {x}, {w})
torch.softmax({x}.float(), {d})  {x}.scatter({d}, {I}, {c})  {x}.type_as({w})
torch.outer({x}.flatten(), {x}.flatten())  {x}.clone().requires_grad_()  {x}.detach().clone()  {x}.argmax({d})
{x}.count_nonzero()  {x}.any({d})  {x}.prod({d})  {x}.norm()  {x}.exp()  ({x} / 4)  {x}.tril()
torch.empty_strided({as2}, device=dev).fill_({c})  {x}.to(torch.float64).view(-1)  {x}.new_zeros({x}.shape)
""")

_OTHERS = _templates("""
sync(dev)  seen.append({x}.sum().item())  seen.append({x}.cpu().clone())  seen.append({x}.tolist())
seen.append(bool({x}.any()))  seen.append(torch.equal({x}, {y}))  seen.append({x}.detach().cpu().numpy().copy())
seen.append({x}.is_contiguous())  {x}.register_hook(lambda g: g * 2)  {x}.register_hook(lambda g: g.clamp(-1, 1))
{x}.grad = None  {x}.grad.zero_()  {x}.grad.mul_(2)  {x}.register_post_accumulate_grad_hook(lambda t: t.grad.add_(1))
seen.append({x}.grad)  {x}.retain_grad()  {x}.backward(torch.ones_like({x}))  {f}.sum().backward()
{f}.sum().backward()  {f}.square().sum().backward()  {f}.sum().backward(retain_graph=True)
seen.append(torch.autograd.grad({f}.sum(), [{g}], allow_unused=True)[0])
seen.append(torch.autograd.grad({f}.square().sum(), [{g}], create_graph=True)[0])
""")


class Generator:
    """Makes one program, which it runs on the CPU line by line."""

    def __init__(self, seed, statements):
        self._random, self._count, self.lines = random.Random(seed), 0, []
        self._groups = []  # storages that lines bring together, and the devices that they were marked on
        self._restart()
        while len(self.lines) < 3:
            self._add(self._new())
        for _ in range(8 * statements):
            if len(self.lines) >= statements:
                break
            self._add(self._line())

    def _restart(self):
        self._space, self._groups = space("cpu"), []
        for line in self.lines:
            self._execute(line)

    def _tensors(self):
        return [name for name, each in self._space.items() if isinstance(each, torch.Tensor)]

    def _pick(self, wanted=lambda each: True):
        names = [name for name in self._tensors() if wanted(self._space[name])]
        return self._random.choice(names or self._tensors())

    def _add(self, line):
        """Keeps a line if the CPU runs it, and its elements can be compared."""
        if line is None:
            return
        try:
            if self._execute(line) and all(map(_is_small, self._values())):
                self.lines.append(line)
                return
        except Exception:  # noqa: BLE001  (whatever PyTorch raises)
            pass
        self._restart()

    def _execute(self, line):
        before = set(map(_key, self._named(line)))  # marks survive `x.data =`, storages do not
        exec(line, self._space)  # noqa: S102
        return self._is_on_one_mesh(line, before)

    def _values(self):
        return [self._space[name] for name in self._tensors()]

    def _named(self, line):
        names = set(re.findall(r"\bx\d+\b", line))
        return [self._space[name] for name in names if isinstance(self._space.get(name), torch.Tensor)]

    def _is_on_one_mesh(self, line, before):
        """Whether the tensors that a line brings together, also by derivatives, were marked on the same devices."""
        marked = re.match(r"mark\(\w+, (\d+)", line)
        keys = before | set(map(_key, self._named(line)))
        devices = {tuple(sorted(self._space["MESHES"][int(marked[1])][1]))} if marked else set()
        for group in [each for each in self._groups if each[0] & keys]:
            self._groups.remove(group)
            keys, devices = keys | group[0], devices | group[1]
        self._groups.append((keys, devices))
        return len(devices) < 2

    def _name(self):
        self._count += 1
        return f"x{self._count}"

    def _new(self):
        pick = self._random.choice
        shape = tuple(pick((1, 2, 2, 3, 4, 4, 8)) for _ in range(pick((0, 1, 1, 2, 2, 2, 3, 3))))
        line = f"{self._name()} = data({self._random.randrange(999)}, {shape}, {pick(_DTYPES)}).to(dev)"
        return line + pick(("", ".requires_grad_()", ""))

    def _line(self):
        kind = self._random.choices(("new", "view", "value", "write", "other", "mark"), (1, 5, 4, 7, 3, 1))[0]
        if kind == "new":
            return self._new()
        if kind == "mark":
            return self._mark()
        x = self._pick()
        if kind == "other":
            return self._filled(self._random.choice(_OTHERS), x)
        if kind in ("view", "value"):
            made = self._filled(self._random.choice(_VIEWS if kind == "view" else _VALUES), x)
            return made and f"{self._name()} = {made}"
        made = self._filled(self._random.choice(_WRITES), x)
        if made and self._is_undefined(made):
            return None
        return made and (f"with torch.no_grad(): {made}" if self._random.random() < 0.3 else made)

    def _is_undefined(self, line):
        """Whether a line writes to places that several elements have, or what it reads from there and beside."""
        given, _, out = line.partition("out=")
        if copied := re.match(r"(.*)\.(copy_|scatter_|scatter_add_)\((.*)", line):
            out, _, given = copied.groups()
        if lists := re.match(r"torch\._foreach_addcmul_\(\[(.*?)\], (.*)", line):
            out, given = lists.groups()
        if not re.search(r"\.(fill|zero)_\(", line) and any(map(_shares_places, self._named(line))):
            return True
        if (written := re.match(r"(x\d+.*)\.\w+_\((.*)", line)) and any(
                _overlap(eval(written[1], self._space), self._space[name])  # noqa: S307
                for name in re.findall(r"\bx\d+\b", written[2])):
            return True
        if not out or re.match(r"torch\.(add|mul|sin|where|clamp)\(", line):
            return False
        names = set(re.findall(r"\bx\d+\b", out))
        written = {_key(self._space[name]) for name in names}
        return any(_key(self._space[name]) in written for name in re.findall(r"\bx\d+\b", given))

    def _mark(self):
        x = self._pick()
        mesh = self._random.randrange(len(self._space["MESHES"]))
        axes = [None] * 3 + list(self._space["MESHES"][mesh][0])
        self._random.shuffle(axes)
        return f"mark({x}, {mesh}{''.join(f', {each!r}' for each in axes[:self._space[x].ndim])})"

    def _view_of(self, x):
        made = x
        for _ in range(self._random.choice((0, 0, 1, 1, 2))):
            made = self._filled(self._random.choice(_VIEWS), made)
            if made is None:
                return None
        return made

    def _filled(self, template, x):
        """A template with its places filled; None if what it names does not exist."""
        try:
            v = self._view_of(x) if "{v}" in template else x
            value = eval(v, self._space)  # noqa: S307
            if "{v}" in template and _shares_places(value) and not re.search(r"\.(fill|zero)_\(", template):
                return None
            return re.sub(r"\{(\w+)\}", lambda found: self._place(found[1], x, v, value), template)
        except Exception:  # noqa: BLE001  (a view that PyTorch refuses)
            return None

    def _place(self, place, x, v, value):
        pick, number = self._random.choice, self._random.randrange
        shape, rank = tuple(value.shape), max(value.ndim, 1)
        dim = self._dim = number(-rank, rank) if place == "d" else getattr(self, "_dim", 0)
        size = shape[dim] if -len(shape) <= dim < len(shape) else 1
        made = {
            "x": lambda: x, "v": lambda: v, "d": lambda: dim, "e": lambda: number(-rank, rank),
            "z": self._pick, "f": lambda: self._pick(lambda each: each.requires_grad),
            "g": lambda: self._pick(lambda each: each.requires_grad),
            "i": lambda: number(-size, size), "i0": lambda: number(shape[0]), "i1": lambda: number(shape[-1]),
            "n": lambda: pick((1, 2, 2, 3)), "o": lambda: pick((-1, 0, 1)),
            "p": lambda: self._random.sample(range(len(shape)), len(shape)),
            "s": lambda: pick(("1:", ":1", "::2", ":-1", "1:3", "-2:", ":", "1::2")),
            "r": lambda: self._factors(value.numel()), "t": lambda: pick(_DTYPES),
            "as": lambda: self._strided(value),
            "as2": lambda: pick(("(2, 3), (1, 2)", "(2, 2, 2), (4, 1, 2)", "(3,), (1,)")),
            "c": lambda: self._number(value), "c1": lambda: f"torch.tensor({self._number(value)}, dtype={value.dtype})",
            "m": lambda: pick((f"({x} > 0.1)", f"data({number(99)}, {shape}, torch.bool).to(dev)")),
            "u": lambda: f"data({number(999)}, {shape}, {value.dtype}).to(dev)",
            "w": lambda: self._like(value, value.dtype), "y": lambda: self._like(value, None),
            "I": lambda: f"index({number(99)}, {shape}, {size}).to(dev)",
            "J": lambda: f"index({number(99)}, ({min(2, size)},), {size}).to(dev)",
            "L": lambda: f"index({number(99)}, (2,), {value.numel()}).to(dev)",
        }
        return str(made[place]())

    def _number(self, value):
        if value.dtype == torch.bool:
            return self._random.choice((True, False))
        return self._random.choice((0, 1, 2, 3) if not value.dtype.is_floating_point else (0.5, -1.25, 2, 0.0, -1))

    def _like(self, value, dtype):
        """A tensor of about this shape: one that exists, or a new one, a number, or a tensor without dimensions."""
        names = [name for name in self._tensors() if _fits(self._space[name].shape, value.shape)
                 and dtype in (None, self._space[name].dtype)]
        if names and self._random.random() < 0.6:
            return self._random.choice(names)
        if dtype is None and self._random.random() < 0.3:
            return self._random.choice((str(self._number(value)), "torch.tensor(0.5)", "torch.tensor(2)"))
        dtype = dtype or (value.dtype if self._random.random() < 0.7 else self._random.choice(_DTYPES))
        return f"data({self._random.randrange(999)}, {tuple(value.shape)}, {dtype}).to(dev)"

    def _factors(self, size):
        first = self._random.choice([each for each in range(1, size + 1) if size % each == 0])
        return (first, -1) if self._random.random() < 0.5 else (size // first, first)

    def _strided(self, value):
        if self._random.random() < 0.4:
            return f"{tuple(value.shape)}, {value.stride()}, {value.storage_offset()}"
        count = value.untyped_storage().nbytes() // value.element_size()
        rank, start = self._random.choice((1, 2, 2, 3)), self._random.randrange(max(count // 2, 1))
        size = tuple(self._random.choice((1, 2, 2, 3)) for _ in range(rank))
        stride = tuple(self._random.choice((1, 1, 2, 3, 4)) for _ in range(rank))
        return f"{size}, {stride}, {start}"


def _fits(shape, target):
    return len(shape) <= len(target) and all(x in (1, y) for x, y in zip(reversed(shape), reversed(target)))


def _places(tensor):
    places = [tensor.storage_offset()]
    for size, stride in zip(tensor.shape, tensor.stride()):
        places = [each + i * stride for each in places for i in range(size)]
    return places


def _shares_places(tensor):
    """Whether several elements of a tensor are at one place."""
    return len(set(_places(tensor))) != tensor.numel()


def _overlap(target, source):
    """Whether two tensors have places in common, and not in one order: PyTorch does not always see it."""
    if _key(target) != _key(source) or target.dtype != source.dtype:
        return False
    return _places(target) != _places(source) and not set(_places(target)).isdisjoint(_places(source))


def _key(tensor):
    return tensor.untyped_storage()._cdata


def _is_small(tensor):
    """Whether errors of rounding in a tensor are small, and it has few elements."""
    if tensor.numel() > 300:
        return False
    if not tensor.dtype.is_floating_point and not tensor.dtype.is_complex:
        return True
    sizes = tensor.detach().abs()
    # Also without NaN, of which the bits are open, and numbers so small that XLA takes them as zeros.
    return bool(((sizes < 1e4) & ((sizes == 0) | (sizes > 1e-30))).all())


# --- comparing ---------------------------------------------------------------------------------------------

def space(dev):
    made = {"dev": dev, "seen": []}
    exec(_prelude, made)  # noqa: S102
    return made


def run(lines, dev):
    """The names and values after a program, as CPU tensors."""
    names = space(dev)
    for line in lines:
        exec(line, names)  # noqa: S102
    made = {f"seen[{i}]": each for i, each in enumerate(names["seen"])}
    for name, each in names.items():
        if isinstance(each, torch.Tensor):
            made[name] = each
            made[f"{name}.requires_grad"] = each.requires_grad
            made[f"{name}.is_leaf"] = each.is_leaf
            made[f"{name}.stride()"] = each.numel() and [n for n, size in zip(each.stride(), each.shape) if size > 1]
            if (each.is_leaf or each.retains_grad) and each.grad is not None:
                made[f"{name}.grad"] = each.grad
    return {name: each.detach().cpu() if isinstance(each, torch.Tensor) else each for name, each in made.items()}


_DOCUMENTED = ("a write through a view that repeats elements, and has another dtype",
               "a view without elements of a tensor", "can't be cast to the desired output type",
               "Autograd not support dtype")
_OF_CHANGED_BASES = ("view size is not compatible", "Dimension out of range", "new_fn INTERNAL ASSERT FAILED")
"""Errors where PyTorch's CPU has none, the second ones for views of what was transposed, squeezed or detached in place;
docs/guides/pytorch-limits.md has them."""


def _is_documented(text, lines):
    changes = re.search(r"\.(t|transpose|squeeze|unsqueeze|detach)_\(", " ".join(lines))
    return any(each in text for each in _DOCUMENTED + (_OF_CHANGED_BASES if changes else ()))


def differences(lines):
    """What is not the same on the device, as texts."""
    try:
        wanted = run(lines, "cpu")
    except RuntimeError:  # what PyTorch refuses when a tensor is looked at, such as a view of unbind() after a write
        return []
    try:
        got = run(lines, mt.device())
    except Exception as error:  # noqa: BLE001  (whatever the device raises)
        if _is_documented(str(error), lines):
            return []
        return [f"{type(error).__name__}: {error}"]
    tolerance = 3e-2 if "bfloat16" in " ".join(lines) else 1e-4
    if wanted.keys() != got.keys():
        return [f"{sorted(got.keys() ^ wanted.keys())} exist in one program only"]
    return [f"{name}: {each}" for name in wanted if (each := _difference(wanted[name], got[name], tolerance))]


def _difference(x, y, tolerance):
    if isinstance(x, (torch.Tensor, float, list)) or type(x).__module__ == "numpy":
        try:
            torch.testing.assert_close(torch.as_tensor(y), torch.as_tensor(x), rtol=tolerance, atol=tolerance,
                                       equal_nan=True, check_stride=False)
        except AssertionError as error:
            return " ".join(str(error).split())
        return ""
    return "" if x == y else f"{y} for {x}"


def kind_of(text):
    """The kind of a difference: an error's text without numbers, or what differs."""
    is_error = re.match(r"\w*(Error|Exception|Iteration)", text)
    return re.sub(r"\d+", "", text if is_error else text.split(":")[0].split(".")[-1])[:90]


def shrunk(lines, kind):
    """A program without the lines that a difference of this kind does not need."""
    for size in (4, 2, 1, 1):
        position = len(lines)
        while position > 0:
            position -= size
            fewer = lines[:max(position, 0)] + lines[position + size:]
            try:
                still = any(kind_of(each) == kind for each in differences(fewer))
            except Exception:  # noqa: BLE001  (a program that needs the lines)
                still = False
            lines = fewer if still else lines
    return lines


def script(lines):
    """A program that fails if a tensor is not the same on the device."""
    names = sorted({line.split(" = ")[0] for line in lines if re.match(r"x\d+ = ", line)})
    body = "\n".join(f"    {line}" for line in lines)
    return (f"{PRELUDE}\n\ndef program(dev, seen):\n{body}\n    return [*seen, {', '.join(names)}]\n\n\n"
            "for ours, theirs in zip(program(mt.device(), []), program('cpu', [])):\n    print(ours, theirs)\n"
            "    if isinstance(ours, torch.Tensor):\n"
            "        torch.testing.assert_close(ours.cpu(), theirs.cpu(), rtol=1e-3, atol=1e-3)\n")


def _refuse_what_is_deprecated():
    warnings.filterwarnings("ignore")
    for refused in ("An output with one or more elements was resized", r"Use of \w+ on expanded tensors"):
        warnings.filterwarnings("error", message=refused)
    torch.set_warn_always(True)


def check(seed, statements=14):
    """The differences of the program of a seed, and the program."""
    mt.device()
    with warnings.catch_warnings():
        _refuse_what_is_deprecated()
        lines = Generator(seed, statements).lines
        warnings.simplefilter("ignore")
        return differences(lines), lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--statements", type=int, default=14)
    parser.add_argument("--print", action="store_true")
    options = parser.parse_args()
    counts = collections.Counter()
    for seed in range(options.seed, options.seed + options.programs):
        if options.print:
            print(f"# seed {seed}\n" + "\n".join(Generator(seed, options.statements).lines), flush=True)
        found, lines = check(seed, options.statements)
        counts["programs"] += bool(lines)
        if found:
            kind = kind_of(found[0])
            counts[kind] += 1
            print(f"# seed {seed}: {found[0]}", flush=True)
            if counts[kind] <= 2:
                print(script(shrunk(lines, kind)), flush=True)
    print("\n".join(f"{count} {kind}" for kind, count in counts.items()))
    return 1 if len(counts) > 1 else 0


import torch  # noqa: E402

import meshard.torch as mt  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
