"""A sample of the catalog of whole models; model_database.py compares all of it, with every check."""

import os

import pytest

torch = pytest.importorskip("torch")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
pytest.importorskip("transformers")

import models_decoders  # noqa: E402
from model_comparison import Comparison, Errors  # noqa: E402

MODELS = {model.name: model for model in models_decoders.MODELS}


@pytest.mark.parametrize("name, check", [("llama", "gradients"), ("gpt2", "generate")])
def test_a_model_on_a_mesh(name, check):
    error, tensor, tolerance = Comparison(MODELS[name]).check(check, on_mesh=True)
    assert error <= tolerance, f"{error} of {tensor}"


def test_errors_are_found():
    wanted = {"a": torch.tensor([1.0, -2.0]), "zero": torch.tensor([1e-9])}
    for got, error, name in (([1.0, -2.002], 1e-3, "g a"), ([1.0, float("nan")], float("inf"), "g a")):
        errors = Errors()
        errors.compare("g", wanted, {"a": torch.tensor(got), "zero": torch.tensor([2e-9])})
        assert errors.worst() == (pytest.approx(error, rel=1e-2), name)
