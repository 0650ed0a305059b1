"""explain, predict, check_sharded and module_text: what a compiler makes of a program."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import _meshard
from ._errors import Error
from ._meshard import (
    BufferUse, Collective, CollectiveGroup, CollectivePurpose, CommunicationTime, ComparedProgram, CustomCallUse,
    HardwareFigures, HostTransfers, LayerTraffic, LinkTime, MeasuredRun, MemoryUse, ModuleDifference, PredictedMove,
    Prediction, ProgramCheck, ProgramCost, ProgramDifference, Report, ReportDiff, Reshard, Roofline, SameReport,
    Schedule, ShardedCheck, ShardedDifference, Target, TimelineEntry, TracedProgram, TransferTime, ValuePlacement)
from ._progress import progress_of
from ._transforms import jit

__all__ = ["explain", "same", "predict", "check_sharded", "module_text", "trace_program", "find_compile_program",
           "Report", "ReportDiff", "Collective", "CollectiveGroup", "CollectivePurpose", "LayerTraffic", "Reshard",
           "ValuePlacement", "MemoryUse",
           "BufferUse", "ProgramCost", "Roofline", "LinkTime", "TimelineEntry", "Target", "HardwareFigures",
           "Schedule", "TransferTime", "CommunicationTime", "CustomCallUse", "HostTransfers", "MeasuredRun",
           "TracedProgram", "Prediction", "PredictedMove", "ShardedCheck", "ShardedDifference", "SameReport",
           "ComparedProgram", "ModuleDifference", "ProgramCheck", "ProgramDifference"]


for _class in [value for name, value in list(globals().items()) if name in __all__ and isinstance(value, type)]:
    _class.__module__ = "meshard"

# A wheel has the program that compiles for absent hardware.
_bundled = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "meshard-compile")
if "MESHARD_COMPILE" not in os.environ and os.access(_bundled, os.X_OK):
    os.environ["MESHARD_COMPILE"] = _bundled


def target_of(topology):
    """A Target, from itself or its name."""
    return topology if isinstance(topology, Target) else Target.parse(topology)


def mesh_axes(mesh):
    """[(name, size)] from a dict, pairs, the text `data=4,model=2`, or a Mesh."""
    if mesh is None:
        return []
    if isinstance(mesh, str):
        axes = []
        for item in mesh.split(","):
            name, equals, size = item.partition("=")
            if not equals or not size.strip().isdigit():
                raise ValueError(f"mesh={mesh!r}: expected names and sizes, such as data=4,model=2")
            axes.append((name.strip(), int(size)))
        return axes
    if hasattr(mesh, "axis_names"):
        return list(zip(mesh.axis_names, mesh.shape, strict=True))
    if hasattr(mesh, "items"):
        mesh = mesh.items()
    return [(str(name), int(size)) for name, size in mesh]


def cost_text(name, cost):
    """`NAME=FLOPS,BYTES` from the text or the numbers of a custom call's cost."""
    if isinstance(cost, str):
        return f"{name}={cost}"
    return f"{name}=" + ",".join(part if isinstance(part, str) else format(part, ".17g") for part in cost)


def compile_options(*, mesh=None, device_order="default", device_ids=None, partitions=None, part_of_target=False,
                    entry="", partitioner=None, overrides=None, processes=None, links=None, costs=None, measured=None,
                    time_limit=None, use_cache=True, cache="", plugin=""):
    """The options of explain(), checked."""
    options = _meshard.ExplainOptions()
    options.mesh = mesh_axes(mesh)
    options.device_order = device_order
    options.device_ids = list(device_ids) if device_ids is not None else []
    options.partitions = partitions
    options.part_of_target = part_of_target
    options.entry = entry
    options.partitioner = partitioner or ""
    options.overrides = dict(overrides or {})
    options.processes = processes
    for name, figures in (links or {}).items():
        if name not in ("process", "device"):
            raise ValueError(f"links={{{name!r}: ...}}: the kinds of links are process and device")
        setattr(options, f"{name}_link", figures)
    options.costs = [cost_text(name, cost) for name, cost in (costs or {}).items()]
    options.measured = os.fspath(measured) if measured is not None else ""
    options.time_limit = float(time_limit or 0)
    options.use_cache = use_cache
    options.cache = os.fspath(cache)
    options.plugin = os.fspath(plugin)
    return options


def jitted(function, donate=None):
    """The function as a jitted one."""
    from . import _foreign

    _foreign.refuse_torch(function)
    if isinstance(function, _meshard.Jit):
        if donate is not None:
            raise ValueError("[explain] the function is jitted already: pass donate_argnums to meshard.jit")
        return function
    if not callable(function):
        raise TypeError("expected a function, a program of JAX or PyTorch, a StableHLO module or the path of one, not "
                        f"{type(function).__module__}.{type(function).__qualname__}")
    return jit(function, donate_argnums=donate)


def traced(what, args, kwargs, donate=None):
    """The TracedProgram of a function of meshard or a program of PyTorch."""
    from . import _foreign

    what, args, kwargs = _foreign.recordable(what, args, kwargs)
    function = jitted(what, donate)
    try:
        return _meshard.trace_program(function, args, kwargs)
    except TypeError as error:
        _foreign.note_on_torch(error, args, kwargs)
        raise


def foreign_module(what, args, kwargs, donate=None, topology=None):
    """The module of a program that meshard did not record; None for a function of meshard. What JAX has not lowered yet
    is lowered for the platform of `topology`."""
    from . import _foreign  # imported when it is needed, as in the functions below

    module = _foreign.module_of_torch(what, args, kwargs)
    if module is not None:
        if donate is not None:
            raise ValueError("[explain] a program of PyTorch takes no donate: a training step overwrites its state")
        return module
    platform = None if topology is None else target_of(topology).platform
    if _foreign.is_jax_call(what, args, kwargs):
        return _foreign.module_of(_foreign.lowered_of_call(what, args, kwargs, donate, platform))
    module = _foreign.module_of(what, platform)
    if module is None:
        return None
    if args or kwargs:
        raise TypeError("explain() takes no arguments for a lowered or compiled program: its types are fixed")
    if donate is not None:
        raise ValueError("[explain] the module says which arguments are donated")
    return module


def place_module(module, topology, options):
    """The target for a module; sets the devices if the module was made for the target's own."""
    from . import _foreign

    name = _foreign.topology_of(module)
    chosen = topology is None
    if chosen:
        if name is None:
            raise TypeError("explain needs the hardware to compile this program for: topology=\"v5e:4x4\", \"h100:8\", "
                            "\"cpu:8\"")
        topology = name
    target = target_of(topology)
    platform = {"gpu": "cuda"}.get(module.platform, module.platform)
    ids, own = module.device_ids, target.device_ids
    if ids and not options.device_ids and not options.mesh and platform == target.platform and set(ids) <= set(own):
        # For more hardware than the program has devices, `part_of_target` is needed, as for any other program.
        if chosen or len(ids) == len(own) or options.part_of_target:
            options.device_ids = ids
    return target


# Texts that the command-line tool and this package share name the tool's options.
_FLAGS = {"--devices": "part_of_target=True", "--mesh": "mesh=", "--topology": "topology=",
          "--entry": "entry="}
_FLAG = re.compile("|".join(_FLAGS))


def in_python_terms(function):
    """The function with messages of errors that name arguments instead of command-line options."""

    @functools.wraps(function)
    def called(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Error as error:
            text = str(error)
            if not _FLAG.search(text):
                raise
            replaced = type(error)(_FLAG.sub(lambda found: _FLAGS[found[0]], text))
            replaced.message, replaced.filename, replaced.lineno = error.message, error.filename, error.lineno
            for note in getattr(error, "__notes__", ()):
                replaced.add_note(note)
            raise replaced from None

    return called


@in_python_terms
def explain(what: Any, *args: Any, topology: str | Target | None = None, donate: int | Sequence[int] | None = None,
            progress: Callable[[str], Any] | bool | None = None, mesh: Any = None, device_order: str = "default",
            device_ids: Sequence[int] | None = None, partitions: int | None = None, part_of_target: bool = False,
            entry: str = "", partitioner: str | None = None, overrides: Mapping[str, str | bool | int | float] | None = None,
            processes: int | None = None, links: Mapping[str, str] | None = None,
            costs: Mapping[str, str | Sequence[float]] | None = None,
            measured: str | os.PathLike[str] | None = None, time_limit: float | None = None,
            use_cache: bool = True, cache: str | os.PathLike[str] = "", plugin: str | os.PathLike[str] = "",
            **kwargs: Any) -> Report:
    """Reports what the compiler makes of a program: collectives and their source lines, memory, time.

    `what` is one of

    - a function, jitted or not, with its arguments. Nothing runs: they may be abstract. A jitted function without
      arguments: its newest compiled program;
    - a function of JAX with its arguments, arrays or `jax.ShapeDtypeStruct` with shardings; a `jax.stages.Lowered` or
      `Traced`; a `jax.export.Exported` or its bytes;
    - a module of PyTorch with its arguments, a training step of `meshard.torch`, or a `torch.export.ExportedProgram`;
    - a StableHLO module as text, bytecode or portable artifact, or the path of a file with one.

    `topology` names the hardware, which may be absent: `v5e:4x4`, `v5p:4x4x4`, `v5e:16x16*2` (two slices), `h100:8`,
    `h100:4x8` (nodes and devices of a node), `cpu:8`. By default the program is compiled for the devices that it was
    made for.

    `donate` has the positions of arguments whose memory the results may reuse. `progress` is a function of a step's
    text, True, False, or None: a line on a terminal and in notebooks. `mesh` replaces the axes of a module:
    `{"data": 4, "model": 2}`. `device_order` is `torus` (as JAX does), `ids`, or `default`: the module's own
    if it has one, else `torus`. `device_ids` gives the device of each position of the mesh. `part_of_target` allows a
    program on only the first devices. `entry` names the function that runs the program, in a module of text that has
    no `main` and several public functions. `partitioner` is `shardy` or `gspmd`.
    `overrides` has compiler options by name. `processes` divides the devices into processes, and `links` gives figures
    of links: `{"process": "10GB/s,20us", "device": "40GB/s"}`. `costs` gives the operations, bytes of memory and perhaps
    bytes sent of custom calls: `{"my_kernel": (2e9, 64e6)}` or `{"my_kernel": "2e9,64MiB"}`. `measured` is the
    path of a trace of the program, `*.xplane.pb` or `*.trace.json.gz` of jax.profiler, whose times the report shows.
    `time_limit` is in seconds. Other keyword arguments are the function's.

    Raises InvalidArgumentError for a topology or option that does not exist, and NotFoundError if the compiler of an
    absent platform is not installed (`meshard fetch tpu`).

        >>> mesh = ms.Mesh({"x": 4})
        >>> x = ms.abstract_tensor((8, 1024), "float32", mesh, ms.P(None, "x"))
        >>> report = ms.explain(lambda x: x.sum(), x, topology="cpu:4")
        >>> [(each.kind, each.axes, each.bytes) for each in report.collectives]
        [('all-reduce', ('x',), 4)]
    """
    options = compile_options(
        mesh=mesh, device_order=device_order, device_ids=device_ids, partitions=partitions,
        part_of_target=part_of_target, entry=entry, partitioner=partitioner, overrides=overrides, processes=processes, links=links,
        costs=costs, measured=measured, time_limit=time_limit, use_cache=use_cache, cache=cache, plugin=plugin)
    if isinstance(what, Report):
        return what
    with progress_of(progress) as show:
        options.progress = show
        if not isinstance(what, TracedProgram):
            module = foreign_module(what, args, kwargs, donate, topology)
            if module is not None:
                from . import _foreign

                if topology is None and _foreign.is_torch(what):
                    _foreign.place_here(module)
                target = place_module(module, topology, options)
                if not part_of_target and len(target.device_ids) > 1 and _foreign.is_torch(what):
                    _foreign.require_mesh(module, target)
                return _meshard.explain_module(_foreign.for_platform(module, target.platform), target, options)
            if topology is None and not args and not kwargs and isinstance(what, _meshard.Jit):
                return _meshard.explain_newest(jitted(what, donate), options)
            what = traced(what, args, kwargs, donate)
        if topology is None:
            return _meshard.explain_here(what, options)
        return _meshard.explain_traced(what, target_of(topology), options)


def same(*programs: Any, time_limit: float | None = None, use_cache: bool = True, cache: str | os.PathLike[str] = "",
         plugin: str | os.PathLike[str] = "") -> SameReport:
    """Whether programs are the same computation, up to names, the order of ops, meshes' names and source lines.

    Each is a path, a StableHLO module as text, bytecode or portable artifact, a `jax.stages.Lowered` or `Traced`, or a
    `jax.export.Exported` or its bytes. The result is true if all are the same. Printed, it has for each other one the
    first op that differs from the first program, with both source lines.

        report = ms.same("host0.mlir", "host1.mlir")
        if not report:
            print(report)

    Nothing is run: the CPU plugin reads the programs in a process of its own. `time_limit` is in seconds. Raises
    InvalidArgumentError or DataLossError, with the program, for what is not a module.
    """
    from . import _foreign

    if len(programs) < 2:
        raise TypeError(f"[same] compares at least two programs, not {len(programs)}")
    named = []
    for number, what in enumerate(programs):
        module = foreign_module(what, (), {})
        if module is None:
            raise TypeError(f"[same] program {number} is a {type(what).__name__}: give a path, a module, or what "
                            "jax.jit(f).lower() or jax.export makes")
        named.append((os.fspath(what) if _foreign.is_path(what) else f"program {number}", module.data))
    options = compile_options(time_limit=time_limit, use_cache=use_cache, cache=cache, plugin=plugin)
    return _meshard.compare_programs(named, options)


def find_compile_program() -> str:
    """The path of the program meshard-compile, which compiles for absent hardware.

    It is searched for in the package, beside the interpreter and in PATH; MESHARD_COMPILE names another one.
    """
    return str(_meshard.find_compile_program())


def trace_program(function: Callable[..., Any], *args: Any, donate: int | Sequence[int] | None = None,
                  **kwargs: Any) -> TracedProgram:
    """Records a function for these arguments. Nothing is compiled; only their types and shardings matter."""
    return traced(function, args, kwargs, donate)


def predict(function: Callable[..., Any] | TracedProgram, *args: Any, **kwargs: Any) -> Prediction:
    """Predicts the collectives that the partitioner will insert, without compiling, and suggests how to avoid them.

    >>> mesh = ms.Mesh({"model": 4})
    >>> x = ms.abstract_tensor((8, 16), "float32", mesh, ms.P(None, "model"))
    >>> w = ms.abstract_tensor((16, 8), "float32", mesh, ms.P("model"))
    >>> [move.kind for move in ms.predict(lambda x, w: x @ w, x, w).moves]
    ['all-reduce']
    """
    if isinstance(function, TracedProgram):
        return _meshard.predict_traced(function)
    return _meshard.predict_traced(trace_program(function, *args, **kwargs))


def check_sharded(function: Callable[..., Any], *args: Any, max_ulps: float | None = None,
                  **kwargs: Any) -> ShardedCheck:
    """Compares a run with the arguments' shardings with a run on one device.

    The result is true if all results agree up to what the rounding of each op explains, which depends on the length of
    its sums, or within `max_ulps` of their largest value; else it has the first recorded value that differs, with its
    source line.

    >>> mesh = ms.Mesh({"x": 4})
    >>> x = ms.mark_sharding(ms.arange(8.0), mesh, ms.P("x"))
    >>> bool(ms.check_sharded(lambda x: ms.sum(x * x), x))
    True
    """
    from . import _foreign

    function, args, kwargs = _foreign.recordable(function, args, kwargs, with_values=True)
    return _meshard.check_sharded(jitted(function), args, kwargs, None if max_ulps is None else float(max_ulps))


def module_text(what: Any, *args: Any, donate: int | Sequence[int] | None = None, **kwargs: Any) -> str:
    """The StableHLO module of a function and its arguments, as explain() and plan() compile it.

    >>> print("stablehlo.sine" in ms.module_text(ms.sin, ms.ones(2)))
    True
    """
    if isinstance(what, TracedProgram):
        return what.module_text()
    module = foreign_module(what, args, kwargs, donate)
    if module is None:
        return trace_program(what, *args, donate=donate, **kwargs).module_text()
    try:
        return module.data.decode()
    except UnicodeDecodeError as error:
        raise ValueError("[module_text] the module is bytecode") from error
