"""The user's lines in graphs that are captured without torch.compile, which records lines itself."""

import contextlib
import itertools
import os
import sys
import traceback

import torch
from torch.fx import traceback as fx_traceback
from torch.overrides import TorchFunctionMode

import meshard as ms

_LIBRARIES = tuple(os.path.dirname(os.path.abspath(path)) + os.sep
                   for path in (torch.__file__, os.path.dirname(__file__)))
for _folder in _LIBRARIES:
    ms._meshard.add_library_folder(_folder)  # what is recorded has the line of their caller


def is_library(file):
    return file.startswith(_LIBRARIES) or file == "<string>"  # of decorators that PyTorch generates


def _user_frame():
    frame = sys._getframe(2)
    while frame is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def user_place():
    """`file:line: ` of the innermost line outside of PyTorch and meshard, to begin a message with; empty if unknown."""
    frame = _user_frame()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}: " if frame is not None else ""


_CALL = torch.nn.Module._call_impl.__code__


def is_own(module):
    return type(module).__module__.startswith(__package__)


def place_in(error):
    """`file:line: ` of the innermost line outside of PyTorch and meshard in the traceback of an error."""
    places = [f"{frame.f_code.co_filename}:{line}: " for frame, line in traceback.walk_tb(error.__traceback__)
              if not is_library(frame.f_code.co_filename)]
    return places[-1] if places else ""


def _trace_of_node(frame):
    """The stack trace of the user's code for a frame that runs generated code of a torch.fx.GraphModule."""
    module = frame.f_locals.get("self") if frame.f_code.co_filename.startswith("<eval_with_key>") else None
    if not isinstance(module, torch.fx.GraphModule):
        return None
    index = (module._lineno_map or {}).get(frame.f_lineno - frame.f_code.co_firstlineno)
    node = next(itertools.islice(module.graph.nodes, index, None), None) if index is not None else None
    if node is None or not node.meta.get("stack_trace"):
        return None
    calls = list((node.meta.get("nn_module_stack") or {}).values())
    return [f'in module "{calls[-1][0] if calls else ""}"\n', node.meta["stack_trace"]]


class _Lines(TorchFunctionMode):
    """Reports the innermost line outside of PyTorch and meshard, and the module, of each call of PyTorch."""

    def __init__(self):
        super().__init__()
        self._paths = {}  # of the modules inside the outermost ones that were called

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func.__name__ == "__get__":  # of a property, such as the dtype: most calls
            return func(*args, **(kwargs or {}))
        frame = _user_frame()
        if frame is not None:
            code = frame.f_code
            fx_traceback.set_stack_trace(_trace_of_node(frame) or [
                f'in module "{self._path()}"\n',
                f'File "{code.co_filename}", line {frame.f_lineno}, in {code.co_name}'])
        return func(*args, **(kwargs or {}))

    def _path(self):
        """The path of the innermost module that is being called, from the outermost one."""
        frame, called = sys._getframe(2), []
        while frame is not None:
            if frame.f_code is _CALL and not is_own(frame.f_locals["self"]):
                called.append(frame.f_locals["self"])
                if id(called[0]) in self._paths:
                    break
            frame = frame.f_back
        if not called:
            return ""
        if id(called[0]) not in self._paths:
            self._paths |= {id(each): name for name, each in called[-1].named_modules()}
        return self._paths.get(id(called[0]), "")


@contextlib.contextmanager
def recorded():
    """While active, the nodes of a graph that is captured have the user's lines in `meta["stack_trace"]`."""
    with fx_traceback.preserve_node_meta(), torch.autograd.set_detect_anomaly(True, check_nan=False), _Lines():
        yield


@contextlib.contextmanager
def of_decisions(advice):
    """Raises ValueError with the user's line for a decision in Python that a graph cannot contain."""
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    try:
        yield
    except GuardOnDataDependentSymNode as error:
        raise ValueError(f"{place_in(error)}[torch] a decision in Python depends on {advice}") from error


def prepare_backward(loss):
    """Gives the nodes of a backward pass the lines of the operations that they differentiate."""
    from torch._functorch._aot_autograd.logging_utils import setup_stacktrace_preservation_hooks

    if loss.grad_fn is not None:
        setup_stacktrace_preservation_hooks([loss.grad_fn])
