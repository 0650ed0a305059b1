"""A sample of random eager programs, and of PyTorch's op_db on the device, beside PyTorch's CPU."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")  # which PyTorch's own test data need

import meshard.torch as mt  # noqa: E402
from op_comparison import compare, name_of, run_on_device, variant  # noqa: E402
from op_database import listed, own_dtype  # noqa: E402
from random_eager_programs import Generator, check, differences, script, shrunk  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

mt.device()


@pytest.mark.parametrize("seed", range(20))
def test_random_program(seed):
    found, lines = check(seed)
    assert not found, script(lines)


def test_programs_are_varied():
    text = "\n".join(line for seed in range(60) for line in Generator(seed, 14).lines)
    for word in (".diagonal(", ".as_strided(", "out=", "_foreach_", ".backward(", "mark(", "no_grad", ".data", "sync("):
        assert word in text, word


def test_a_program_that_differs_is_shrunk():
    lines = ["x1 = data(1, (3,)).to(dev)", "x2 = x1 + 1", "x3 = x1.sum()", "seen.append(str(x2.device))"]
    found = differences(lines)
    assert found == ["seen[0]: meshard:0 for cpu"]
    assert shrunk(lines, "seen[]") == [lines[0], lines[1], lines[3]]
    assert lines[1] in script(lines)


@pytest.mark.parametrize("entry", op_db[5::70], ids=name_of)
@pytest.mark.parametrize("name", ("plain", "in place", "out"))
def test_entry(entry, name):
    op = variant(entry, name)
    if op is None or name_of(entry) in listed("device"):
        pytest.skip("it has no such variant, or is in the table of limits")
    gradients = name == "plain" and entry.supports_autograd
    verdict = compare(entry, own_dtype(entry, gradients), 2, gradients, run_on_device, op)
    assert verdict.kind in ("right", "skipped"), verdict.reason


@pytest.mark.parametrize("lines", (
    ["x1 = data(1, (8, 4)).to(dev)", "x2 = x1.as_strided((2, 2), (1, 1), 1).unbind(1)[-1]", "x2.add_(x2[0])"],
    ["x1 = data(2, (2, 2), torch.complex64).to(dev)", "x1.movedim(0, 1).real.fill_diagonal_(-1)"],
    ["x1 = data(3, (2, 3)).to(dev)", "x2 = x1.unfold(1, 2, 1)[:, 0]", "x2.mul_(3)"],
    ["x1 = data(4, (3,)).to(dev)", "x2 = x1.expand(2, 3)", "x2[1].mul_(2)", "x2.zero_()"],
    ["x1 = data(6, (2, 3), torch.complex64).to(dev)", "x2 = x1.conj()", "x2.resolve_conj().mul_(2)", "x2.mul_(3)",
     "x2.imag.add_(2)", "x1.resolve_conj().add_(5)"],
    ["x1 = data(5, (2, 3)).to(dev)", "torch._foreach_add_([x1[0], x1], [x1[1], x1])"]), ids=range(6))
def test_found_by_random_programs(lines):
    assert not differences(lines)
