"""The parts that PyTorch's autograd needs from a device that is registered in Python."""

import threading

import torch
from torch.autograd import Variable

_failures = []
"""Exceptions of backward passes that the guard has taken."""


def guard(device_type):
    """A device guard of PyTorch. For each node of a backward pass, PyTorch reads the device's type from it.

    PyTorch also does so while a Python exception, such as one of a hook, propagates out of a node. Calling Python with
    an exception set fails, and PyTorch then ends the process. So the guard takes the exception, and Engine raises it.
    """

    class Guard(torch._C._acc.DeviceGuard):
        @staticmethod
        def type_():
            try:
                threading.get_ident()  # fails if an exception is set
            except SystemError as error:
                _failures.append(error.__cause__)
            return device_type

    return Guard()


class Engine(type(Variable._execution_engine)):
    """PyTorch's engine of backward passes, which raises the exceptions that the guard has taken.

    A pass runs in the calling thread, as on the CPU. Recording would gain nothing from PyTorch's thread for each
    device, and this way recorded operations have the line of the call.
    """

    def run_backward(self, *args, **kwargs):
        in_threads = torch._C._is_multithreading_enabled()
        torch._C._set_multithreading_enabled(False)
        try:
            return super().run_backward(*args, **kwargs)
        except SystemError:
            if not _failures:
                raise
            failure = _failures[-1]
            _failures.clear()
            raise failure from None
        finally:
            torch._C._set_multithreading_enabled(in_threads)


def install():
    Variable._execution_engine = Engine()
