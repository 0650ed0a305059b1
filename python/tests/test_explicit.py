"""explicit(): the compiler's choices as constraints; forbid_collectives()."""

import json

import pytest

from report_support import needs_compiler

import meshard as ms
from meshard import P, _meshard

ops = _meshard.ops
STEP = """module @jit_step attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=2, "model"=4]>
  func.func public @main(
      %x: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>},
      %w: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}) -> (tensor<64x16xf32>) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<64x32xf32>, tensor<32x16xf32>) -> tensor<64x16xf32> loc("jit(step)/dot_general"("PLACE":2:0))
    %1 = stablehlo.tanh %0 : tensor<64x16xf32> loc("jit(step)/tanh"("PLACE":3:0))
    return %1 : tensor<64x16xf32>
  }
}
"""
MESH = ms.Mesh({"data": 2, "model": 4}).with_axis_kind(["data", "model"], "explicit")


def collectives(report):
    return sorted((one.kind, one.axes, one.bytes_in, one.bytes_out, one.executions) for one in report.collectives)


@needs_compiler
def test_the_choices_of_a_module(tmp_path):
    source = tmp_path / "step.py"
    source.write_text("def step(x, w):\n    h = x @ w\n    return tanh(h)\n")
    text = STEP.replace("PLACE", str(source))
    found = ms.explicit(text, topology="cpu:8")
    product, = [one for one in found.offered if one.part == "value"]
    assert (product.place, product.op, product.type) == ("step.py:2", "dot_general", "f32[64,16]")
    assert product.source == "h = x @ w"
    assert product.constraint.startswith('h = jax.lax.with_sharding_constraint(h, P("data", ')
    assert product.constraint in str(found) and not found.dropped
    before, after = (ms.explain(module, topology="cpu:8") for module in (text, found.module_text()))
    assert collectives(before) == collectives(after) and len(before.logical_collectives) == found.collectives
    listed = json.loads(found.to_json())
    assert listed["schema"] == "meshard.explicit" and len(listed["offered"]) == len(found.offered)
    ours = ms.explicit(text, topology="cpu:8", words="meshard")
    assert ours.offered[0].constraint.startswith("h = mark_sharding(h, mesh")
    with pytest.raises(ms.InvalidArgumentError, match="jax, pytorch or meshard"):
        ms.explicit(text, topology="cpu:8", words="fortran")


@needs_compiler
def test_the_choices_of_a_function():
    mesh = ms.Mesh({"data": 2, "model": 4})
    x = ms.abstract_tensor((64, 32), "float32", mesh, P("data", "model"))
    w = ms.abstract_tensor((32, 16), "float32", mesh, P("model", None))
    found = ms.explicit(lambda x, w: ops.tanh(ops.matmul(x, w)), x, w, topology="cpu:8")
    assert "mark_sharding(" in str(found) and "test_explicit.py" in str(found)


def test_ops_that_communicate_are_errors():
    x = ms.abstract_tensor((8, 16), "float32", MESH, P("data", "model"))

    def step(x):
        with ms.forbid_collectives("model"):
            y = ms.sum(ms.tanh(x), axis=0)
            with pytest.raises(ms.InvalidArgumentError, match=r'\[sum\] communicates over axis "model"') as found:
                ms.sum(x, axis=1)
        assert found.value.filename.endswith("test_explicit.py")
        ms.sum(x, axis=1)
        return y

    ms.trace_program(step, x)
    automatic = ms.abstract_tensor((8, 16), "float32", ms.Mesh({"data": 2, "model": 4}), P("data", "model"))
    with ms.forbid_collectives(["data", "model"]):
        with pytest.raises(ms.InvalidArgumentError, match="automatic axis"):
            ms.trace_program(ms.tanh, automatic)
        with pytest.raises(ms.InvalidArgumentError, match="communicates"):
            ms.trace_program(lambda x: ms.sum(x), x)
