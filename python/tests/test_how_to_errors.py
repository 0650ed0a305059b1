"""The errors that the how-to pages quote are the library's: each quoted text is part of the message of a call."""

import pathlib
import re
import sys

import numpy as np
import pytest

import meshard as ms
from meshard import P, io, nn, optim, pipeline

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "dev"))
doc_examples = pytest.importorskip("doc_examples", reason="the source tree is not here")

MESH = ms.Mesh({"data": 2, "model": 4})
FOUR = ms.Mesh({"x": 4})
MODULE = """
sdy.mesh @mesh = <["data"=8]>
func.func public @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) -> tensor<8xf32> {
  return %arg0 : tensor<8xf32>
}"""


def donated(*, shape):
    w = ms.ones(shape)
    ms.block_until_ready(w)
    ms.jit(lambda w: w * 2, donate_argnums=0)(w)
    ms.block_until_ready(w + 1)


def kept_file(tmp_path):
    path = tmp_path / "w.safetensors"
    io.save(path, {"blocks.0.w": ms.ones((4,)), "blocks.0.b": ms.ones((4,))})
    return path


def checkpoint_without_state(tmp_path):
    path, adam, w = tmp_path / "run.safetensors", optim.Adam(), ms.ones((8, 2))
    io.save(path, {"w": w, "adam": adam.init(w)})
    io.restore(path, like={"w": w})


def receive_other_names(*, newer_than=None):
    with io.Publisher("127.0.0.1:0", secret="0123456789abcdef") as publisher:
        publisher.publish({"w": ms.ones((4,))}, version=3)
        like = {"v": ms.abstract_tensor((4,), "float32")}
        io.receive(publisher.address, like, secret="0123456789abcdef", newer_than=newer_than, seconds=0.05)


def missing_device():
    ms.block_until_ready(ms.mark_sharding(ms.ones((4,)), ms.Mesh({"x": 2}, [2, 9]), P("x")))


def two_sets():
    a, b = (ms.mark_sharding(ms.ones((4,)), ms.Mesh({"x": 2}, ids), P("x")) for ids in ([2, 3], [0, 1]))
    ms.block_until_ready(a + b)


def loss_of(w, x):
    return ms.mean(ms.square(x @ w))


def pattern_of_torch():
    torch = pytest.importorskip("torch")
    import meshard.torch as mt

    mt.shard(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh()), MESH, {"1.*": P("model")})


def decision_of_torch():
    torch = pytest.importorskip("torch")
    import meshard.torch as mt

    mt.compile(lambda x: x if x.sum() > 0 else -x)(torch.ones(3))


def started():
    ms.block_until_ready(ms.ones((2,)) * 2)
    ms.configure_runtime(cpu_devices=4)


# What raises the errors of each page.
CALLS = {
    "accumulate-gradients": [
        lambda _: optim.accumulated(ms.value_and_grad(loss_of), 3)(ms.ones((8, 2)), ms.ones((16, 8)))],
    "batch-per-process": [lambda _: ms.from_callback((8, 2), ms.Sharding(FOUR, P("x")),
                                                     lambda index: np.zeros((3, 2), np.float32), np.float32)],
    "choose-a-mesh-automatically": [lambda _: ms.plan(
        lambda x, w: x @ w, ms.abstract_tensor((64, 32), "float32", MESH, P("data")),
        ms.abstract_tensor((32, 64), "float32", MESH, P()), topology="cpu:8", free=["q"], progress=False)],
    "collectives-by-hand": [lambda _: ms.manual(FOUR, P("x"), P(), ms.sum)(ms.ones((8,))),
                            lambda _: ms.all_reduce(ms.ones((8,)), "x")],
    "collectives-of-a-jax-program": [lambda _: ms.explain(MODULE, topology="v5e:4x4")],
    "donate-buffers": [lambda _: donated(shape=(8, 2))],
    "fail-ci-on-a-collective": [
        lambda _: ms.expect(ms.sum, "no collectives", ms.mark_sharding(ms.ones((8,)), FOUR, P("x")))],
    "gradient-checkpointing": [lambda _: ms.checkpoint(ms.tanh, policy="dot")],
    "load-safetensors-sharded": [lambda tmp_path: io.load(kept_file(tmp_path), {"block.*.w": (MESH, P())})],
    "missing-op": [lambda _: ms.grad(
        lambda x: ms.sum(ms.pure_callback(np.sort, ms.abstract_tensor((3,), np.float32), x)))(ms.ones((3,)))],
    "numpy-jax-pytorch-arrays": [lambda _: np.from_dlpack(ms.mark_sharding(ms.ones((8,)), FOUR, P("x")), copy=False)],
    "pipeline-parallelism": [
        lambda _: pipeline.Pipeline([pipeline.Stage(FOUR, ms.ones((4,)), lambda w, x: x)] * 2, pipeline.gpipe(3, 4)),
        lambda _: pipeline.Schedule.parse("0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1")],
    "print-inside-jit": [lambda _: ms.jit(lambda x: x.numpy())(ms.ones((3,)))],
    "random-numbers-and-dropout": [lambda _: nn.dropout(ms.ones((3,)), 0.5, ms.ones((3,)))],
    "read-values-on-the-host": [lambda _: ms.jit(float)(ms.ones(()))],
    "reshard": [lambda _: ms.jit(lambda x: ms.transfer(x, ms.Mesh({"x": 2}, [2, 3]), P("x")))(ms.ones((4,)))],
    "run-a-stablehlo-file": [lambda _: ms.load_program(doc_text("run-a-stablehlo-file"))(ms.ones((4,)))],
    "jax-model-in-cpp": [lambda _: ms.load_program(doc_text("run-a-stablehlo-file"))(ms.ones((4,)))],
    "save-optimizer-state": [checkpoint_without_state],
    "shard-optimizer-state": [lambda _: optim.Fsdp(ms.ones((3, 3)))],
    "shard-over-two-axes": [lambda _: ms.mark_sharding(ms.ones((16, 8)), MESH, P("data", "data"))],
    "training-loop-with-adam": [lambda _: donated(shape=(8, 2))],
    "uneven-dimension": [lambda _: ms.manual(FOUR, P("x"), P("x"), ms.tanh)(ms.ones((6,)))],
    "use-from-pytorch": [lambda _: pattern_of_torch(), lambda _: decision_of_torch()],
    "use-some-devices": [lambda _: two_sets(), lambda _: missing_device()],
    "weights-to-a-server": [lambda _: receive_other_names(), lambda _: receive_other_names(newer_than=3)],
    "virtual-cpu-devices": [lambda _: started(), lambda _: missing_device()],
}

# Parts of errors that no call in this process raises, and the source that has them.
IN_SOURCES = {
    "compile-cache": ("meshard/base/file_cache.cc", ["[files] ", " is not trusted"]),
    "nvidia-gpu": ("meshard/pjrt/plugin_search.cc", ["[plugin] no plugin for platform ", " was found"]),
    "out-of-memory": ("meshard/report/expect.cc", ["expected the program to fit into a device's memory"]),
    "restart-after-a-loss": ("tools/meshard/launch.cc", ["gives up after restart"]),
    "run-under-mpirun": ("meshard/runtime/internal/across_processes/agreement.cc",
                         ["the processes are about to do different things"]),
}
FROM_PLUGINS = ["bfloat16-and-loss-scaling"]  # a CPU without F16C is needed


def page_of(name):
    return (ROOT / "docs" / "how-to" / f"{name}.md").read_text(encoding="utf-8")


def doc_text(name):
    """The StableHLO module in the page's first example in Python."""
    example = doc_examples.python_examples(f"docs/how-to/{name}.md", page_of(name))[0]
    return re.search(r'b"""(.*?)"""', example.text, re.DOTALL)[1].encode()


def comparable(text):
    """Without line breaks, and without the files and lines of calls."""
    return re.sub(r"\S+\.(?:py|md):\d+", "train.py", re.sub(r"\s+", " ", text))


def quoted(page):
    """The quoted messages: what is in backticks under the heading, and has at least four words."""
    section = page.partition("\n## What can go wrong\n")[2]
    spans = re.findall(r"(?<!`)(`{1,2})(?!`)(.+?)(?<!`)\1(?!`)", section, re.DOTALL)
    return [comparable(text) for _, text in spans if len(text.split()) >= 4 and not text.startswith("meshard ")]


NAMES = sorted(path.stem for path in (ROOT / "docs" / "how-to").glob("*.md"))


def test_every_call_has_its_page():
    assert set(CALLS) | set(IN_SOURCES) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_quoted_errors(name, tmp_path):
    texts = quoted(page_of(name))
    if name in FROM_PLUGINS:
        return
    if name in IN_SOURCES:
        file, parts = IN_SOURCES[name]
        source = re.sub(r'"\s*"', "", (ROOT / file).read_text(encoding="utf-8"))
        for part in parts:
            assert part in source
            assert any(part in text for text in texts)
        return
    messages = []
    for call in CALLS.get(name, []):
        with pytest.raises(Exception) as failure:
            call(tmp_path)
        messages.append(comparable(str(failure.value)))
    for text in texts:
        assert any(text in message for message in messages), f"{text}\nis no message of\n" + "\n".join(messages)
    assert texts or name not in CALLS
