"""What explain, plan and marks are given by mistake, or by other libraries in forms of their own."""

import sys
import types

import numpy as np
import pytest

from report_support import needs_compiler
from test_reports import MODULE

import meshard as ms
from meshard import P

HLO = "HloModule jit_f, is_scheduled=true\n\nENTRY %main (x: f32[8]) -> f32[8] {\n  ROOT %x = f32[8] parameter(0)\n}\n"


@pytest.mark.parametrize("what, part", [
    (HLO, "HLO module"), (HLO.encode(), "HLO module"), (HLO.splitlines()[0], "HLO module"), ("", "the module is empty"),
    (b" \n", "the module is empty"), ("module {}", "no function"), (b"PK\x03\x04\x00\x00", "neither MLIR text"),
    ("func.func @main() {\n  return\n}\n", "neither arguments nor results"),
])
def test_what_is_no_program(what, part):
    for call in (ms.explain, lambda what, topology: ms.explain(what, topology=topology, use_cache=False)):
        with pytest.raises((ms.Error, ValueError), match=part):
            call(what, topology="cpu:8")


def test_what_is_no_file(tmp_path):
    for name, content in [("step.txt", HLO), ("empty.mlir", "")]:
        (tmp_path / name).write_text(content)
        with pytest.raises((ms.Error, ValueError), match="HLO module|the module is empty"):
            ms.explain(tmp_path / name, topology="cpu:8")
    with pytest.raises(FileNotFoundError):
        ms.explain(tmp_path / "nowhere.mlir", topology="cpu:8")


ENTRIES = MODULE.replace("@main(", "@train(") .rstrip().rstrip("}") + """
  func.func @eval(%a: tensor<8xf32>) -> tensor<8xf32> {
    return %a : tensor<8xf32>
  }
}
"""


def test_an_entry_among_several():
    with pytest.raises(ms.InvalidArgumentError, match="several public functions: `train`, `eval`.* entry="):
        ms.explain(ENTRIES, topology="cpu:8")
    with pytest.raises(ms.InvalidArgumentError, match="several public functions"):
        ms.plan_candidates(ENTRIES, topology="cpu:8", free="w")
    found, _ = ms.plan_candidates(ENTRIES, topology="cpu:8", free="w", entry="train")
    assert all(str(one).endswith(f"; w: {one.specs['w']}") for one in found)


@needs_compiler
def test_an_entry_by_name():
    report = ms.explain(ENTRIES, topology="cpu:8", entry="train")
    assert report.collective_bytes == ms.explain(MODULE, topology="cpu:8").collective_bytes
    assert any("the function `train`" in note for note in report.notes)
    tried = ms.try_shardings(ENTRIES, topology="cpu:8", entry="train", shardings={"w": P(None, None)})
    assert tried.before.collective_bytes == report.collective_bytes


# --- PyTorch, which need not be installed ---------------------------------------------------------------

@pytest.fixture
def torch(monkeypatch):
    """In place of PyTorch: its class of modules, and a function."""
    made = types.ModuleType("torch")
    made.nn = types.ModuleType("torch.nn")
    made.nn.Module = type("Module", (), {"__module__": "torch.nn.modules.module", "__call__": lambda self, x: x,
                                         "forward": lambda self, x: x})
    made.relu = lambda x: x
    made.relu.__module__, made.relu.__qualname__ = "torch.nn.functional", "relu"
    monkeypatch.setitem(sys.modules, "torch", made)
    return made


def test_functions_of_torch(torch):
    for what in (torch.relu, ms.jit(torch.relu)):
        for call in (lambda what: ms.explain(what, ms.ones(4), topology="cpu:8"),
                     lambda what: ms.predict(what, ms.ones(4)), lambda what: ms.check_sharded(what, ms.ones(4)),
                     lambda what: ms.module_text(what, ms.ones(4)),
                     lambda what: ms.plan_candidates(what, ms.ones(4), topology="cpu:8", free="*")):
            with pytest.raises(TypeError, match="relu is a function of PyTorch.*pass meshard.torch.compile.relu., or the module"):
                call(what)


def test_a_function_without_tensors():
    for call in (lambda: ms.explain(lambda: None, topology="cpu:8"), lambda: ms.trace_program(lambda: None)):
        with pytest.raises(ms.InvalidArgumentError, match="there is nothing to explain"):
            call()


# --- specs of JAX, which are no tuples ------------------------------------------------------------------

class PartitionSpec:
    """In place of JAX's."""

    def __init__(self, *partitions, unreduced=frozenset()):
        self.partitions, self.unreduced = partitions, unreduced


@needs_compiler
def test_specs_of_jax_for_other_shardings():
    ours = ms.try_shardings(MODULE, topology="cpu:8", shardings={"w": P(None, "model")})
    theirs = ms.try_shardings(MODULE, topology="cpu:8", shardings={"w": PartitionSpec(None, "model")})
    assert str(theirs.diff) == str(ours.diff)
    assert ms.FreeValue("w", (8, 8), "float32", PartitionSpec("x")).spec == P("x")


def test_specs_of_jax_for_marks():
    mesh = ms.Mesh({"x": 2, "y": 4})
    x = ms.mark_sharding(ms.ones((4, 8)), mesh, PartitionSpec("x", "y"))
    assert x.sharding.spec == P("x", "y")
    tree = ms.mark_sharding({"a": ms.ones((4, 8)), "b": ms.ones(8)}, mesh, {"a": PartitionSpec("x"), "b": PartitionSpec()})
    assert tree["a"].sharding.spec == P("x", None)
    assert ms.transfer(x, mesh, PartitionSpec("y")).sharding.spec == P("y", None)
    assert ms.sharding_constraint(x, mesh, PartitionSpec(None, "y")).sharding.spec == P(None, "y")
    twice = ms.manual(mesh, in_specs=PartitionSpec("x"), out_specs=PartitionSpec("x"))(lambda part: part * 2)
    np.testing.assert_array_equal(twice(ms.ones((4, 8))), np.full((4, 8), 2))
    parts = [ms.ones((2, 8))] * 2
    assert ms.from_local(parts, ms.Mesh({"x": 2}), PartitionSpec("x")).shape == (4, 8)


# --- rounding ---------------------------------------------------------------------------------------------

def test_check_sharded_knows_long_sums():
    mesh = ms.Mesh({"x": 8})
    x = ms.mark_sharding(ms.random.normal(ms.random.key(1), (1 << 16,)), mesh, P("x"))

    def cancelled(x):
        return (ms.sum(x * x) - ms.sum(x * x + x)) + ms.sum(x)

    assert ms.check_sharded(cancelled, x)
    check = ms.check_sharded(cancelled, x, max_ulps=0)
    assert check or check.difference is not None
