"""expect: what a compiled program must be like, as checks that fail with the lines of the source."""

from __future__ import annotations

from typing import Any

from . import _meshard
from ._errors import FailedPreconditionError
from ._meshard import ExpectationReport, Expectations
from ._reports import Report, explain

__all__ = ["expect", "expect_no_full_replication", "expect_fits", "check_expectations", "Expectations",
           "ExpectationReport", "ExpectationError"]


for _class in [value for name, value in list(globals().items()) if name in __all__ and isinstance(value, type)]:
    _class.__module__ = "meshard"


class ExpectationError(FailedPreconditionError, AssertionError):
    """A program is not as expected. `report` is its report, and `broken` the list of failed expectations."""

    report: Report
    broken: list[str]


ExpectationError.__module__ = "meshard"


def _raise(report, broken):
    error = ExpectationError(f"{report.name} is not as expected:\n" + "\n".join(broken))
    error.report, error.broken = report, list(broken)
    error.message, error.filename, error.lineno = str(error), None, None
    raise error


def _parsed(expectations):
    return expectations if isinstance(expectations, Expectations) else Expectations.parse(expectations)


def check_expectations(what: Any, expectations: str | Expectations, *args: Any, **options: Any) -> ExpectationReport:
    """Compares a program with expectations, and returns an ExpectationReport. See expect().

    >>> x = ms.abstract_tensor((8, 1024), "float32", ms.Mesh({"x": 4}), ms.P(None, "x"))
    >>> checked = ms.check_expectations(lambda x: x.sum(), "no collectives", x, topology="cpu:4")
    >>> checked.ok
    False
    """
    expected = _parsed(expectations)  # before the compile, which is slow
    return _meshard.check_expectations(explain(what, *args, **options), expected)


def expect(what: Any, expectations: str | Expectations, *args: Any, **options: Any) -> Report:
    """Raises an ExpectationError, which is an AssertionError, unless a program is as expected. Returns its report.

    `what`, `args` and `options` are as for explain(): a report, a function and its arguments, a lowered program of JAX.

        expect(step, "1 all-reduce over model, at most 1 KiB; fits with 10% spare", params, batch)

    Expectations are lines, or items separated by `;`. `2 all-gathers over data`, `at most 3 all-reduces`, `no
    all-to-all` and `any collective-permutes` count the collectives of a kind; collectives of kinds that are not listed
    are errors, unless `others allowed`. `no collectives`; `no full replication above 64 KiB except "p['pos']"`; `fits
    with 10% spare`.

    >>> x = ms.abstract_tensor((8, 1024), "float32", ms.Mesh({"x": 4}), ms.P(None, "x"))
    >>> report = ms.expect(lambda x: x.sum(), "1 all-reduce over x, at most 4 B", x, topology="cpu:4")
    """
    expected = _parsed(expectations)
    report = explain(what, *args, **options)
    checked = _meshard.check_expectations(report, expected)
    if not checked.ok:
        _raise(report, checked.broken)
    return report


def expect_no_full_replication(what: Any, *args: Any, least_bytes: int = 1 << 20, except_names: tuple[str, ...] = (),
                               **options: Any) -> Report:
    """Fails if a value of `least_bytes` or more is replicated although a mesh axis divides one of its dimensions.

    `except_names` are values that may be; `*` matches any text. Returns the report.

    >>> w = ms.abstract_tensor((1024, 1024), "float32", ms.Mesh({"x": 4}), ms.P("x"))
    >>> report = ms.expect_no_full_replication(lambda w: w + 1, w, topology="cpu:4")
    """
    report = explain(what, *args, **options)
    checked = _meshard.check_replication(report, least_bytes, list(except_names))
    if not checked.ok:
        _raise(report, checked.broken)
    return report


def expect_fits(what: Any, *args: Any, margin: float = 0.0, **options: Any) -> Report:
    """Fails unless a program fits into a device's memory with a fraction `margin` of it free. Returns the report.

    >>> w = ms.abstract_tensor((8, 8), "float32", ms.Mesh({"x": 2}), ms.P("x"))
    >>> report = ms.expect_fits(lambda w: 2 * w, w, margin=0.1, topology="cpu:2")
    """
    return expect(what, f"fits with {100 * margin:g}% spare; others allowed", *args, **options)
