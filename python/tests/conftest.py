"""What the tests of the Python package share."""

import pathlib

import numpy as np
import pytest

import meshard


def pytest_report_header():
    return f"meshard from {pathlib.Path(meshard.__file__).parent}"


@pytest.fixture
def rng():
    """Random numbers that are the same in every run."""
    return np.random.default_rng(7)


@pytest.fixture
def floats(rng):
    """A function that makes a float32 array of random numbers of a shape."""
    return lambda *shape: rng.standard_normal(shape).astype(np.float32)
