"""Devices, counters, waiting, transfers, the loader, traces and processes."""

import collections
import gc
import io
import json
import re
import threading
import time

import numpy as np
import pytest

import meshard as ms
from meshard import P, _meshard

ops = _meshard.ops
MESH = ms.Mesh({"x": 4})
DATA = np.arange(32, dtype=np.float32).reshape(8, 4)


def slow(seconds):
    """A jitted function of a value on several devices that takes this long."""

    def wait(x):
        time.sleep(seconds)
        return x

    return ms.jit(lambda x: ms.pure_callback(wait, x, x) + 1)


# --- devices -------------------------------------------------------------------------------------


def test_devices():
    all_devices = ms.devices()
    assert [d.id for d in all_devices] == list(range(len(all_devices))) and len(all_devices) >= 4
    first = all_devices[0]
    assert first.platform == "cpu" and first.kind == "cpu" and first.process == 0 and first.is_local
    assert first == ms.devices(local=True)[0] and first != all_devices[1] and len({*all_devices, *ms.devices()}) == len(
        all_devices)
    assert repr(first) == 'Device(0, "cpu")' and isinstance(first.attributes, dict)
    assert ms.platforms()[0] == "cpu" and isinstance(ms.platform_version(), str)
    with pytest.raises(ms.NotFoundError):
        ms.devices("no_such_platform")


def test_check_devices():
    ms.check_devices(MESH)
    with pytest.raises(ms.NotFoundError, match="4096"):
        ms.check_devices(ms.Mesh({"x": 4096}))


def test_configuration_comes_before_the_start():
    ms.devices()
    with pytest.raises(ms.FailedPreconditionError):
        ms.configure_runtime(cpu_devices=2)
    with pytest.raises(ms.InvalidArgumentError):
        ms.configure_runtime(log="loud")
    platform = ms.PlatformOptions("cuda", cpu_devices=2, client_options={"a": 1, "b": True, "c": [1, 2], "d": "text"})
    with pytest.raises(ms.FailedPreconditionError):
        ms.configure_runtime(platforms=[platform])


def test_log_level():
    before = ms.log_level()
    assert before in ("off", "error", "warning", "info")
    ms.set_log_level("off")
    assert ms.log_level() == "off"
    ms.set_log_level(before)
    with pytest.raises(ms.InvalidArgumentError):
        ms.set_log_level("loud")


# --- counters and memory -------------------------------------------------------------------------


def test_counters_say_what_happened():
    before = ms.runtime_counters()
    y = ms.mark_sharding(DATA, MESH, P("x"))
    placed = ms.runtime_counters() - before
    assert placed.buffers_sent == 4 and placed.bytes_sent == DATA.nbytes and placed.launches == 0
    f = ms.jit(lambda x: x * 3 - 1)
    f(y).numpy()
    once = ms.runtime_counters()
    assert (once - before).launches == 1 and (once - before).bytes_read == DATA.nbytes
    f(y).numpy()
    again = ms.runtime_counters() - once
    assert again.launches == 1 and again.compiles == 0 and again == again and again != placed
    assert "launched" in repr(again) and "nothing happened" in repr(once - once)


def test_counters_are_reset():
    (ms.from_dlpack(DATA) + 1).numpy()
    assert ms.runtime_counters().launches > 0
    ms.reset_runtime_counters()
    assert ms.runtime_counters().launches == 0


def test_memory_stats():
    gc.collect()
    ms.sync()
    before = ms.memory_stats(1).live_bytes
    x = ms.mark_sharding(np.zeros((4, 1024), np.float32), MESH, P("x"))
    ms.sync(x)
    stats = ms.memory_stats(1)
    assert stats.device == 1 and stats.live_bytes - before == 4096 <= stats.peak_live_bytes
    assert stats.bytes_limit is None and "device 1" in repr(stats)
    assert [s.device for s in ms.memory_stats(MESH)] == [0, 1, 2, 3]
    assert ms.devices()[1].memory_stats().live_bytes == stats.live_bytes
    with pytest.raises(ms.NotFoundError):
        ms.memory_stats(4096)


# --- waiting and moving --------------------------------------------------------------------------


def test_sync_waits_for_structures():
    done = []
    x = ms.mark_sharding(DATA, MESH, P())

    def wait(v):
        time.sleep(0.2)
        done.append(1)
        return v

    f = ms.jit(lambda x: ms.pure_callback(wait, x, x))
    y = f(x)
    assert y.block_until_ready() is y and len(done) == 4
    ms.sync({"a": [f(x), None], "b": x * 2}, x)
    assert len(done) == 8
    y = f(x)
    ms.sync()
    assert len(done) == 12


def test_compute_starts_without_waiting():
    x = ms.from_dlpack(DATA) * 2
    assert x.is_recorded
    ms.compute([x])
    assert not x.is_recorded


def test_errors_of_a_wait():
    with pytest.raises(ms.FailedPreconditionError):
        ms.jit(lambda x: x.block_until_ready())(DATA)
    x = ms.mark_sharding(DATA, MESH, P("x"))
    ms.sync(ms.jit(lambda v: v + 1, donate_argnums=0)(x))
    with pytest.raises(ms.FailedPreconditionError, match="donated"):
        x.block_until_ready()


def test_transfer_to_other_devices():
    x = ms.from_dlpack(DATA) * 2
    other = ms.Mesh({"a": 2})
    y = ms.transfer(x, other, P("a"))
    assert y.stored_sharding == ms.Sharding(other, P("a", None)) and len(y.local_shards()) == 2
    z = ms.device_put(y, ms.Sharding(MESH, P(None, "x")))
    np.testing.assert_array_equal(z.numpy(), DATA * 2)
    before = ms.runtime_counters()
    ms.sync(ms.transfer(y, ms.Sharding(other, P())))
    assert (ms.runtime_counters() - before).bytes_read == 0
    with pytest.raises(ms.FailedPreconditionError):
        ms.jit(lambda v: ms.transfer(v, other, P("a")))(DATA)


def test_transfer_of_structures():
    other = ms.Mesh({"a": 2, "b": 2})
    moved = ms.transfer({"w": DATA, "b": [ms.asarray(DATA), None]}, other,
                        {"w": P("a"), "b": [ms.Replicate(), ms.Shard(0)]})
    assert moved["w"].sharding == ms.Sharding(other, P("a", None))
    assert moved["b"][0].sharding == ms.Sharding(other, P("b", None)) and moved["b"][1] is None
    spec = ms.ShardingSpec(other, P("a"))
    assert ms.transfer(ms.asarray(DATA), spec).sharding == ms.Sharding(other, P("a", None))
    with pytest.raises(ms.Error, match='no axis "q"') as raised:
        ms.transfer([DATA, DATA], other, [P("a"), P("q")])
    assert raised.value.__notes__ == ["while moving [1]"]


def test_gather_in_one_process():
    x = ms.mark_sharding(DATA, MESH, P("x"))
    np.testing.assert_array_equal(ms.gather_to_all(x), DATA)
    np.testing.assert_array_equal(ms.gather_to(x, 0), DATA)
    with pytest.raises(ms.InvalidArgumentError):
        ms.gather_to(x, 1)


def test_nan_checks_name_the_line():
    f = ms.jit(lambda x: ops.sum(ops.log(x - 1)))
    assert not ms.checks_nans()
    with ms.check_nans():
        with pytest.raises(ms.OutOfRangeError, match="test_runtime.py.*log"):
            f(np.zeros(2, np.float32))
        assert f(np.full(2, 2, np.float32)).item() == 0
    assert not ms.checks_nans()
    assert np.isnan(f(np.zeros(2, np.float32)).item())


def test_restart_keeps_values():
    x = ms.mark_sharding(DATA, MESH, P("x")) * 2
    ms.sync(x)
    recorded = x + 1
    ms.restart_runtime()
    np.testing.assert_array_equal(recorded.numpy(), DATA * 2 + 1)
    np.testing.assert_array_equal(x.numpy(), DATA * 2)


# --- the loader ----------------------------------------------------------------------------------


class Batches:
    """An iterable with a length that records what was asked for."""

    def __init__(self, count):
        self.count, self.asked = count, 0

    def __len__(self):
        return self.count

    def __iter__(self):
        for i in range(self.count):
            self.asked += 1
            yield {"x": np.full((8, 2), i, np.float32), "y": np.full(8, 10 * i, np.int32)}


def test_loader_places_batches_by_name():
    source = Batches(5)
    loader = ms.data.loader(source, MESH, {"x": P("x", None), "y": P()})
    assert len(loader) == 5
    for _ in range(2):  # passes
        batches = list(loader)
        assert [b["x"].numpy()[0, 0] for b in batches] == [0, 1, 2, 3, 4]
        assert batches[0]["x"].sharding == ms.Sharding(MESH, P("x", None))
        assert batches[0]["y"].sharding == ms.Sharding(MESH, P(None))
    assert source.asked == 10


def test_loader_works_in_advance_but_not_too_far():
    source = Batches(20)
    batches = iter(ms.data.loader(source, MESH, P("x"), prefetch=3))
    next(batches)
    deadline = time.time() + 20
    while source.asked < 5 and time.time() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)
    assert source.asked == 5  # one taken, three in the queue, one that waits for a place
    with pytest.raises(ValueError, match="prefetch"):
        ms.data.loader(source, MESH, P(), prefetch=0)


def test_loader_ends_when_it_is_dropped_or_closed():
    def running():
        return [t for t in threading.enumerate() if t.name == "meshard loader"]

    for end in [lambda batches: None, lambda batches: batches.close()]:
        batches = iter(ms.data.loader(Batches(100), MESH, P("x")))
        next(batches)
        end(batches)
        del batches
        gc.collect()
        deadline = time.time() + 20
        while running() and time.time() < deadline:
            time.sleep(0.02)
        assert not running()


def test_loader_raises_after_the_batches_before():
    def source():
        yield np.zeros(4, np.float32)
        raise OSError("the file ended")

    batches = iter(ms.data.loader(source(), MESH, P("x")))
    next(batches)
    with pytest.raises(OSError, match="the file ended"):
        next(batches)
    with pytest.raises(StopIteration):
        next(batches)
    with pytest.raises(ms.Error, match='no axis "q"'):
        list(ms.data.loader([np.zeros(4, np.float32)], MESH, P("q")))


Sample = collections.namedtuple("Sample", "image label")


def test_loader_structures_and_shardings():
    source = [Sample(np.ones((4, 2), np.float32), [np.arange(4)])]
    (batch,) = ms.data.loader(source, Sample(ms.Sharding(MESH, P("x")), [None]))
    assert isinstance(batch, Sample) and batch.image.sharding == ms.Sharding(MESH, P("x", None))
    assert batch.label[0].sharding is None


def test_loader_of_pytorch():
    torch = pytest.importorskip("torch")
    dataset = torch.utils.data.TensorDataset(torch.arange(16.0), torch.arange(16))
    loader = ms.data.loader(torch.utils.data.DataLoader(dataset, batch_size=8), MESH, P("x"))
    assert len(loader) == 2
    values = [(b[0].numpy().tolist(), b[1].numpy().tolist()) for b in loader]
    assert values == [(list(range(8)), list(range(8))), (list(range(8, 16)), list(range(8, 16)))]


def test_loader_and_tqdm():
    tqdm = pytest.importorskip("tqdm")
    bar = tqdm.tqdm(ms.data.loader(Batches(3), MESH, P("x")), disable=True)
    assert len(bar) == 3 and sum(1 for _ in bar) == 3


# --- compiles ------------------------------------------------------------------------------------


@pytest.fixture
def no_progress():
    yield
    ms.set_compile_progress(None)


def test_compiles_are_shown(no_progress):
    steps = []
    ms.set_compile_progress(steps.append)
    x = ms.mark_sharding(DATA, MESH, P("x"))
    f = ms.jit(lambda x: x * 11 + 3, name="shown")
    f(x)
    f(x)
    assert steps[0] == 'compiling "shown"' and re.fullmatch(r'compiled "shown" in \d+\.\d s', steps[-1])
    assert all(re.fullmatch(r'compiling "shown", \d+ s', step) for step in steps[1:-1])
    count = len(steps)
    ms.set_compile_progress(False)
    ms.jit(lambda x: x * 12 + 3)(x)
    assert len(steps) == count


def test_compiles_are_shown_in_a_line(no_progress, capsys):
    ms.set_compile_progress(True)
    ms.jit(lambda x: x * 13 + 3, name="lined")(ms.mark_sharding(DATA, MESH, P("x")))
    text = capsys.readouterr().err
    assert text.startswith('\rcompiling "lined"') and text.endswith(" \r")


def test_compiles_in_the_bar_of_tqdm(no_progress):
    tqdm = pytest.importorskip("tqdm")
    file = io.StringIO()
    with tqdm.tqdm(total=1, file=file) as bar:
        ms.set_compile_progress(bar.set_postfix_str)
        ms.jit(lambda x: x * 14 + 3, name="barred")(ms.mark_sharding(DATA, MESH, P("x")))
    assert 'compiling "barred"' in file.getvalue()


def test_an_error_while_a_compile_is_shown_ends_the_call(no_progress):
    def fail(step):
        raise KeyError(step)

    f = ms.jit(lambda x: x * 15 + 3, name="failing")
    x = ms.mark_sharding(DATA, MESH, P("x"))
    ms.set_compile_progress(fail)
    with pytest.raises(KeyError, match="failing"):
        f(x)
    ms.set_compile_progress(None)
    np.testing.assert_array_equal(f(x).numpy(), DATA * 15 + 3)
    with pytest.raises(TypeError, match="progress must be"):
        ms.set_compile_progress(3)


def test_other_threads_show_their_compiles(no_progress):
    steps = []
    ms.set_compile_progress(steps.append)
    x = ms.mark_sharding(DATA, MESH, P("x"))
    thread = threading.Thread(target=lambda: ms.jit(lambda x: x * 16 + 3, name="thread")(x).numpy())
    thread.start()
    thread.join()
    assert steps[0] == 'compiling "thread"' and steps[-1].startswith('compiled "thread" in ')


# --- traces --------------------------------------------------------------------------------------


def test_traces(tmp_path):
    x = ms.mark_sharding(DATA, MESH, P("x"))
    f = ms.jit(lambda x: x * 5 + 2, name="traced_program")
    with ms.start_trace() as trace:
        with pytest.raises(ms.FailedPreconditionError):
            ms.start_trace()
        f(x).block_until_ready()
    events = trace.events()
    executed = [e for e in events if e.category == "execute"]
    assert sorted(e.number for e in executed) == [0, 1, 2, 3]
    assert {e.track for e in executed} == {"device"} and {e.what for e in executed} == {"traced_program"}
    assert any(e.category in ("compile", "load") and "test_runtime.py" in e.place for e in events)
    assert trace.left_out() == 0 and all(e.duration >= 0 for e in events)
    trace.write(str(tmp_path / "trace.json"))
    written = json.loads((tmp_path / "trace.json").read_text())
    assert any(e.get("name", "").startswith("traced_program") or "traced_program" in json.dumps(e)
               for e in written["traceEvents"])
    with ms.start_trace(most_events=1) as short:
        f(x).block_until_ready()
    assert len(short.events()) == 1 and short.left_out() > 0


# --- one process ---------------------------------------------------------------------------------


def test_one_process():
    run = ms.processes()
    assert (run.process_index, run.rank, run.size) == (0, 0, 1) and len(run.members) == 1 and run.members[0].rank == 0
    assert repr(run) == "process 0 of 1"
    run.barrier("here", seconds=5)
    run.put("key", b"\x00\xff")
    assert run.get("key") == b"\x00\xff" and run.try_get("another key") is None
    run.put("text", "gr\u00fc\u00dfe")
    assert run.get("text").decode() == "gr\u00fc\u00dfe"
    run.publish("same", "1")
    run.publish("same", "1")
    with pytest.raises(ms.AlreadyExistsError):
        run.publish("same", "2")
    with pytest.raises(ms.DeadlineExceededError):
        run.get("nobody puts this", seconds=0.1)
    with pytest.raises(TypeError):
        run.put("key", 3)


def test_options_of_processes():
    with pytest.raises(ms.InvalidArgumentError):
        ms.initialize_processes(address="/tmp/socket", rank=3, count=2)
