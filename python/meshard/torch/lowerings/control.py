"""What a graph has besides operations on tensors: numbers that were read from tensors, and marks of PyTorch's profiler."""

from .._table import lowers


@lowers("aten._local_scalar_dense")
def local_scalar(x):
    """A number that is only known when the program runs stays a tensor without dimensions."""
    return x


@lowers("profiler._record_function_enter_new", "profiler._record_function_exit._RecordFunction")
def record_function(*_):
    return None
