"""The example torch_llama.py: losses and tokens of plain PyTorch, and a report."""

import copy
import importlib.util
import pathlib

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import meshard as ms  # noqa: E402
import meshard.torch as mt  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "examples/python/torch_llama.py"

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="needs the repository")


@pytest.fixture
def example():
    spec = importlib.util.spec_from_file_location("example_torch_llama", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ARGUMENTS = ["--data", str(ROOT / "LICENSE"), "--mesh", "data=2,model=4", "--layers", "1", "--width", "32"]


def plain_losses(example, model, text, options):
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate, betas=(0.9, 0.98), weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps, eta_min=options.rate / 20)
    losses = []
    for windows in example.batches(text, options):
        loss = model(input_ids=windows, labels=windows).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def test_losses_and_tokens_are_those_of_pytorch(example):
    options = example.parse_options([*ARGUMENTS, "--steps", "4", "--sample", "12", "--temperature", "0"])
    text, mesh = torch.tensor(list(options.data.read_bytes())), ms.Mesh(options.mesh)
    model = mt.parallelize_module(example.make_model(options), mesh, axis="model")
    plain = example.make_model(options)
    losses = example.train(model, *example.make_step(model, options), text, mesh, options)
    assert losses == pytest.approx(plain_losses(example, plain, text, options), rel=1e-4)
    plain.load_state_dict(copy.deepcopy(model.state_dict()))
    prompt = torch.tensor([list(b"You may ")])
    wanted = plain.eval().generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=12, do_sample=False)
    assert example.generate(model, b"You may ", options) == wanted[0, 8:].tolist()


def test_the_step_is_explained(example, capsys):
    example.run(example.parse_options([*ARGUMENTS, "--explain", "cpu:8"]))
    printed = capsys.readouterr().out
    assert "parameters on mesh<data=2, model=4>" in printed
    assert 'all-reduces of the gradients of' in printed or 'all-reduce of the gradients of' in printed
    assert 'in model/layers/0/mlp/down_proj on axis "model"' in printed
