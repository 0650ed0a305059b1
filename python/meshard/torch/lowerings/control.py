"""What a graph has besides operations on tensors: numbers read from tensors, and marks of PyTorch's profiler."""

from .._table import lowering_of, lowers


@lowers("aten._local_scalar_dense")
def local_scalar(x):
    """A number that is only known when the program runs stays a tensor without dimensions."""
    return x


@lowers("profiler._record_function_enter_new", "profiler._record_function_exit._RecordFunction")
def record_function(*_):
    return None


@lowers("with_effects")
def with_effects(token, operation, *args, **kwargs):
    """An operation that AOTAutograd keeps in order, and the token for the next one."""
    function = lowering_of(operation)
    if function is None:
        raise NotImplementedError(f"[torch] {operation} has no lowering to meshard")
    made = function(*args, **kwargs)
    return (token, *made) if isinstance(made, (tuple, list)) else (token, made)
