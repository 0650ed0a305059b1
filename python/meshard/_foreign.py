"""Programs of JAX and PyTorch as StableHLO modules, for explain and plan."""

import os
import re
import sys
from dataclasses import dataclass

from . import _meshard

__all__ = []


@dataclass
class Module:
    """A StableHLO module: text, bytecode or a portable artifact, and the devices that it was made for."""

    data: bytes
    device_ids: list[int] | None = None
    """The device of each partition; None if the program was made without devices."""
    platform: str = ""
    """`cpu`, `tpu`, `gpu`; empty if it was made without devices."""
    device_kind: str = ""
    coords: list[tuple] | None = None
    platforms: tuple[str, ...] = ()
    """Of a program that was exported for several: its first argument is the number of the platform."""


def _from(value, *packages):
    """Whether the class of a value is defined in one of these packages."""
    module = getattr(type(value), "__module__", None) or ""
    return module.partition(".")[0] in packages


def _torch_programs(what):
    """The module `_programs` of meshard.torch, if this is a program of PyTorch; else None."""
    owner = getattr(what, "__self__", what)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(owner, torch.nn.Module) or _from(what, "torch") or \
            type(what).__module__.startswith("meshard.torch."):
        from .torch import _programs

        if _programs.is_program(what):
            return _programs
    return None


def is_torch(what):
    """Whether this is a program of PyTorch."""
    return _torch_programs(what) is not None


def recordable(what, args, kwargs, with_values=False):
    """(function, args, kwargs) of meshard for a program of PyTorch; what is something else is returned as it is."""
    programs = _torch_programs(what)
    return (what, args, kwargs) if programs is None else programs.as_function(what, args, kwargs, with_values)


_DEVICE_IDS = re.compile(r'meshard\.mesh = "<.*device_ids=\[([\d, ]+)\]>"')


def module_of_torch(what, args, kwargs):
    """The module of a program of PyTorch and its arguments, for any hardware; None if `what` is something else."""
    programs = _torch_programs(what)
    return None if programs is None else Module(programs.module_text(what, args, kwargs).encode())


def require_mesh(module, target):
    """Raises a ValueError for a program of PyTorch in which nothing is marked: it runs on one device."""
    if not _DEVICE_IDS.search(module.data.decode()):
        raise ValueError(f"[explain] no parameter and no argument is marked with a mesh, so this is a program for one "
                         f"device, and {target.name} has {len(target.device_ids)}: mark them with meshard.torch.shard() "
                         "or mark_sharding(), let meshard.plan() propose marks, or pass part_of_target=True")


def place_here(module):
    """Sets the devices of a module of meshard to those of this process that its mesh names."""
    from ._runtime import devices

    named = _DEVICE_IDS.search(module.data.decode())
    module.device_ids = [int(each) for each in named[1].split(",")] if named else [0]
    own = {each.id: each for each in devices()}
    first = own.get(module.device_ids[0])
    if first is not None:
        module.platform, module.device_kind = first.platform, first.kind
        coords = [own[each].attributes.get("coords") if each in own else None for each in module.device_ids]
        module.coords = [tuple(each) for each in coords] if all(each is not None for each in coords) else None


def refuse_torch(function):
    """Raises a TypeError for a function of PyTorch, which cannot be called with meshard's tensors."""
    function = getattr(function, "__wrapped__", function)
    owner = getattr(function, "__self__", function)  # of a method, its object
    modules = [getattr(one, "__module__", None) or type(one).__module__ for one in (function, owner)]
    if any(name.partition(".")[0] == "torch" for name in modules):
        name = getattr(function, "__qualname__", None) or type(function).__qualname__
        raise TypeError(f"[explain] {name} is a function of PyTorch, which meshard does not record: pass "
                        f"meshard.torch.compile({name}), or the module that uses it")


def note_on_torch(error, args, kwargs):
    """Adds to an error of a function what may be its cause: arguments of PyTorch."""
    if any(_from(value, "torch") for value in (*args, *kwargs.values())):
        error.add_note("the function is called with tensors of meshard: to explain a program of PyTorch, pass the "
                       "torch.nn.Module, meshard.torch.compile(function) or meshard.torch.train_step(...), and its "
                       "arguments")


# --- the user's lines ---------------------------------------------------------------------------------

_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
_FILE = re.compile(r'^"((?:[^"\\]|\\.)*)":\d+:\d+')
_CALL = re.compile(r"^callsite\((#loc\d*) at (#loc\d*)\)$")
_NAMED = re.compile(r'^"(?:[^"\\]|\\.)*"\((#loc\d*)\)$')
_LIBRARY = re.compile(r"[/\\](?:site-packages|dist-packages|lib[/\\]python3\.\d+)[/\\]|^<frozen ")
_OWN = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _is_library_file(file):
    return bool(_LIBRARY.search(file)) or file.startswith(_OWN)


def user_lines(text):
    """Module text whose locations begin with the innermost frame that is not in an installed package.

    A location of JAX is a call stack, and a report has the innermost line of it. For a layer of an installed library
    that is the library's line, the same for all layers. If the whole stack is in such packages, it stays.
    """
    # The aliases are lines at the end. What cannot be read stays as it is.
    places = dict(_ALIAS.findall(text))
    in_library, outer = {}, {}

    def is_library(alias, depth=0):
        if alias not in in_library:
            value = places.get(alias, "")
            if (named := _NAMED.match(value)) and depth < 100:
                in_library[alias] = is_library(named[1], depth + 1)
            else:
                file = _FILE.match(value)
                in_library[alias] = bool(file and _is_library_file(file[1]))
        return in_library[alias]

    def innermost(alias, depth=0):
        """The alias that stands for the stack without its innermost frames in libraries; None: nothing is left."""
        if alias not in outer:
            call = _CALL.match(places.get(alias, ""))
            if call and is_library(call[1]):
                outer[alias] = innermost(call[2], depth + 1) if depth < 200 else alias
            elif not call and is_library(alias):
                outer[alias] = None
            else:
                outer[alias] = alias
        return outer[alias]

    def rewritten(match):
        alias, value = match[1], match[2]
        if _CALL.match(value):
            found = innermost(alias)
            if found not in (None, alias):
                return f"{alias} = loc({places[found]})"
        return match[0]

    return _ALIAS.sub(rewritten, text)


# --- JAX ----------------------------------------------------------------------------------------------

def _devices_of(lowered):
    """The devices that a Lowered was made for, in the order of its partitions; None: abstract or unknown."""
    lowering = getattr(lowered, "_lowering", None)
    devices = getattr(lowering, "_device_list", None)
    if devices is None:
        devices = getattr(lowering, "compile_args", {}).get("device_assignment")
    try:
        devices = list(devices)
        return devices if devices and all(hasattr(d, "id") and hasattr(d, "platform") for d in devices) else None
    except TypeError:
        return None


def _with_devices(text, devices):
    module = Module(user_lines(text).encode())
    if devices:
        module.device_ids = [d.id for d in devices]
        module.platform = devices[0].platform
        module.device_kind = getattr(devices[0], "device_kind", "")
        coords = [getattr(d, "coords", None) for d in devices]
        module.coords = [tuple(c) for c in coords] if all(c is not None for c in coords) else None
    return module


def _module_of_lowered(lowered):
    if not hasattr(lowered, "as_text"):
        raise TypeError(f"explain cannot read a {type(lowered).__name__}")
    try:
        text = lowered.as_text(debug_info=True)
    except TypeError:  # an older JAX
        text = lowered.compiler_ir("stablehlo").operation.get_asm(enable_debug_info=True)
    return _with_devices(text, _devices_of(lowered))


def _module_of_exported(exported):
    polymorphic = [str(aval) for aval in exported.in_avals if any(not isinstance(size, int) for size in aval.shape)]
    if polymorphic:
        raise ValueError(f"[explain] the exported program has symbolic sizes, such as {polymorphic[0]}: export it for "
                         "the sizes that it runs with, or explain the function with its arguments")
    module = _with_devices(exported.mlir_module(), None)
    if len(exported.platforms) > 1:
        module.platforms = tuple(exported.platforms)
    return module


_PLATFORM = re.compile(r'(@main\()(%\w+): tensor<i32> \{jax\.global_constant = "_platform_index"\}(?: loc\([^()\n]*\))?'
                       r"(?:, )?([^\n]*\{\n)")


def for_platform(module, platform):
    """The data of a module, for one of the platforms that it was exported for. XLA removes the other branches."""
    if not module.platforms:
        return module.data
    if platform not in module.platforms:
        raise ValueError(f"[explain] the program was exported for {', '.join(module.platforms)}, not for {platform}")
    number = module.platforms.index(platform)
    return _PLATFORM.sub(rf"\1\3    \2 = stablehlo.constant dense<{number}> : tensor<i32> loc(unknown)\n",
                         module.data.decode(), count=1).encode()


def _is_jax_function(what):
    return _from(what, "jax", "jaxlib", "jax_plugins") and hasattr(what, "lower") and callable(what)


def _has_jax_leaf(args, kwargs):
    jax = sys.modules.get("jax")
    if jax is None:
        return False
    leaves = jax.tree_util.tree_leaves((args, kwargs), is_leaf=lambda x: _from(x, "meshard"))
    return any(_from(leaf, "jax", "jaxlib") for leaf in leaves)


def is_jax_call(what, args, kwargs):
    """Whether explain(what, *args) means a function of JAX."""
    return _is_jax_function(what) or (callable(what) and not _from(what, "meshard") and _has_jax_leaf(args, kwargs))


def _lowered(traced, platform):
    """A traced function, or a function with its arguments, as StableHLO for a platform: without one, for the devices
    of its arguments."""
    return traced.lower() if platform is None else traced.lower(lowering_platforms=(platform,))


def lowered_of_call(what, args, kwargs, donate=None, platform=None):
    """The jax.stages.Lowered of a function of JAX and its arguments, which may be jax.ShapeDtypeStruct, also over an
    AbstractMesh. Functions choose between platforms while they are lowered, so `platform` is that of the target."""
    import jax

    if not _is_jax_function(what):
        what = jax.jit(what, donate_argnums=() if donate is None else donate)
    elif donate is not None:
        raise ValueError("[explain] the function is jitted already: pass donate_argnums to jax.jit")
    if type(what).__name__ == "Traced":  # which can be called, too
        return _lowered(what, platform)
    return _lowered(what.trace(*args, **kwargs), platform) if hasattr(what, "trace") else what.lower(*args, **kwargs)


# --- files and bytes ----------------------------------------------------------------------------------

_PORTABLE = b"ML\xefR"


def _module_of_bytes(data, name):
    data = bytes(data)
    if data.startswith(_PORTABLE):
        return Module(data)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = None
    if text is not None and "\0" not in text:
        return Module(user_lines(text).encode())
    # What jax.export.Exported.serialize() writes has the module inside. JAX can fix the platform in it.
    if _PORTABLE in data:
        try:
            from jax import export
        except ImportError:
            return Module(data)
        return _module_of_exported(export.deserialize(bytearray(data)))
    return Module(data)  # whose reader says what is wrong


def is_path(what):
    """Whether `what` is the path of a file with a module, rather than the module."""
    if not isinstance(what, str):
        return isinstance(what, os.PathLike)
    return ("\n" not in what and "module" not in what.partition(" ")[0] and "{" not in what
            and not what.startswith("HloModule "))


def module_of(what, platform=None):
    """The module of a program of JAX or PyTorch, of text, bytes or a file; None if `what` is something else. `platform`
    is the one that a program of JAX is lowered for, if that is not done yet."""
    if isinstance(what, Module):
        return what
    if isinstance(what, str | bytes | bytearray) and not what.strip():
        raise ValueError("[explain] the module is empty")
    if is_path(what):
        with open(what, "rb") as file:
            return _module_of_bytes(file.read(), os.fspath(what))
    if isinstance(what, str):
        return Module(user_lines(what).encode())
    if isinstance(what, bytes | bytearray | memoryview):
        return _module_of_bytes(what, "this")
    if _from(what, "jax", "jaxlib"):
        kind = type(what).__name__
        if kind == "Exported":
            return _module_of_exported(what)
        if kind == "Traced":
            return _module_of_lowered(_lowered(what, platform))
        if kind == "Compiled":
            raise TypeError("[explain] a jax.stages.Compiled has no StableHLO: pass the Lowered that was compiled")
        if hasattr(what, "compiler_ir"):
            return _module_of_lowered(what)
    if _from(what, "jaxlib") and type(what).__name__ in ("HloModule", "XlaComputation", "LoadedExecutable"):
        raise TypeError(f"[explain] a {type(what).__name__} has no StableHLO: pass the jax.stages.Lowered from which it "
                        "was made")
    if (_from(what, "jaxlib") or type(what).__name__ in ("Module", "OpView")) and hasattr(what, "operation"):
        return Module(user_lines(what.operation.get_asm(enable_debug_info=True)).encode())
    if _from(what, "torch_xla") and hasattr(what, "get_stablehlo_text"):
        return Module(what.get_stablehlo_text("forward").encode())
    return None


# --- the hardware that is here ------------------------------------------------------------------------

def topology_of(module):
    """The name of the target that a module was made for; None if its devices do not tell."""
    ids = module.device_ids or []
    coords = module.coords or [()] * len(ids)
    return _meshard.target_name_of(module.platform, module.device_kind, list(ids), [list(each) for each in coords])
