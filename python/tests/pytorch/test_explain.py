"""explain, check_sharded and plan of PyTorch programs: names, lines, collectives."""

import pathlib
import re

import pytest

torch = pytest.importorskip("torch")

import explained_models  # noqa: E402
import torch_support  # noqa: E402

import meshard as ms  # noqa: E402
import meshard.torch as mt  # noqa: E402
from meshard import P  # noqa: E402


def line_of(text):
    source = pathlib.Path(__file__).with_name("torch_support.py").read_text().splitlines()
    return next(i for i, line in enumerate(source, 1) if text in line)


@pytest.fixture
def marked(mlp, mesh):
    mt.shard(mlp, mesh, {"up.weight": P("model", None), "down.weight": P(None, "model")})
    return mlp


def test_a_module(marked):
    report = ms.explain(marked, torch.randn(6, 8), topology="cpu:8")
    assert {argument.name for argument in report.arguments} == {"up.weight", "up.bias", "down.weight", "down.bias",
                                                                "args[0]"}
    (only,) = report.collectives
    assert only.kind == "all-reduce" and tuple(only.axes) == ("model",)
    assert f"torch_support.py:{line_of('self.down(hidden)')}" in str(report)


def test_a_training_step(marked):
    optimizer = torch.optim.AdamW(marked.parameters())
    step = mt.train_step(marked, torch.nn.functional.mse_loss, optimizer)
    x = mt.mark_sharding(torch.randn(6, 8), ms.Mesh({"data": 2, "model": 4}), P("data"))
    report = ms.explain(step, x, torch.randn(6, 4), topology="cpu:8")
    axes = {axis for each in report.collectives for axis in each.axes}
    assert axes == {"data", "model"}  # of the gradients, and of the second product
    summed = {name for each in report.collectives if "gradient" in str(each.purpose) for name in each.purpose.names}
    assert summed == dict(marked.named_parameters()).keys()
    (product,) = [each for each in report.collectives if tuple(each.axes) == ("model",)]
    assert (product.purpose.layer, str(product.purpose.phase)) == ("down", "forward")
    names = [result.name for result in report.results]
    assert names[:4] == list(dict(marked.named_parameters())) and {"loss", "exp_avg of up.bias"} <= set(names)
    # The step overwrites its parameters: up.weight and down.weight are split, and their new values so, too.
    assert report.memory.aliased >= 3 * (8 * 16 + 16 * 4) * 4 // 4
    assert {"exp_avg of up.weight", "step of down.bias"} <= {argument.name for argument in report.arguments}
    assert not optimizer.state


def test_nothing_is_marked(mlp):
    with pytest.raises(ValueError, match="no parameter and no argument is marked with a mesh"):
        ms.explain(mlp, torch.randn(6, 8), topology="cpu:8")
    report = ms.explain(mlp, torch.randn(6, 8), topology="cpu:8", part_of_target=True)
    assert [argument.name for argument in report.arguments] == sorted([*dict(mlp.named_parameters()), "args[0]"])


def test_functions(mlp):
    def f(x):
        return torch.relu(mlp.up(x))

    x = torch.randn(6, 8)
    report = ms.explain(mt.compile(f), x, topology="cpu:1")
    assert {argument.name for argument in report.arguments} == {"mlp.up.weight", "mlp.up.bias", "args[0]"}
    with pytest.raises(TypeError) as found:
        ms.explain(f, x, topology="cpu:1")
    assert "meshard.torch.compile(function)" in found.value.__notes__[0]
    with pytest.raises(TypeError, match=r"pass meshard\.torch\.compile\(relu\)"):
        ms.explain(torch.nn.functional.relu, x, topology="cpu:1")


def test_names_of_operations():
    class Pooled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Sequential(torch.nn.Conv1d(4, 4, 3, padding=1), torch.nn.AvgPool1d(2),
                                             torch.nn.LayerNorm(2))

        def forward(self, x):
            return self.inner(x).mean()

    model = Pooled()
    step = mt.train_step(model, lambda loss: loss, torch.optim.SGD(model.parameters(), 0.1))
    names = set(re.findall(r'loc\("([^"]+)"\("', ms.module_text(step, torch.randn(2, 4, 4))))
    scopes = {name.rpartition("/")[0] for name in names}
    phases = ("jvp()/", "transpose(jvp())/", "optimizer()/")
    assert {f"{phase}inner/{i}" for phase in phases[:2] for i in range(3)} <= scopes
    assert all(sum(phase in name for phase in ("jvp()/", "optimizer()/")) <= 1 for name in names)
    assert all(name.startswith(phases) for name in names if "jvp" in name or "optimizer" in name)


def test_plan_names_parameters(mlp):
    candidates, _ = ms.plan_candidates(mlp, torch.randn(8, 8), topology="cpu:4", axes="data",
                                       free=["up.weight", "args[0]"])
    assert any('up.weight: P("data", none)' in str(each) and "args[0]: P(none, none)" in str(each)
               for each in candidates)


def test_steps_are_predicted_and_checked(marked, mesh):
    step = mt.train_step(marked, torch.nn.functional.mse_loss, torch.optim.SGD(marked.parameters(), 0.1, momentum=0.9))
    x, y = (mt.mark_sharding(torch.randn(6, size), mesh, P("data")) for size in (8, 4))
    moves = ms.predict(step, x, y).moves
    assert {axis for move in moves for axis in move.axes} == {"data", "model"}
    assert ms.check_sharded(step, x, y)
    ms.expect(step, "at most 3 all-reduces", x, y, topology="cpu:8")
    with pytest.raises(ms.ExpectationError, match="torch_support.py"):
        ms.expect(step, "no collectives", x, y, topology="cpu:8")


def test_the_devices_of_this_process(marked):
    report = ms.explain(marked, torch.randn(6, 8))
    assert [each.purpose.layer for each in report.collectives] == ["down"]
    with pytest.raises(ValueError, match="takes no donate"):
        ms.explain(marked, torch.randn(6, 8), donate=0)


def test_an_error_names_the_line_of_the_module(mesh):
    class Marked(torch.nn.Module):
        def forward(self, x):
            return mt.mark_sharding(x, mesh, P(None, ms.UNCONSTRAINED)).to_sparse()  # has no lowering

    with pytest.raises(NotImplementedError, match=r"test_explain\.py:\d+: \[torch\] aten\.\w+"):
        ms.explain(Marked(), torch.randn(4, 4), topology="cpu:8")


def test_an_exported_program(mlp):
    x = torch.randn(6, 8)
    program = torch.export.export(mlp, (x,))
    report = ms.explain(program, topology="cpu:1")
    assert "up.weight" in {argument.name for argument in report.arguments}
    assert f'up/dot_general"("{torch_support.__file__}":{line_of("self.up(x)")}:' in ms.module_text(program)


def test_check_sharded(marked):
    assert ms.check_sharded(marked, torch.randn(6, 8))


def test_meta_parameters_are_explained(mesh):
    from torch_support import Mlp

    with torch.device("meta"):
        model = Mlp(width=1024, hidden=4096)
    mt.shard(model, mesh, {"up.weight": P("model", None)})
    report = ms.explain(model, torch.empty(8, 1024, device="meta"), topology="cpu:8")
    sizes = {argument.name: argument.shard_bytes for argument in report.arguments if hasattr(argument, "shard_bytes")}
    assert not sizes or sizes["up.weight"] == 1024 * 4096
    assert "up.weight: f32[4096,1024]" in str(report)


@pytest.fixture
def decoder():
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                                      num_attention_heads=4, num_key_value_heads=4)
    return transformers.LlamaForCausalLM(config).eval()


def test_tensor_parallelism_is_two_all_reduces_per_layer(decoder, mesh):
    ids = mt.mark_sharding(torch.randint(0, 64, (4, 8)), mesh, P("data"))
    mt.parallelize_module(decoder, mesh, axis="model")  # its tp_plan: ColwiseParallel and RowwiseParallel
    report = ms.explain(decoder, ids, use_cache=False, topology="cpu:8")
    in_layers = sorted(each.purpose.layer for each in report.collectives if "/layers/" in each.purpose.layer)
    assert in_layers == [f"model/layers/{i}/{name}" for i in range(2) for name in ("mlp/down_proj", "self_attn/o_proj")]
    assert {each.kind for each in report.collectives if "/layers/" in each.purpose.layer} == {"all-reduce"}
    assert {place.rpartition(":")[0] for each in report.collectives for place in each.places} == {"modeling_llama.py"}
    assert not explained_models.unknown(report, decoder)


def test_fully_sharded_training_gathers_weights_and_sums_gradients(mlp):
    mesh = ms.Mesh({"data": 8})
    mt.fully_shard(mlp, mesh)
    step = mt.train_step(mlp, torch.nn.functional.mse_loss, torch.optim.SGD(mlp.parameters(), 0.1))
    x, y = (mt.mark_sharding(torch.randn(64, size), mesh, P("data")) for size in (8, 4))
    report = ms.explain(step, x, y, topology="cpu:8")
    split = {name for name, each in mlp.named_parameters() if mt.sharding_of(each)}
    moved = {kind: {name for each in report.collectives if each.kind == kind for name in each.purpose.names}
             for kind in ("all-gather", "all-reduce", "reduce-scatter")}
    assert split == {"up.weight", "up.bias", "down.weight"}
    assert moved["all-gather"] <= split  # XLA may compute with a part of a small weight
    assert dict(mlp.named_parameters()).keys() <= moved["all-reduce"] | moved["reduce-scatter"] | {"loss"}
