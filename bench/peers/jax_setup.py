"""JAX on the plugin that meshard uses, or on jaxlib's own CPU client if JAX cannot load it."""

import logging
import os

_OPTIONS = {"plugin": "", "devices": 8}
_STARTED = {}


def use(plugin, devices):
    """Sets the plugin, by path, and the number of virtual devices. JAX is imported when jax() is called first."""
    _OPTIONS.update(plugin=plugin, devices=devices)


def jax():
    """The module, with its devices ready."""
    if not _STARTED:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        logging.getLogger("jax._src.xla_bridge").setLevel(logging.ERROR)  # it warns that the plugin is experimental
        import jax as module
        client = "the same plugin"
        try:
            if not _OPTIONS["plugin"]:
                raise RuntimeError("no plugin was named")
            from jax._src import xla_bridge
            xla_bridge.register_plugin("peer", library_path=_OPTIONS["plugin"], priority=500,
                                       options={"cpu_device_count": _OPTIONS["devices"]})
            module.config.update("jax_platforms", "peer")
            module.devices()
        except Exception as error:  # whatever JAX throws for a plugin that it cannot use
            client = f"jaxlib's own CPU client, because {str(error).splitlines()[0][:200]}"
            module.config.update("jax_platforms", "cpu")
            module.config.update("jax_num_cpu_devices", _OPTIONS["devices"])
            module.devices()
        _STARTED.update(module=module, client=client)
    return _STARTED["module"]


def hello():
    """A work that only starts JAX and says what it runs on."""
    version = jax().__version__
    return {"project": f"JAX {version}", "client": _STARTED["client"]}, lambda: None


def mesh(**axes):
    """A mesh of the first devices with these axes."""
    import numpy as np
    module = jax()
    shape = tuple(axes.values())
    devices = np.array(module.devices()[:int(np.prod(shape))]).reshape(shape)
    return module.sharding.Mesh(devices, tuple(axes))


def memory_of(compiled):
    """What the compiler reports about a program's memory on one device, in bytes."""
    stats = compiled.memory_analysis()
    return {"arguments": stats.argument_size_in_bytes, "outputs": stats.output_size_in_bytes,
            "aliased": stats.alias_size_in_bytes, "temporaries": stats.temp_size_in_bytes}


def keep(compiled, path):
    """Writes the optimized program to a file, unless the path is empty."""
    if path:
        with open(path, "w", encoding="utf-8") as file:
            file.write(compiled.as_text())
