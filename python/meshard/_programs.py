"""Programs that were exported by JAX or others, as functions of tensors."""

import os

from . import _meshard
from ._mesh import Mesh
from ._meshard import ImportedValue

__all__ = ["load_program", "ImportedProgram", "ImportedValue"]


class ImportedProgram:
    """A program that another framework exported: a function of tensors. load_program() makes it.

        step = ms.load_program("step.bin")
        params, loss = step(params, batch)                  # on the first devices
        params, loss = step(params, batch, mesh=submesh)    # or on others, of any ids

    Arguments are placed as the module says: host values go straight to the devices that need them, and values on
    devices are resharded or copied. Results have the module's shardings. The program is compiled at its first call for
    each set of devices, and kept on disk like any program.

    In a function that jit, grad or a loop records, a call is a part of the program. Its derivative is the one that was
    exported (`exported.serialize(vjp_order=1)`); without one, a derivative is an error, as vmap is.
    """

    def __init__(self, program):
        self._program = program

    @property
    def name(self) -> str:
        """The name of the exported function, or of the module."""
        return self._program.name

    @property
    def num_devices(self) -> int:
        """The number of devices that it runs on."""
        return self._program.num_devices

    @property
    def platforms(self) -> list[str]:
        """The platforms that it was exported for: `cpu`; empty: any."""
        return self._program.platforms

    @property
    def arguments(self) -> list[ImportedValue]:
        """The arguments, in the order of flat()."""
        return self._program.arguments

    @property
    def results(self) -> list[ImportedValue]:
        """The results, in the order of flat()."""
        return self._program.results

    def on(self, mesh) -> "ImportedProgram":
        """The same program on the devices of a mesh, in the order of its positions.

        If the mesh has the axes of the export, results have shardings over it; otherwise over a mesh with the export's
        axes on these devices. Raises InvalidArgumentError if it has another number of devices.
        """
        return ImportedProgram(self._program.on(mesh))

    def with_shardings(self, shardings, *, insist=False) -> "ImportedProgram":
        """The same program with other shardings for its arguments, compiled once for each choice.

        `shardings` is a list with one for each of `arguments` (None: as the module says), or a dict by their paths
        (`"[0]['w']"`) or names. An argument without a sharding in the module, or with open dimensions, is open to any;
        others need `insist=True`, since the module was written for theirs. The program runs on the devices of the
        shardings' meshes. Raises InvalidArgumentError with the path and both values.
        """
        if isinstance(shardings, dict):
            given = dict(shardings)
            shardings = [given.pop(value.path, given.pop(value.name, None)) for value in self.arguments]
            if given:
                raise KeyError(f"[load_program] {self.name} has no argument {', '.join(map(repr, given))}")
        return ImportedProgram(self._program.with_shardings(list(shardings), insist))

    def vjp(self) -> "ImportedProgram":
        """The derivative, if it was exported (`exported.serialize(vjp_order=1)`), on the same devices.

        A program that takes the arguments of this one in the order of flat(), then the cotangents of its results, and
        returns the cotangents of the arguments. Cotangents of values that are not floating-point numbers are bools,
        which are ignored. Raises InvalidArgumentError if the program was exported without a derivative.
        """
        return ImportedProgram(self._program.vjp())

    def _placed(self, mesh, devices):
        if mesh is not None and devices is not None:
            raise ValueError("[load_program] give a mesh or devices, not both")
        if devices is not None:
            ids = [getattr(device, "id", device) for device in devices]
            mesh = Mesh({"devices": len(ids)}, ids)
        return self._program if mesh is None else self._program.on(mesh)

    def __call__(self, *args, mesh=None, devices=None, **kwargs):
        """Runs the program with the structure of arguments that was exported, and returns that of its results.

        Dicts and fields match by their keys, in any order. Numbers take the dtype of their argument. `mesh` or
        `devices` (ids, or devices) says where it runs; by default, on the first devices. A class that the exporter
        registered is matched by the order of its children, and comes back as a tuple. A program with arguments that
        are called `mesh` or `devices` is called by flat().

        Raises InvalidArgumentError for another structure, shape or dtype, with the path and both values.
        """
        program = self._program if mesh is None and devices is None else self._placed(mesh, devices)
        return program.call(args, kwargs)

    def flat(self, values, *, mesh=None, devices=None):
        """Runs the program with a list of tensors in the order of `arguments`; returns the list of its results."""
        return self._placed(mesh, devices).flat(values)

    def check(self, values, *, mesh=None, devices=None):
        """Compares a run that is partitioned over the devices with one on a single device, with a list of tensors in
        the order of `arguments`.

        The result is true if they agree up to what rounding explains; else it has the first op inside that computes
        something else, with its line, the element and both values (`meshard run --check`). `not_compared` lists what
        one device cannot compute, such as shard_map.
        """
        return self._placed(mesh, devices).check(values)

    def __repr__(self):
        return f"<ImportedProgram {self._program}>"


def load_program(source) -> ImportedProgram:
    """A program from a file: what `jax.export` serialized, or a StableHLO module (text, bytecode, portable artifact).

    `source` is a path, or the contents of a file as bytes. Nothing is compiled, and no device is needed.

    What is refused, with its reason: sizes that are variables, effects that need an order (printing), programs for
    several replicas; and before compiling, calls of Python, and of functions that neither the plugin nor LAPACK has.

    Raises UnimplementedError for what is refused, DataLossError for a damaged file, NotFoundError.

    The module here was written by module_text(). In JAX, `jax.export.export(jax.jit(f))(x).serialize()` makes such
    bytes.

        >>> module = ms.module_text(lambda x: x * 2, ms.ones(3))
        >>> program = ms.load_program(module.encode())
        >>> program(ms.ones(3))[0].tolist()  # the module returns a tuple of one result
        [2.0, 2.0, 2.0]
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return ImportedProgram(_meshard.load_program_from_bytes(bytes(source)))
    return ImportedProgram(_meshard.load_program(os.fspath(source)))
