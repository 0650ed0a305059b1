"""plan: searches for the mesh and the shardings that suit a program best on a target."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _meshard
from ._meshard import ChosenSharding, ExplicitShardings, FreeValue, PlanResult, PlannedCandidate, TriedShardings
from ._progress import progress_of
from ._reports import Target, compile_options, foreign_module, in_python_terms, jitted, mesh_axes, target_of, traced

__all__ = ["plan", "plan_candidates", "try_shardings", "explicit", "FreeValue", "PlanResult", "PlannedCandidate",
           "TriedShardings", "ExplicitShardings", "ChosenSharding"]


for _class in [value for name, value in list(globals().items()) if name in __all__ and isinstance(value, type)]:
    _class.__module__ = "meshard"


def _names(value):
    if value is None:
        return []
    return [name.strip() for name in value.split(",")] if isinstance(value, str) else [str(name) for name in value]


def _line(done, of, following, best):
    text = f"{done} of {of}"
    if best:
        text += f", best so far {best}"
    return text + (f", now {following}" if following else "")


def _module_bytes(what, args, kwargs, donate, target):
    module = foreign_module(what, args, kwargs, donate, target)
    if module is None:
        return traced(what, args, kwargs, donate).module_text().encode()
    from . import _foreign

    return _foreign.for_platform(module, target.platform)


def _module_text(what, args, kwargs, donate, target):
    return _meshard.program_as_text(_module_bytes(what, args, kwargs, donate, target))


def _search_options(time_limit, most_compiled, most_candidates, margin, journal, jobs=0):
    search = _meshard.SearchOptions()
    search.jobs = jobs
    search.time_limit = float(time_limit or 0)
    search.most_compiled = most_compiled
    search.most_candidates = most_candidates
    search.margin = margin
    search.journal = os.fspath(journal)
    return search


@in_python_terms
def plan(what: Any, *args: Any, topology: str | Target, axes: str | Sequence[str] | None = None,
         pinned: str | Mapping[str, int] | None = None, free: str | Sequence[str | int] = (),
         values: Sequence[FreeValue] | None = None, donate: int | Sequence[int] | None = None,
         time_limit: float | None = None, most_compiled: int = 0, most_candidates: int = 20000, margin: float = 0.0,
         journal: str | os.PathLike[str] = "", identity: str = "", jobs: int = 0,
         progress: Callable[[str], Any] | bool | None = None, compile_limit: float | None = None, entry: str = "",
         overrides: Mapping[str, str | bool | int | float] | None = None, partitioner: str | None = None,
         links: Mapping[str, str] | None = None, processes: int | None = None, use_cache: bool = True,
         cache: str | os.PathLike[str] = "", plugin: str | os.PathLike[str] = "", **kwargs: Any) -> PlanResult:
    """Tries every mesh of a target's devices and every sharding of the free values, and ranks what compiles.

    `what` is a program as explain() takes it: a function with its arguments, a program of JAX, the text of a module.
    `free` has the names of the arguments whose sharding is searched (`*` matches any text: `"params[*]"`), or their
    numbers; dimensions that a sharding leaves open are free too. `axes` names the mesh axes, by default those of the
    program; `pinned` gives axes a fixed size: `{"data": 4}`.

    With `values`, a list of FreeValue, `what` is a function `build(mesh, specs)` that returns trace_program(...), or a
    Report. With a `journal`, `identity` must then say which program it is.

    The program as it is given is compiled first, and is part of the result. Then come the candidates that are most
    promising by their predicted time, and the neighbors of the best one. No candidate is started after `time_limit`
    seconds, and at most `most_compiled` are compiled (0: all), `jobs` at the same time (0: one per core, at most 2).
    `margin` is the fraction of memory that must stay free. `journal` is a file from which a search resumes. `progress` is a function of a line of text, True,
    False, or None: a line on a terminal and in notebooks. `compile_limit` ends a single compile after so many seconds.
    The other options are those of explain().

        >>> mesh = ms.Mesh({"x": 4})
        >>> w = ms.abstract_tensor((64, 64), "float32", mesh, ms.P())
        >>> found = ms.plan(lambda x, w: (x @ w).sum(), w, w, free=["x"], topology="cpu:4", most_compiled=2,
        ...                 progress=False)
        >>> len(found.ranking) >= 1
        True

    Raises InvalidArgumentError if no argument has a name in `free`, or `pinned` does not divide the devices.
    """
    target = target_of(topology)
    search = _search_options(time_limit, most_compiled, most_candidates, margin, journal, jobs)
    compiling = compile_options(entry=entry, overrides=overrides, partitioner=partitioner, links=links, processes=processes,
                                time_limit=compile_limit, use_cache=use_cache, cache=cache, plugin=plugin)
    sizes = dict(mesh_axes(pinned))
    with progress_of(progress) as show:
        if show:
            search.progress = lambda *state: show(_line(*state))
        if values is not None:
            if args or kwargs or free:
                raise TypeError("with `values`, the function gets a mesh and specs, and no other arguments")
            return _meshard.plan_programs(what, target, list(values), compiling, search, _names(axes), sizes, identity)
        text = _module_text(what, args, kwargs, donate, target)
        return _meshard.plan_module(text, target, compiling, search, _names(axes), sizes,
                                    [str(name) for name in ([free] if isinstance(free, str) else free)])


@in_python_terms
def plan_candidates(what: Any, *args: Any, topology: str | Target, axes: str | Sequence[str] | None = None,
                    pinned: str | Mapping[str, int] | None = None, free: str | Sequence[str | int] = (),
                    donate: int | Sequence[int] | None = None, most_candidates: int = 20000, margin: float = 0.0,
                    entry: str = "", **kwargs: Any) -> tuple[list[PlannedCandidate], bool]:
    """The candidates that plan() would compile, most promising first, and whether these are all. Compiles nothing."""
    search = _search_options(None, 0, most_candidates, margin, "")
    target = target_of(topology)
    return _meshard.plan_list(_module_text(what, args, kwargs, donate, target), target, compile_options(entry=entry),
                              search,
                              _names(axes), dict(mesh_axes(pinned)),
                              [str(name) for name in ([free] if isinstance(free, str) else free)])


@in_python_terms
def try_shardings(what: Any, *args: Any, shardings: Mapping[str | int, Any] | str | None = None, mesh: Any = None,
                  topology: str | Target, donate: int | Sequence[int] | None = None, time_limit: float | None = None,
                  overrides: Mapping[str, str | bool | int | float] | None = None, partitioner: str | None = None,
                  links: Mapping[str, str] | None = None, processes: int | None = None, use_cache: bool = True,
                  cache: str | os.PathLike[str] = "", plugin: str | os.PathLike[str] = "",
                  progress: Callable[[str], Any] | bool | None = None, entry: str = "", **kwargs: Any) -> TriedShardings:
    """Compiles a program as it is and with other shardings, and compares both: times, memory, collectives.

    `what` is a program as plan() takes it. `shardings` gives specs by the names (`*` matches any text) or numbers of
    arguments, and of results: `{"params['w2']": P("data", None), "result 0": P("data")}`; or it is a text of the same:
    `"*['w2']: P(data, none); result 0: P(data)"`. A result that is the next value of a changed argument gets the
    argument's sharding, if it had that of the argument, or none. `mesh` gives the axes other sizes:
    `{"data": 4, "model": 4}`. The other options are those of explain().
    """
    if not shardings and mesh is None:
        raise TypeError("try_shardings needs `shardings`, `mesh`, or both")
    target = target_of(topology)
    options = compile_options(entry=entry, overrides=overrides, partitioner=partitioner, links=links, processes=processes,
                              time_limit=time_limit, use_cache=use_cache, cache=cache, plugin=plugin)
    is_text = isinstance(shardings, str)
    changes = [] if is_text else [(str(value), spec) for value, spec in (shardings or {}).items()]
    with progress_of(progress) as show:
        options.progress = show
        return _meshard.try_shardings(_module_text(what, args, kwargs, donate, target), target, options, changes,
                                      [shardings] if is_text else [], mesh_axes(mesh))


@in_python_terms
def explicit(what: Any, *args: Any, topology: str | Target, words: str = "", most_compiles: int = 64,
             donate: int | Sequence[int] | None = None, part_of_target: bool = False, time_limit: float | None = None,
             overrides: Mapping[str, str | bool | int | float] | None = None, use_cache: bool = True,
             cache: str | os.PathLike[str] = "", plugin: str | os.PathLike[str] = "",
             progress: Callable[[str], Any] | bool | None = None, entry: str = "", **kwargs: Any) -> ExplicitShardings:
    """Compiles a program, and writes down the shardings that the compiler chose, as constraints.

    `what` is a program as explain() takes it. The result lists, by line, the values whose sharding does not follow from
    those of arguments, results and constraints: an op along explicit axes would not infer it. Printed, it is a list of
    changes in JAX's words; `words` may be "jax", "pytorch" or "meshard", by default those of the framework that wrote
    the program. `module_text()` is the program with all constraints.

    That program was compiled, and has the collectives of the original. Constraints that would change them are searched
    for with at most `most_compiles` compiles, and are in `dropped` with the difference that they make. The other
    options are those of explain().

        found = ms.explicit(jax.jit(step).lower(params, x), topology="v5e:4x4")
        print(found)
    """
    target = target_of(topology)
    options = compile_options(entry=entry, part_of_target=part_of_target, overrides=overrides, time_limit=time_limit,
                              use_cache=use_cache, cache=cache, plugin=plugin)
    if not words:
        from . import _foreign

        words = "pytorch" if _foreign.is_torch(what) else ""
    with progress_of(progress) as show:
        options.progress = show
        return _meshard.explicit_shardings(_module_bytes(what, args, kwargs, donate, target), target, options, words,
                                           most_compiles)
