"""Programs of PyTorch, explained through torchax or torch_xla."""

import inspect
import sys
import types

import pytest

from report_support import needs_compiler

import meshard
from meshard import _foreign, _foreign_torch

TEXT = """#loc5 = loc("inputs[0][0]")
module @jit_func {
  func.func public @main(%arg0: tensor<8x4xf32> loc("states[0]"), %arg1: tensor<2x4xf32> loc("inputs[0][0]")) {}
}
#loc60 = loc("jit(func)/torch_node_0/transpose"(#loc50))
#loc61 = loc("jit(func)/torch_node_1/jit(relu)/max"(callsite(#loc51 at #loc52)))
#loc62 = loc("jit(func)/other"(#loc53))
"""


def test_ops_have_the_places_of_their_nodes():
    text = _foreign_torch.with_places(TEXT, [("/home/user/model.py", "6"), ("/home/user/model.py", "7")])
    lines = dict(line.split(" = ", 1) for line in text.splitlines() if line.startswith("#loc6"))
    assert lines == {"#loc60": 'loc("jit(func)/transpose"("/home/user/model.py":6:1))',
                     "#loc61": 'loc("jit(func)/jit(relu)/max"("/home/user/model.py":7:1))',
                     "#loc62": 'loc("jit(func)/other"(#loc53))'}


def test_arguments_have_the_names_of_the_program():
    signature = types.SimpleNamespace(parameters=["layers.0.weight"], buffers=[], user_inputs=["x"])
    text = _foreign_torch.with_names(TEXT, signature)
    assert '%arg0: tensor<8x4xf32> loc("layers.0.weight")' in text and '%arg1: tensor<2x4xf32> loc("x")' in text
    assert text.startswith('#loc5 = loc("x")')


def test_the_place_of_a_node():
    trace = '  File "/env/lib/python3.11/site-packages/torch/nn/linear.py", line 125, in forward\n    return linear()\n'
    own = '  File "/home/user/model.py", line 9, in forward\n    return self.up(x)\n'

    def place(text):
        return _foreign_torch._places(types.SimpleNamespace(meta={"stack_trace": text}), _foreign._is_library_file)

    assert place(own + trace) == ("/home/user/model.py", "9")
    assert place(trace) == ("/env/lib/python3.11/site-packages/torch/nn/linear.py", "125")
    assert place(None) is None


class ExportedProgram:
    """In place of torch.export.ExportedProgram."""


ExportedProgram.__module__ = "torch.export.exported_program"


def test_without_a_way_to_stablehlo(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_xla", None)
    monkeypatch.setitem(sys.modules, "torchax", None)
    with pytest.raises(ImportError, match="torch_xla or torchax"):
        meshard.explain(ExportedProgram(), topology="cpu:1")


@needs_compiler
def test_torch_xla(monkeypatch):
    from test_reports import MODULE, check_module

    made = types.SimpleNamespace(get_stablehlo_text=lambda name: MODULE if name == "forward" else "")
    module = types.ModuleType("torch_xla.stablehlo")
    module.exported_program_to_stablehlo = lambda program: made
    monkeypatch.setitem(sys.modules, "torch_xla", types.ModuleType("torch_xla"))
    monkeypatch.setitem(sys.modules, "torch_xla.stablehlo", module)
    check_module(meshard.explain(ExportedProgram(), topology="cpu:8"))


def torch_with_torchax():
    torch = pytest.importorskip("torch")
    try:
        import torchax  # noqa: F401
    except Exception as error:
        pytest.skip(f"no torchax that fits this version of PyTorch: {error}")
    return torch


@needs_compiler
def test_torchax():
    torch = torch_with_torchax()

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up = torch.nn.Linear(32, 64)

        def forward(self, x):
            hidden = self.up(x)
            return torch.sin(hidden)

    exported = torch.export.export(Net(), (torch.randn(16, 32),))
    report = meshard.explain(exported, topology="cpu:1")
    assert [(value.name, value.shape) for value in report.arguments] == [("up.weight", (64, 32)), ("up.bias", (64,)),
                                                                         ("x", (16, 32))]
    first = inspect.getsourcelines(Net.forward)[1]
    text = meshard.module_text(exported)
    for op, line in (("dot_general", first + 1), ("sin", first + 2)):
        assert any(f"/{op}\"(\"" in one and f'test_explain_torch.py":{line}:1' in one for one in text.splitlines())
    assert {step.place for step in report.timeline} <= {f"test_explain_torch.py:{first + n}" for n in (1, 2)}
    result = meshard.plan(exported, topology="cpu:2", axes="model", free="up.*", most_compiled=2)
    assert set(result.best.specs) == {"up.weight", "up.bias"}
