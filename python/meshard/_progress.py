"""Progress of long compiles and searches, as one line that is overwritten."""

import contextlib
import os
import sys

__all__ = []


def _in_notebook():
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")


def _columns():
    try:
        return os.get_terminal_size(2).columns or 80
    except (OSError, ValueError):
        return 80


class ProgressLine:
    """Writes each step over the one before, and nothing is left at the end. A context manager."""

    def __init__(self, stream=None):
        self._stream = stream or sys.stderr
        self._width = 0

    def __call__(self, step):
        columns = max(20, _columns() - 1)
        step = step if len(step) <= columns else step[:columns - 3] + "..."
        self._stream.write("\r" + step.ljust(self._width))
        self._stream.flush()
        self._width = len(step)

    def __enter__(self):
        return self

    def __exit__(self, *ignored):
        if self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()
            self._width = 0


def compile_line(stream=None):
    """A function that shows the steps of compiles in a line, which disappears after each."""
    line = ProgressLine(stream)

    def show(step):
        if step.startswith("compiled"):
            line.__exit__()
        else:
            line(step)

    return show


def progress_of(choice):
    """A context manager that gives a function of a step's text, or None.

    `choice` is a function, True, False, or None: a line if the standard error is a terminal, or in a notebook.
    """
    if choice is None:
        choice = bool(sys.stderr and sys.stderr.isatty()) or _in_notebook()
    if choice is True:
        return ProgressLine()
    if choice is False:
        return contextlib.nullcontext()
    if not callable(choice):
        raise TypeError(f"progress must be a function, True, False or None, not {choice!r}")
    return contextlib.nullcontext(choice)
