"""Batches that are on their devices before the step that uses them."""

import atexit
import dataclasses
import queue
import threading
import weakref

import numpy

from . import _meshard
from ._foreign_arrays import tensor_of
from ._marking import mark_sharding

__all__ = ["loader", "Loader"]

_END = object()
_running = {}  # the threads that fill queues, and what stops them


def _as_tensors(batch):
    """The batch with a tensor for each array of another library, such as PyTorch."""
    if isinstance(batch, (_meshard.Tensor, numpy.ndarray, numpy.generic)):
        return batch
    if isinstance(batch, dict):
        return {key: _as_tensors(value) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*[_as_tensors(value) for value in batch])
    if isinstance(batch, (list, tuple)):
        return type(batch)([_as_tensors(value) for value in batch])
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        return dataclasses.replace(batch, **{field.name: _as_tensors(getattr(batch, field.name))
                                             for field in dataclasses.fields(batch)})
    return tensor_of(batch, copy=None) if _meshard.is_foreign_array(batch) else batch


def _put(items, stopped, item):
    while not stopped.is_set():
        try:
            items.put(item, timeout=0.1)
            return
        except queue.Full:
            pass


def _fill(source, where, items, stopped):
    """Runs in a thread, which must not refer to the iterator: dropping that ends it."""
    try:
        for batch in source:
            placed = mark_sharding(_as_tensors(batch), *where)
            _put(items, stopped, (placed, None))
            if stopped.is_set():
                return
            del batch, placed
        _put(items, stopped, (_END, None))
    except BaseException as error:  # noqa: BLE001 (raised again in the thread that takes the batches)
        _put(items, stopped, (_END, error))
    finally:
        _running.pop(threading.current_thread(), None)


def _stop_all():
    """Before the interpreter ends: no thread may then be inside the library."""
    threads = list(_running.items())
    for _, stopped in threads:
        stopped.set()
    for thread, _ in threads:
        thread.join(5)


atexit.register(_stop_all)


class _Batches:
    """The batches of one pass."""

    def __init__(self, source, where, prefetch):
        self._items = queue.Queue(prefetch)
        self._stopped = threading.Event()
        self._is_done = False
        weakref.finalize(self, self._stopped.set)
        thread = threading.Thread(target=_fill, args=(iter(source), where, self._items, self._stopped), daemon=True,
                                  name="meshard loader")
        _running[thread] = self._stopped
        thread.start()

    def __iter__(self):
        return self

    def __next__(self):
        if self._is_done:
            raise StopIteration
        batch, error = self._items.get()
        if batch is not _END:
            return batch
        self._is_done = True
        if error is not None:
            raise error
        raise StopIteration

    def close(self):
        """Ends the pass early. The source may still be asked for one batch."""
        self._is_done = True
        self._stopped.set()


class Loader:
    """Batches of an iterable, placed in advance. Made by loader()."""

    def __init__(self, source, where, prefetch):
        if prefetch < 1:
            raise ValueError(f"prefetch must be at least 1, not {prefetch}")
        self._source, self._where, self._prefetch = source, where, prefetch

    def __iter__(self):
        return _Batches(self._source, self._where, self._prefetch)

    def __len__(self):
        return len(self._source)

    def __length_hint__(self):
        hint = getattr(self._source, "__length_hint__", None)
        return NotImplemented if hint is None else hint()


def loader(source, *where, prefetch=2):
    """Batches of an iterable, each placed on its devices while the step before it runs.

        for batch in meshard.data.loader(batches, mesh, {"tokens": P("data"), "mask": P("data")}):
            params = step(params, batch)

    `source` yields structures of arrays (NumPy's, tensors, or PyTorch's and others by DLPack), and `where` is as in
    mark_sharding: a mesh and specs by name or for all, or Shardings. A thread takes batches from `source` and places up
    to `prefetch` of them in advance. Each loop over the loader is a pass over `source`. It has a length if the source
    has one, so that tqdm knows it. What the source or the placement raises is raised by the loop, after the batches
    before it; leaving the loop ends the thread.

        >>> mesh = ms.Mesh({"data": 2})
        >>> batches = [np.ones((4, 2), np.float32) for _ in range(3)]
        >>> [batch.sharding.spec for batch in ms.data.loader(batches, mesh, ms.P("data"))][0]
        P('data', None)

    Raises ValueError for a `prefetch` below 1.
    """
    return Loader(source, where, prefetch)
