"""The examples in Python of the README and of the docs, and the files of the docs that quote them."""

import pathlib
import re
import subprocess
import sys

import pytest

import meshard

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "dev"))
doc_examples = pytest.importorskip("doc_examples", reason="the source tree is not here")


def pages():
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        page = path.relative_to(ROOT)
        if page.parts[:2] not in (("docs", "reference"), ("docs", "api")):
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


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name())
def test_example(example, capsys, tmp_path, monkeypatch):
    # Lines of errors and reports are those of the page, or of the reader's file.
    before = "" if example.file else "\n" * (example.line - 1)
    code = compile(before + example.text, example.file or str(example.page), "exec")
    if not example.run:
        return
    if re.search(r"^\s*(import|from) (jax|torch)\b", example.text, re.MULTILINE):
        pytest.importorskip(re.search(r"(?:import|from) (jax|torch)\b", example.text)[1])
    monkeypatch.chdir(tmp_path)
    if re.search(r"meshard\.torch\.xla\.install\(\)|\bmt\.device\(\)", example.text):  # which are for the whole process
        done = subprocess.run([sys.executable, "-c", example.text], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert prints_as(lines(done.stdout), lines(example.output)), done.stdout
        return
    try:
        exec(code, {"__name__": "example"})  # noqa: S102  (it is the page's program)
    except meshard.NotFoundError as error:
        if "plugin" in str(error) and "meshard-compile" not in str(error):
            pytest.skip(str(error))
        raise
    printed = capsys.readouterr().out
    if example.output is not None:
        assert prints_as(lines(printed), lines(example.output)), printed


def test_there_are_examples():
    assert len(EXAMPLES) >= 5
    assert any(str(example.page) == "README.md" for example in EXAMPLES)


def test_outputs_are_compared():
    assert prints_as(["a", "b", "c"], ["a", "...", "c"]) and prints_as(["a", "c"], ["a", "...", "c"])
    assert not prints_as(["a", "b"], ["a", "c"]) and not prints_as(["a"], ["a", "b"])
