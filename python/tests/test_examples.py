"""The examples in Python, against those in C++.

With MESHARD_EXAMPLES, a folder of the built C++ examples (build/bin), they run beside the Python ones; otherwise the
losses that they wrote once are used.
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import meshard
from meshard import nn, tree

ROOT = pathlib.Path(__file__).resolve().parents[2]
DIGITS = pathlib.Path(os.environ.get("MESHARD_CACHE", pathlib.Path.home() / ".cache/meshard")) / "data/digits.csv"
# The programs import the package that is tested.
PACKAGES = os.pathsep.join([str(pathlib.Path(meshard.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])

pytestmark = pytest.mark.skipif(not (ROOT / "examples/python").exists(), reason="needs the repository")


def example(name):
    spec = importlib.util.spec_from_file_location(f"example_{name}", ROOT / "examples/python" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # for its dataclasses
    spec.loader.exec_module(module)
    return module


def losses_of_cpp(name, arguments, tmp_path):
    """The losses of the C++ program, and what it printed (None for recorded losses)."""
    folder = os.environ.get("MESHARD_EXAMPLES")
    if not folder:
        return np.loadtxt(pathlib.Path(__file__).parent / "data" / f"{name}_losses.txt"), None
    losses = tmp_path / "cpp.txt"
    done = subprocess.run([pathlib.Path(folder) / name, *arguments, "--losses", losses], check=True, timeout=300,
                          capture_output=True, cwd=tmp_path)
    return np.loadtxt(losses), done.stdout


def run(name, arguments, tmp_path):
    """The losses of the Python program, and what it printed."""
    losses = tmp_path / "python.txt"
    program = ROOT / "examples/python" / f"{name}.py"
    done = subprocess.run([sys.executable, program, *map(str, arguments), "--losses", losses], check=True, timeout=300,
                          stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": PACKAGES})
    return np.loadtxt(losses), done.stdout


@pytest.mark.skipif(not DIGITS.exists(), reason=f"needs {DIGITS}")
def test_digits(tmp_path):
    arguments = ["--steps", "30", "--data", str(DIGITS)]
    expected, _ = losses_of_cpp("digits", arguments, tmp_path)
    losses, printed = run("digits", arguments, tmp_path)
    np.testing.assert_allclose(losses, expected, rtol=0, atol=1e-6)
    assert b"1437 training digits, 360 held out" in printed
    assert b'all-reduce on axis "model", 32 KiB, forward, from digits.py:' in printed
    assert float(printed.split()[-2]) > 90  # percent


@pytest.mark.skipif(not DIGITS.exists(), reason=f"needs {DIGITS}")
def test_digits_on_another_mesh(tmp_path):
    expected = np.loadtxt(pathlib.Path(__file__).parent / "data/digits_losses.txt")[:8]
    losses, _ = run("digits", ["--steps", 8, "--mesh", "4x1", "--devices", "7,5,3,1", "--data", DIGITS], tmp_path)
    np.testing.assert_allclose(losses, expected, atol=2e-6)


def test_gpt(tmp_path):
    arguments = ["--data", str(ROOT / "LICENSE"), "--mesh", "data=2,model=4", "--sequence", "--steps", "10",
                 "--sample", "20"]
    expected, printed_by_cpp = losses_of_cpp("gpt", arguments, tmp_path)
    losses, printed = run("gpt", arguments, tmp_path)
    np.testing.assert_allclose(losses, expected, rtol=0, atol=1e-6)
    assert b"\nYou may " in printed
    if printed_by_cpp:
        def after(text):  # the loss on the held-out text, and the generated text
            return text[text.index(b"loss on the held-out text"):].split(b"\n")[0], text[text.index(b"\nYou may "):]

        assert after(printed) == after(printed_by_cpp)


ON_MESH = ["--data", str(ROOT / "LICENSE"), "--mesh", "data=2,model=4", "--sequence", "--sample", "0"]


def test_gpt_resumes_on_another_mesh(tmp_path):
    expected = np.loadtxt(pathlib.Path(__file__).parent / "data/gpt_losses.txt")
    checkpoint = ["--checkpoint", str(tmp_path / "step.safetensors")]
    run("gpt", [*ON_MESH, *checkpoint, "--steps", 10, "--save-every", 4], tmp_path)
    names = set(meshard.io.Weights(checkpoint[1]))
    assert {"model.blocks.1.attention.query", "adam.mean.blocks.0.mlp.down.weight", "adam.steps", "context"} <= names
    elsewhere = ["--data", str(ROOT / "LICENSE"), "--mesh", "data=4", "--sample", 0, *checkpoint, "--resume"]
    losses, _ = run("gpt", [*elsewhere, "--steps", 12], tmp_path)
    assert len(losses) == 2 and losses[0] < expected[9]


@pytest.mark.skipif("MESHARD_EXAMPLES" not in os.environ, reason="needs the C++ examples")
@pytest.mark.parametrize("first_is_python", [True, False])
def test_gpt_checkpoints_are_exchanged_with_cpp(first_is_python, tmp_path):
    checkpoint = ["--checkpoint", str(tmp_path / "step.safetensors")]

    def losses_of(is_python, *arguments):
        arguments = [*ON_MESH, *checkpoint, *arguments]
        if is_python:
            return run("gpt", arguments, tmp_path)[0]
        return losses_of_cpp("gpt", arguments, tmp_path)[0]

    losses_of(first_is_python, "--steps", "3")
    resumed = losses_of(not first_is_python, "--steps", "6", "--resume")
    again = losses_of(first_is_python, "--steps", "3"), losses_of(first_is_python, "--steps", "6", "--resume")
    np.testing.assert_allclose(resumed, again[1], rtol=0, atol=1e-6)


@pytest.mark.skipif("MESHARD_EXAMPLES" not in os.environ, reason="needs the C++ examples")
def test_gpt_is_the_program_of_cpp(tmp_path):
    """Both record the same operations in the same order."""
    texts = []
    built = pathlib.Path(os.environ["MESHARD_EXAMPLES"]) / "gpt"
    for program in ([sys.executable, ROOT / "examples/python/gpt.py"], [built]):
        module = tmp_path / "step.mlir"
        subprocess.run([*program, *ON_MESH, "--export", module], check=True, timeout=300, stdout=subprocess.PIPE,
                       env={**os.environ, "PYTHONPATH": PACKAGES})
        text = re.sub(r'(, )?meshard\.place = "[^"]*"', "", module.read_text())
        lines = [line.split(" loc(")[0] for line in text.splitlines() if not line.startswith("#loc")]
        texts.append(lines)
    assert len(texts[0]) > 1000
    assert texts[0] == texts[1]


@pytest.fixture(scope="module")
def gpt():
    return example("gpt")


def small_gpt(gpt, mesh=None):
    rules = gpt.rules_for(mesh) if mesh else nn.AxisRules()
    return nn.create(rules, 1, lambda make: gpt.make_gpt(make, layers=2, width=16, heads=2, hidden=32)), rules


def test_gpt_generates_what_its_logits_say(gpt):
    model, rules = small_gpt(gpt)
    prompt = b"abc"
    text = prompt + bytes(gpt.sample(model, rules, prompt, 6, 64, 0.0, 1))
    logits = meshard.jit(lambda model, tokens: model(tokens, rules))(model, np.array([list(text)], np.int32)).numpy()
    assert list(text[3:]) == logits[0].argmax(-1)[2:-1].tolist()


def test_gpt_restarts_a_full_window(gpt):
    model, rules = small_gpt(gpt)
    assert len(bytes(gpt.sample(model, rules, b"abc", 12, 8, 1.0, 1))) == 12


def test_gpt_is_split_over_the_mesh(gpt):
    model, _ = small_gpt(gpt, meshard.Mesh({"data": 2, "model": 2}))
    same, _ = small_gpt(gpt)
    assert model.blocks.stacked.attention.query.sharding.spec == meshard.P(None, None, "model", None)
    for one, other in zip(tree.leaves(model), tree.leaves(same), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_gpt_reads_windows(gpt, tmp_path):
    text = np.arange(100, dtype=np.uint8)
    np.testing.assert_array_equal(gpt.windows_in_order(text, 2, 4, 1), [[4, 5, 6, 7, 8], [8, 9, 10, 11, 12]])
    windows = gpt.windows_of_step(text, 50, 9, 1, 0)
    assert windows.shape == (50, 10) and windows.dtype == np.int32
    assert (np.diff(windows) == 1).all() and windows.max() <= 99
    assert (windows != gpt.windows_of_step(text, 50, 9, 1, 1)).any()
    (tmp_path / "short").write_bytes(b"x" * 9999)
    with pytest.raises(ValueError, match="10000"):
        gpt.text_of_file(tmp_path / "short")


def test_gpt_options(gpt):
    options = gpt.parse_options(["--data", "x", "--mesh", "model=4"])
    assert options.mesh == {"data": 1, "model": 4} and options.steps == 1000 and options.rate == 2e-3
    assert options.context == 64
