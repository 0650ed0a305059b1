"""Comparing programs."""

import pathlib

import pytest

import meshard as ms

STEP = """module @step {{
  func.func public @main(%{x}: tensor<8xf32>) -> tensor<8xf32> {{
    %0 = stablehlo.{op} %{x} : tensor<8xf32> loc("a"("step.py":7:0))
    return %0 : tensor<8xf32>
  }}
}}
"""


def test_programs_with_other_names_are_the_same(tmp_path):
    path = tmp_path / "first.mlir"
    path.write_text(STEP.format(x="arg0", op="tanh"))
    report = ms.same(path, STEP.format(x="value", op="tanh").encode())
    assert report and report.same
    assert report.programs[0].name == str(path) and report.programs[0].devices == 1
    assert report.programs[0].fingerprint == report.programs[1].fingerprint
    assert report.programs[1].difference is None
    assert "are the same computation" in str(report)


def test_the_first_op_that_differs():
    report = ms.same(STEP.format(x="x", op="tanh"), STEP.format(x="x", op="sine"))
    assert not report
    difference = report.programs[1].difference
    assert difference.first.startswith("tanh") and difference.second.startswith("sine")
    assert "step.py:7" in str(report) and "program 1 is another computation" in str(report)


def test_errors():
    with pytest.raises(TypeError, match="at least two programs, not 1"):
        ms.same("a.mlir")
    with pytest.raises(TypeError, match="program 1 is a int"):
        ms.same(STEP.format(x="x", op="tanh"), 3)
    with pytest.raises(FileNotFoundError):
        ms.same(pathlib.Path("/none.mlir"), pathlib.Path("/none.mlir"))
