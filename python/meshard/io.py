"""Files: checkpoints of structures, safetensors (also of Hugging Face), and npy.

    io.save("step.safetensors", {"params": params, "step": step})
    state = io.restore("step.safetensors", like={"params": params, "step": 0})
    weights = io.load("model-folder", {"*.q_proj.weight": (mesh, P("model", None))})
    weights = io.load("model-folder", rules=[io.LoadRule("model.layers.*.mlp.up_proj.weight", "blocks.*.up",
                                                         transpose=(1, 0), dtype="bfloat16"), ...])
"""

import dataclasses
import os
import typing

from . import _meshard, tree
from ._array_api.creation import as_tensor

__all__ = ["save", "save_async", "has_checkpoint", "restore", "load", "LoadRule", "Weights", "Saving", "names",
           "Publisher", "receive", "load_npy", "save_npy"]

Saving = _meshard.Saving
Weights = _meshard.Weights
Weights.__module__ = __name__
Weights.__doc__ = """The tensors of a model or a checkpoint, in one safetensors file or several, which are read on use.

`Weights(path)` opens a safetensors file, an index (`*.index.json`), or a folder with `model.safetensors` or
`model.safetensors.index.json`, and reads only the headers. `weights[name]` is a tensor on the host, in the memory of
the mapped file; `weights.tensor(name, sharding)` is one on the devices of a mesh.
"""

_METADATA = {"format": "meshard"}
_NUMBERS = (bool, int, float, complex)


def names(structure):
    """The names that the tensors of a structure have in a checkpoint, in the order of its leaves.

    A name is the path of the tensor: keys, indices and field names, separated by dots, as in `params.blocks.2.wq`. A
    tensor of an nn.Layers has a name for each layer, as if the layers were a list.

    >>> ms.io.names({"params": {"w": ms.ones(2)}, "losses": [ms.zeros(()), ms.zeros(())]})
    ['losses.0', 'losses.1', 'params.w']
    """
    leaves, around = tree.flatten(structure)
    return [name for path, leaf in zip(around.paths, leaves) for name in _meshard.checkpoint_names(path, leaf.shape)]


def _check_constants(around):
    """Raises TypeError for what is neither a tensor nor a number: a checkpoint cannot hold it."""
    if found := _meshard.tree_constants(around):
        listed = ", ".join(f"{path or 'the value itself'}, which is {value!r}" for path, value in found[:8])
        raise TypeError(f"a checkpoint holds tensors and numbers, not {listed}: leave it out, put texts into metadata=, "
                        'or make it a field with metadata={"static": True}')


def _flattened(structure):
    """The paths and the tensors of what is saved."""
    leaves, around = tree.flatten(structure)
    _check_constants(around)
    found = [name for path, leaf in zip(around.paths, leaves) for name in _meshard.checkpoint_names(path, leaf.shape)]
    if len(set(found)) != len(found):
        twice = next(name for name in found if found.count(name) > 1)
        raise ValueError(f"two tensors would both have the name {twice!r}")
    return around.paths, leaves


def save(path, structure, *, metadata=None, this_process_only=False):
    """Writes the tensors and numbers of a structure, atomically replacing what is at `path`.

    A dict of tensors keeps its keys as names; see names(). Recorded values are computed first, in one program. One
    process writes one safetensors file (`path`, or `model.safetensors` in a folder), each shard directly from its
    device. In a run of several processes all call this at the same place: each writes the shards of its devices, and an
    index names the files. With `this_process_only` this process alone writes values that it has as a whole. `metadata`
    is a dict of strings for the file.

    Raises TypeError for what is neither a tensor, an array nor a number, unless it is a static field.

    >>> ms.io.save("step.safetensors", {"w": ms.ones((2, 3)), "step": 7})
    >>> ms.io.restore("step.safetensors", like={"w": ms.zeros((2, 3)), "step": 0})["step"]
    7
    """
    _meshard.save_tensors(os.fspath(path), *_flattened(structure), {**_METADATA, **(metadata or {})}, this_process_only)


def save_async(path, structure, *, metadata=None, this_process_only=False):
    """As save(), in the background: returns a Saving as soon as the values are computed and copied to host memory.

    The tensors may be donated then. The end of the process waits for it.

    >>> saving = ms.io.save_async("step.safetensors", {"w": ms.ones((2, 3))})
    >>> saving.wait()
    """
    return _meshard.save_tensors_async(os.fspath(path), *_flattened(structure), {**_METADATA, **(metadata or {})},
                                       this_process_only)


def has_checkpoint(path):
    """Whether there is a checkpoint or a model at `path`, so that a program can resume. It need not be intact.

    >>> ms.io.has_checkpoint("nowhere.safetensors")
    False
    >>> ms.io.save("step.safetensors", {"step": 7})
    >>> ms.io.has_checkpoint("step.safetensors")
    True
    """
    return _meshard.has_checkpoint(os.fspath(path))


@dataclasses.dataclass(frozen=True)
class LoadRule:
    """How tensors of a file become tensors of a model: renamed, transposed, converted, joined and split.

    `source` is a pattern of names, or a list of it and the names of tensors to join with; `target` is the new name, a
    list of names into which the (joined) tensor is split, or an empty list to leave tensors out. In the pattern `*`
    matches any text, as short as possible, and nothing else is special. In all other names, each `*` is the text that
    the `*` at the same position of the pattern matched, and `{2}` the one of the second `*`.

    Axis d of a new tensor is axis `transpose[d]` of the file's. `axis` is that of the new tensors along which they are
    joined and split; `sizes` are those of the parts (by default equal). With `groups`, the axis consists of so many
    groups, and each of them has all parts, with `sizes` in each group: the heads of a fused projection that has the
    query, key and value of a head beside each other. `dtype` converts the elements.

        LoadRule(["model.layers.*.self_attn.q_proj.weight", "model.layers.*.self_attn.k_proj.weight"],
                 "blocks.*.wqk", transpose=(1, 0), axis=1, dtype="bfloat16")
    """

    source: str | typing.Sequence[str]
    target: str | typing.Sequence[str]
    _: dataclasses.KW_ONLY
    transpose: typing.Sequence[int] = ()
    axis: int = 0
    sizes: typing.Sequence[int] = ()
    groups: int = 1
    dtype: typing.Any = None

    def _bound(self):
        source, target = ([names] if isinstance(names, str) else list(names) for names in (self.source, self.target))
        return source, target, list(self.transpose), self.axis, list(self.sizes), self.groups, self.dtype


def _opened(path, rules, strict):
    weights = Weights(os.fspath(path))
    return weights if rules is None else weights._mapped([rule._bound() for rule in rules], strict)


def restore(path, like, *, rules=None, strict=True):
    """A structure like `like` with the values of a checkpoint.

    Each tensor of `like` (an old value, or abstract_tensor()) gives the type, and by its sharding the placement: each
    device's bytes are read once, and only these. Tensors without a sharding stay on the host; numbers of Python are
    restored as numbers, arrays of other libraries as tensors. Static fields are those of `like`. The checkpoint may
    come from any number of processes. With `strict=False`, other tensors in it are ignored. With `rules`, a list of
    LoadRule, the tensors are those that the rules make of the file's, as in load().

    Raises NotFoundError for members that the checkpoint lacks and for tensors that have no member, and
    InvalidArgumentError for members of another type, all at once with their names and the path; TypeError for what is
    neither a tensor, an array nor a number, unless it is a static field.

    >>> mesh = ms.Mesh({"x": 2})
    >>> ms.io.save("w.safetensors", {"w": ms.ones((4, 3))})
    >>> like = {"w": ms.abstract_tensor((4, 3), "float32", mesh, ms.P("x"))}
    >>> ms.io.restore("w.safetensors", like)["w"].sharding.spec
    P('x', None)
    """
    return _restored(_opened(path, rules, strict), like, strict)


def _restored(weights, like, strict):
    leaves, around = tree.flatten(like)
    _check_constants(around)
    weights._check_members(around.paths, leaves, strict)
    originals = _meshard.tree_values(like)
    values = []
    for path, leaf, original in zip(around.paths, leaves, originals, strict=True):
        value = weights._restored(path, leaf)
        values.append(type(original)(value.item()) if isinstance(original, _NUMBERS) else value)
    return around.unflatten(values)


def load(path, shardings=None, *, rules=None, strict=True):
    """All tensors of a model or checkpoint as a dict by name.

    `shardings` says where tensors go: a dict from a pattern of names, in which `*` matches any text and nothing else is
    special, to a Sharding or a pair (mesh, spec). The first pattern that matches a name applies; other tensors stay on
    the host. The names are those of the file, such as Hugging Face's `model.layers.0.self_attn.q_proj.weight`.

    With `rules`, a list of LoadRule, the tensors are those that the rules make of the file's, under the new names, and
    only the bytes that are needed are read. The first rule with a pattern that matches a tensor applies; names that stay
    the same are written as `LoadRule("*", "*")`.

    Raises NotFoundError, with the nearest names, for a pattern that matches no name; with `strict=False` it is ignored.
    Raises InvalidArgumentError for what does not fit the rules, all at once with the path: patterns that match nothing
    and tensors that no rule takes (both ignored with `strict=False`), tensors to join that are missing, shapes that
    cannot be joined, split or transposed, two tensors of one name, and conversions of dtypes that are read as bytes.

    >>> ms.io.save("model.safetensors", {"layers": [{"weight": ms.ones((4, 3))}]})
    >>> found = ms.io.load("model.safetensors", {"*.weight": (ms.Mesh({"x": 2}), ms.P("x"))})
    >>> list(found), found["layers.0.weight"].shape
    (['layers.0.weight'], (4, 3))
    """
    patterns = []
    for pattern, where in (shardings or {}).items():
        mesh, spec = where if isinstance(where, tuple) else (where.mesh, where.spec)
        patterns.append((pattern, mesh, spec))
    return _opened(path, rules, strict)._load(patterns, strict)


class Publisher:
    """Publishes versions of tensors to other programs, without files.

    All processes of a run make one and publish with it, at the same places of their programs; those of other programs
    receive() onto meshes of their own. Process 0 listens at `address`: `host:port`, of its machine (`host:0`: any free
    port), or the path of a Unix socket, if both programs run on one machine. The other processes listen at free ports.
    `secret` has at least 16 characters and is the same in both programs (empty: MESHARD_PUBLISH_SECRET); a Unix socket
    needs none. close(), or the end of a `with` block, stops publishing.

    Raises InvalidArgumentError for an invalid address or a short secret, AlreadyExistsError if another program listens.

    >>> with ms.io.Publisher("127.0.0.1:0", secret="0123456789abcdef") as publisher:
    ...     _ = publisher.publish({"w": ms.ones((4, 3))})
    ...     like = {"w": ms.abstract_tensor((4, 3), "float32", ms.Mesh({"x": 2}), ms.P("x"))}
    ...     got, version = ms.io.receive(publisher.address, like, secret="0123456789abcdef")
    >>> got["w"].sharding.spec, version
    (P('x', None), 0)
    """

    def __init__(self, address, *, secret=""):
        self._publisher = _meshard._Publisher(os.fspath(address), secret)
        self._address = self._publisher.address

    @property
    def address(self):
        """Where process 0 listens: `10.0.0.1:7070`."""
        return self._address

    @property
    def num_receivers(self):
        """How many programs are receiving now, as process 0 sees them; 0 in the others.

        One that dies is no longer counted, and the next publish() frees what was kept for it.
        """
        return self._open().num_receivers

    def publish(self, structure, version=None):
        """Publishes the tensors and numbers of a structure under their names(), and returns the version.

        `version` is greater than the one before and at least 0; None: the one before plus 1, beginning with 0.
        Recorded values are computed, and what this process sends is copied to host memory, so that the tensors may be
        donated afterward. Receivers see the version when all processes have it, and nothing waits for them. Earlier
        versions are forgotten, except for those that are being received; these are kept until a later publish().

        Raises InvalidArgumentError for a version that is not greater, FailedPreconditionError for a donated tensor or
        if the processes publish different tensors, and TypeError for what is neither a tensor, an array nor a number.
        The versions before remain then.
        """
        return self._open().publish(*_flattened(structure), version)

    def close(self):
        """Stops publishing. Programs that are receiving get an error."""
        self._publisher = None

    def _open(self):
        if self._publisher is None:
            raise ValueError("the publisher is closed")
        return self._publisher

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def receive(address, like, *, secret="", newer_than=None, seconds=60.0, strict=True):
    """The newest version that a Publisher has, as (a structure like `like`, its number).

    Each tensor of `like` (an old value, or abstract_tensor()) gives the type, and by its sharding the placement, as for
    restore(). Each process receives only what its own devices need, in any layout. All processes of the run call this
    and get the same version, whole, whatever is published meanwhile. `newer_than` waits for a greater version.
    `seconds` is how long to wait until the publisher listens and has such a version. With `strict=False`, published
    tensors that have no member are ignored.

    Raises NotFoundError and InvalidArgumentError for members that differ, all at once, as restore();
    DeadlineExceededError or UnavailableError if there is no such version in time; UnavailableError within about 5 s if
    a process of the publisher dies or is suspended; Error for another secret. If it fails in one process, the others
    raise an error, too.
    """
    receiving = _meshard._Receiving(os.fspath(address), secret, newer_than, seconds)
    try:
        value = _restored(receiving.weights, like, strict)
    except Exception as error:
        receiving.finish(str(error))
        raise
    receiving.finish(None)
    return value, receiving.version


def load_npy(path):
    """The array of a .npy file, in the memory of the mapped file.

    >>> ms.io.save_npy("x.npy", ms.arange(3))
    >>> ms.io.load_npy("x.npy").tolist()
    [0, 1, 2]
    """
    return _meshard.load_npy(os.fspath(path))


def save_npy(path, x):
    """Writes a .npy file, atomically replacing the one at `path`. Raises UnimplementedError for bf16 and f8.

    >>> ms.io.save_npy("x.npy", ms.arange(3))
    >>> np.load("x.npy").tolist()
    [0, 1, 2]
    """
    _meshard.save_npy(os.fspath(path), as_tensor(x))
