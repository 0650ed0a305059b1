"""scikit-learn and SciPy on sharded tensors, by the example."""

import importlib.util
import os
import pathlib

import numpy as np
import pytest

import meshard as ms

os.environ.setdefault("SCIPY_ARRAY_API", "1")
pytest.importorskip("sklearn", minversion="1.6")
pytest.importorskip("scipy", minversion="1.15")

PATH = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python" / "scikit_learn.py"


@pytest.fixture(scope="module")
def example():
    if not PATH.exists():
        pytest.skip("the examples are not beside the tests")
    spec = importlib.util.spec_from_file_location("scikit_learn_example", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_estimators_and_functions_give_what_they_give_for_numpy(example):
    data = example.make_data(240)
    mesh = ms.Mesh({"rows": 8})
    found = example.fit_all(*(ms.mark_sharding(ms.asarray(array), mesh, ms.P("rows")) for array in data))
    expected = example.fit_all(*data)
    assert found.keys() == expected.keys()
    for name, tensor in found.items():
        assert isinstance(tensor, ms.Tensor), name
        if name == "classes":
            assert (tensor.numpy() == expected[name]).mean() > 0.99
            continue
        array = expected[name]
        found_array = tensor.numpy()
        if name == "projected":  # each component may have either sign
            found_array, array = np.abs(found_array), np.abs(array)
        np.testing.assert_allclose(found_array, array, rtol=2e-3, atol=2e-4, err_msg=name)


def test_results_stay_on_the_mesh(example):
    points = ms.mark_sharding(ms.asarray(example.make_data(240)[0]), ms.Mesh({"rows": 8}), ms.P("rows"))
    scores = example.scipy.stats.zscore(points)
    scores.numpy()
    assert scores.stored_sharding is not None
    assert scores.stored_sharding.mesh.size == 8
