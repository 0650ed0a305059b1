"""What the tests of the Python package share."""

import pathlib
import signal

import numpy as np
import pytest

import meshard

# Jobs in the background start with Ctrl-C ignored, and so would the processes that tests start.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
