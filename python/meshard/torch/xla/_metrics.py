"""torch_xla.debug.metrics, from the counters of meshard's runtime."""

import collections

import meshard as ms

from ..eager._tensors import DeviceTensor

_counts = collections.Counter()
_before = {"counters": ms.runtime_counters(), "metrics": ms.runtime_counters()}

_COUNTERS = {"CreateDataHandles": "buffers_sent", "UncachedCompile": "compiles", "CachedCompile": "cache_hits",
             "ExecuteReplicated": "launches"}
"""From torch_xla's counters to those of the runtime."""

_METRICS = {"TransferToDeviceTime": ("buffers_sent", None), "OutboundData": ("buffers_sent", "bytes_sent"),
            "TransferFromDeviceTime": ("buffers_read", None), "InboundData": ("buffers_read", "bytes_read"),
            "CompileTime": ("compiles", None), "ExecuteReplicatedTime": ("launches", None),
            "InputOutputAliasCount": ("compiles", None)}
"""From torch_xla's metrics to the runtime's numbers of samples, and to their sums."""


def count(name):
    """Counts an event of this package."""
    _counts[name] += 1


def count_reads():
    """From now on, counts the tensors that are read from several devices."""
    read = DeviceTensor.host

    def host(tensor):
        made = read(tensor)
        held = tensor.value.stored_sharding
        if held is not None and held.mesh.size > 1:
            count("ReplicateShardedData")
        return made

    DeviceTensor.host = host


def _since(kind):
    return ms.runtime_counters() - _before[kind]


def counter_names():
    since = _since("counters")
    return [*(name for name, field in _COUNTERS.items() if getattr(since, field)), *_counts]


def counter_value(name):
    """The value of a counter; None if nothing was counted."""
    if name in _COUNTERS:
        return getattr(_since("counters"), _COUNTERS[name]) or None
    return _counts.get(name)


def clear_counters():
    _counts.clear()
    _before["counters"] = ms.runtime_counters()


def metric_names():
    since = _since("metrics")
    return [name for name, (field, _) in _METRICS.items() if getattr(since, field)]


def metric_data(name):
    """(samples, sum of the samples, ()); None without samples.

    Sums that are not measured are None: times, for which meshard.start_trace() exists, and the number of aliased
    buffers, where each compiled program is a sample.
    """
    if name not in _METRICS:
        return None
    samples, total = _METRICS[name]
    since = _since("metrics")
    if not getattr(since, samples):
        return None
    return getattr(since, samples), total and float(getattr(since, total)), ()


def clear_metrics():
    _before["metrics"] = ms.runtime_counters()


def clear_all():
    clear_metrics()
    clear_counters()


def metrics_report():
    lines = [str(_since("metrics"))]
    lines += [f"Counter: {name}\n  Value: {counter_value(name)}" for name in counter_names()]
    return "\n".join(lines)


def short_metrics_report(counter_names=None, metric_names=None):
    wanted = counter_names or ["CachedCompile", "MarkStep"]
    lines = [f"Counter: {name}\n  Value: {counter_value(name)}" for name in wanted if counter_value(name)]
    for name in metric_names or ["CompileTime", "ExecuteReplicatedTime", "TransferToDeviceTime"]:
        if (data := metric_data(name)) is not None:
            lines.append(f"Metric: {name}\n  TotalSamples: {data[0]}")
    return "\n".join(lines)


def executed_fallback_ops():
    """Always []: no operation silently runs on the host."""
    return []
