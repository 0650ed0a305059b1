"""The examples in Python of the README and of the docs: each is a program of its own, in a fresh folder."""

import json
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "dev"))
doc_examples = pytest.importorskip("doc_examples", reason="the source tree is not here")

# Imports packages once, and runs each program in a child process as `python PROGRAM` would: as `__main__`, from a file,
# to the end of the interpreter. A child ends before the next begins, and nothing of it remains here.
RUNNER = """
import importlib, json, os, runpy, sys, warnings
import meshard
warnings.filterwarnings("ignore", message=r"os\\.fork\\(\\) was called")
for line in sys.stdin:
    folder, program, packages = json.loads(line)
    for package in packages:
        importlib.import_module(package)
    child = os.fork()
    if child == 0:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
os.chdir(folder)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(os.open("printed.txt", os.O_WRONLY | os.O_CREAT), 1)
os.dup2(os.open("errors.txt", os.O_WRONLY | os.O_CREAT), 2)
sys.argv = [program]
sys.path.insert(0, folder)
runpy.run_path(program, run_name="__main__")
"""


def pages():
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        page = path.relative_to(ROOT)
        if page.parts[:2] not in (("docs", "reference"), ("docs", "api"), ("docs", "python")):
            yield page, path.read_text(encoding="utf-8")


EXAMPLES = [example for page, text in pages() for example in doc_examples.python_examples(page, text)]


def prints_as(actual, expected):
    """Whether the lines are equal; a line `...` stands for any lines."""
    pattern = "".join("(?:.*\n)*?" if line == "..." else re.escape(line) + "\n" for line in expected)
    return re.fullmatch(pattern, "".join(line + "\n" for line in actual)) is not None


def lines(text):
    found = [line.rstrip() for line in text.splitlines()]
    while found and not found[-1]:
        found.pop()
    return found


@pytest.fixture(scope="module")
def runner():
    command = [sys.executable, "-c", RUNNER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.stdin.close()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name())
def test_example(example, runner, tmp_path):
    # Errors and reports name the lines of the reader's file, or of the page: the file then has its name and its lines.
    program = ("" if example.file else "\n" * (example.line - 1)) + example.text + "\n"
    compile(program, example.file or str(example.page), "exec")
    if not example.run:
        return
    packages = sorted(set(re.findall(r"^\s*(?:import|from) (jax|torch|transformers)\b", example.text, re.MULTILINE)))
    for package in packages:
        pytest.importorskip(package)
    for name, text in doc_examples.files_before(example, (ROOT / example.page).read_text(encoding="utf-8")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    if "torch" in packages:  # imports that most of these programs share, and that take seconds
        packages += ["torch._dynamo", "torch.export", "meshard.torch"]
    path = tmp_path / (example.file or example.page.name)
    path.write_text(program, encoding="utf-8")
    runner.stdin.write(json.dumps([str(tmp_path), str(path), packages]) + "\n")
    runner.stdin.flush()
    status = runner.stdout.readline().strip()
    errors = (tmp_path / "errors.txt").read_text(encoding="utf-8")
    if "NotFoundError" in errors and "no plugin" in errors:
        pytest.skip(errors.splitlines()[-1])
    assert status == "0", errors
    if example.output is not None:
        printed = (tmp_path / "printed.txt").read_text(encoding="utf-8")
        assert prints_as(lines(printed), lines(example.output)), printed


def test_other_blocks_are_python():
    """Programs of other libraries, and blocks that continue the one before, are at least Python."""
    for page, text in pages():
        for info, line, body, _ in doc_examples.blocks(text):
            if info.split()[:1] == ["python"]:
                compile("\n" * (line - 1) + body, str(page), "exec")


def test_there_are_examples():
    assert len(EXAMPLES) >= 5
    assert any(str(example.page) == "README.md" for example in EXAMPLES)


def test_outputs_are_compared():
    assert prints_as(["a", "b", "c"], ["a", "...", "c"]) and prints_as(["a", "c"], ["a", "...", "c"])
    assert not prints_as(["a", "b"], ["a", "c"]) and not prints_as(["a"], ["a", "b"])
