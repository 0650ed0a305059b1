"""Interrupted waits, ends of the interpreter, forks, and runs of several processes, each in a process of its own."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import textwrap

import pytest

import meshard as ms
from meshard import _meshard

ROOT = pathlib.Path(__file__).resolve().parents[2]

BEGIN = """
import gc, os, signal, sys, threading, time
import numpy as np
import meshard as ms
from meshard import P, _meshard
ops = _meshard.ops
mesh = ms.Mesh({"x": 4})
x = ms.mark_sharding(np.arange(8, dtype=np.float32), mesh, P("x"))
def wait_in_program(seconds):
    def wait(v):
        time.sleep(seconds)
        return v
    return ms.jit(lambda x: ms.pure_callback(wait, x, x) + 1)
"""


def environment(**variables):
    """That of this process, without what other tests set in it: JAX sets the log level of plugins."""
    return {**{name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}, **variables}


def command(program, *arguments):
    return [sys.executable, "-c", BEGIN + textwrap.dedent(program), *arguments]


def run(program, *arguments):
    """What a program prints, its errors and its status."""
    done = subprocess.run(command(program, *arguments), capture_output=True, text=True, timeout=120,
                          env=environment())
    return done.stdout, done.stderr, done.returncode


# --- Ctrl-C --------------------------------------------------------------------------------------


@pytest.mark.parametrize("wait", ["y.block_until_ready()", "y.numpy()", "ms.block_until_ready(y)", "ms.sync()", "float(ops.sum(y))",
                                  "np.from_dlpack(y)", "ms.gather_to_all(y)"])
def test_ctrl_c_ends_a_wait(wait):
    out, errors, status = run(f"""
        f = wait_in_program(2)
        ms.sync(x + 1)
        y = f(x)
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        begin = time.time()
        try:
            {wait}
            print("not interrupted")
        except KeyboardInterrupt:
            print("interrupted", time.time() - begin < 1.8)
        print((x * 2).numpy()[1], y.numpy()[1])   # the process is usable, and the value comes
        """)
    assert (out, errors, status) == ("interrupted True\n2.0 2.0\n", "", 0)


def test_ctrl_c_in_a_callback_of_the_main_thread():
    out, errors, status = run("""
        f = wait_in_program(5)
        one = ms.mark_sharding(np.float32(1), ms.Mesh({"x": 1}), P())
        threading.Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            f(one).numpy()
            print("not interrupted")
        except KeyboardInterrupt:
            print("interrupted")
        print((x * 2).numpy()[1])
        """)
    assert (out, errors, status) == ("interrupted\n2.0\n", "", 0)


def test_ctrl_c_ends_the_wait_for_a_batch():
    out, errors, status = run("""
        def source():
            time.sleep(2)
            yield np.zeros(4, np.float32)
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            next(iter(ms.data.loader(source(), mesh, P("x"))))
        except KeyboardInterrupt:
            print("interrupted")
        """)
    assert (out, errors, status) == ("interrupted\n", "", 0)


# A program whose compile takes seconds; another thread interrupts it as soon as it has begun.
COMPILE = """
        def long(v):
            for i in range(300):
                v = ops.sort(v @ v * (i + 0.5), 0)
            return v
        f, y = ms.jit(long), ms.asarray(np.ones((3, 3), np.float32))
        ms.sync(x + 1)
        steps, begun = [], threading.Event()
        def show(step):
            steps.append(step)
            begun.set()
        ms.set_compile_progress(show)
        def interrupt():
            begun.wait()
            time.sleep(0.2)  # `show` has returned, and the wait has begun
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        before = ms.runtime_counters()
        try:
            f(y)
            print("not interrupted")
        except KeyboardInterrupt:
            print("interrupted")
"""


def test_ctrl_c_ends_the_wait_for_a_compile():
    out, errors, status = run(COMPILE + """
        print(f(y).shape, (ms.runtime_counters() - before).compiles)  # the compile went on
        print(steps[0], steps[-1].startswith('compiled "long" in '))
        """)
    assert (out, errors, status) == ('interrupted\n(3, 3) 1\ncompiling "long" True\n', "", 0)


@pytest.mark.parametrize("end, status", [("", 0), ("sys.exit(3)", 3)])
def test_exit_during_a_compile_that_nobody_waits_for(end, status):
    assert run(COMPILE + f"        print('ends')\n        {end}\n") == ("interrupted\nends\n", "", status)


def test_other_handlers_run_during_a_wait():
    out, errors, status = run("""
        signal.signal(signal.SIGUSR1, lambda *_: print("handled"))
        y = wait_in_program(1)(x)
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
        print(y.numpy()[0])
        """)
    assert (out, errors, status) == ("handled\n1.0\n", "", 0)


# --- the end of the interpreter ------------------------------------------------------------------


@pytest.mark.parametrize("work", [
    "y = wait_in_program(0.5)(x)",
    "wait_in_program(0.5)(x)",
    "y = x * 2 + 1  # recorded",
    "f = ms.jit(lambda v: v @ v); z = f(ms.mark_sharding(np.ones((512, 512), np.float32), mesh, P('x')))",
    "source = (np.full((64, 64), i, np.float32) for i in range(10**9)); "
    "batches = iter(ms.data.loader(source, mesh, P('x'))); next(batches)",
    "ms.io.save_async(sys.argv[1], {'x': x * 2})",
    "keep = [np.from_dlpack(x + i) for i in range(9)]; more = [ms.from_dlpack(k) for k in keep]",
    "class Cycle: pass\nc = Cycle(); c.c = c; c.y = wait_in_program(0.5)(x)",
    "trace = ms.start_trace(); y = wait_in_program(0.5)(x)",
    "threading.Thread(target=lambda: wait_in_program(0.5)(x).numpy()).start()",
    "ms.set_debug_print_handler(lambda line: None)\nms.jit(lambda v: (ms.debug_print('{}', v), v * 3)[1])(x)",
])
def test_exit_with_work_in_flight(work, tmp_path):
    path = tmp_path / "x.safetensors"
    assert run("\n" + work, str(path)) == ("", "", 0)
    if "save_async" in work:
        assert ms.io.load(path)["x"].numpy().tolist() == [2 * i for i in range(8)]


@pytest.mark.parametrize("step", [
    "y = f(y); y.block_until_ready()",
    "y = f(y); y.numpy()",
    "y = ms.jit(lambda v: v + 1)(y)",
    "z = (y * 2).numpy()",
    "y = g(y)",
    "ms.io.save(sys.argv[1], {'y': y})",
    "ms.from_dlpack(np.from_dlpack(y + 1))",
])
def test_exit_while_daemon_threads_work(step, tmp_path):
    program = f"""
        f = ms.jit(lambda v: v * 0.5)
        g = ms.jit(lambda v: ms.pure_callback(lambda a: a + 1, v, v))
        f(x).numpy()
        def loop():
            y = x
            while True:
                {step}
        for _ in range(3):
            threading.Thread(target=loop, daemon=True).start()
        time.sleep(0.3)
        """
    assert run(program, str(tmp_path / "y.safetensors")) == ("", "", 0)


def test_exit_prints_what_programs_print():
    program = """
        def late(v):
            time.sleep(0.3)
            return v
        f = ms.jit(lambda v: (ms.debug_print("late {}", ops.sum(ms.pure_callback(late, v, v))), v)[1])
        y = f(x)
        """
    assert run(program) == ("late 28\n", "", 0)


def test_exit_by_an_exception_or_a_status():
    out, errors, status = run("y = wait_in_program(0.3)(x)\nraise ValueError('text')")
    assert status == 1 and errors.splitlines()[-1] == "ValueError: text" and "terminate" not in errors
    assert run("y = wait_in_program(0.3)(x)\nsys.exit(3)") == ("", "", 3)


def test_an_error_that_nobody_reads():
    assert run("""
        def fail(v):
            raise ValueError("boom")
        y = ms.jit(lambda v: ms.pure_callback(fail, v, v))(x)
        """)[1:] == ("", 0)


# --- forks ---------------------------------------------------------------------------------------


def test_forked_children_get_an_error_not_a_hang():
    out, errors, status = run("""
        import warnings; warnings.simplefilter("ignore")
        ms.sync(x)
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            for use in [lambda: (x + 1).numpy(), lambda: x.block_until_ready(), lambda: x.numpy(), ms.devices]:
                try:
                    use()
                    print("no error")
                except ms.FailedPreconditionError as error:
                    print("fork" in str(error))
            sys.exit(0)
        print(os.waitpid(child, 0)[1], (x + 1).numpy()[0])
        """)
    assert (sorted(out.split()), errors, status) == (["0", "1.0", "True", "True", "True", "True"], "", 0)


# --- several processes ---------------------------------------------------------------------------

TOGETHER = """
run = ms.initialize_processes()
data = np.arange(32, dtype=np.float32).reshape(8, 4)
everywhere = ms.Mesh({"x": 4})
y = ms.from_callback((8, 4), ms.Sharding(everywhere, P("x")), lambda index: data[index], np.float32)
step = ms.jit(lambda w: w - 0.5 * ms.grad(lambda v: ops.sum(v * v * ops.sum(v, 0)))(w) / 64)
y = step(y)
total = ops.sum(y, 0)
run.barrier("trained", seconds=60)
if run.rank == 0:
    run.put("key", b"value")
assert run.get("key", seconds=60) == b"value"
assert len(y.local_shards()) == 4 // run.size and len(run.members) == run.size
ms.io.save(sys.argv[1], {"y": y, "step": 3})
again = ms.io.restore(sys.argv[1], {"y": y, "step": 0})
everything, sums, whole = ms.gather_to_all(again["y"]), ms.gather_to_all(total), ms.gather_to(y, run.size - 1)
assert (whole is not None) == (run.rank == run.size - 1)
if run.rank == 0:
    print(everything.tolist(), sums.tolist(), again["step"])
"""


def mpi_is_there():
    if shutil.which("mpirun") is None:
        return False
    try:
        return bool(_meshard.mpi_library())
    except ms.Error:
        return False


@pytest.mark.skipif(not mpi_is_there(), reason="no mpirun, or no libmeshard_mpi.so")
def test_two_processes_give_what_one_gives(tmp_path):
    begin = BEGIN.split("mesh = ")[0]
    one = subprocess.run([sys.executable, "-c", begin + TOGETHER, str(tmp_path / "one.safetensors")],
                         capture_output=True, text=True, timeout=120, env=environment(MESHARD_CPU_DEVICES="4"))
    two = subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", "-x", "MESHARD_CPU_DEVICES=2",
                          sys.executable, "-c", begin + TOGETHER, str(tmp_path / "two.safetensors")],
                         capture_output=True, text=True, timeout=120, env=environment())
    assert one.returncode == 0 and two.returncode == 0, one.stderr + two.stderr
    assert one.stdout == two.stdout != ""


@pytest.mark.skipif(not mpi_is_there(), reason="no mpirun, or no libmeshard_mpi.so")
def test_the_tutorial_of_mpirun_prints_in_two_processes_what_its_page_says(tmp_path):
    sys.path.insert(0, str(ROOT / "tools" / "dev"))
    doc_examples = pytest.importorskip("doc_examples", reason="the source tree is not here")
    page = ROOT / "docs/tutorials/mpirun.md"
    [program] = doc_examples.python_examples(page.name, page.read_text(encoding="utf-8"))
    (tmp_path / program.file).write_text(program.text, encoding="utf-8")
    start = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", sys.executable, program.file]
    first, resumed = (subprocess.run([*start, *more], cwd=tmp_path, capture_output=True, text=True, timeout=120,
                                     env=environment()) for more in ([], ["--resume"]))
    assert (first.stdout, first.returncode) == (program.output + "\n", 0), first.stderr
    assert (resumed.stdout, resumed.returncode) == ("", 0), resumed.stderr  # no step is left


def test_processes_find_each_other_by_a_socket(tmp_path):
    program = """
        run = ms.initialize_processes(address=sys.argv[1], rank=int(sys.argv[2]), count=2, join_seconds=60)
        run.put(f"from {run.rank}", str(run.rank))
        print(run, run.get(f"from {1 - run.rank}", seconds=60).decode(), len(run.members))
        run.barrier("end", seconds=60)
        """
    begin = BEGIN.split("mesh = ")[0] + textwrap.dedent(program)
    path = str(tmp_path / "socket")
    both = [subprocess.Popen([sys.executable, "-c", begin, path, str(rank)], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env=environment()) for rank in range(2)]
    results = [each.communicate(timeout=120) for each in both]
    assert results == [("process 0 of 2 1 2\n", ""), ("process 1 of 2 0 2\n", "")]
    assert [each.returncode for each in both] == [0, 0]


def test_ctrl_c_ends_a_barrier(tmp_path):
    begin = BEGIN.split("mesh = ")[0]
    program = begin + textwrap.dedent("""
        run = ms.initialize_processes(address=sys.argv[1], rank=int(sys.argv[2]), count=2, join_seconds=60)
        if run.rank == 1:
            run.get("done", seconds=60)
            sys.exit(0)
        threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            run.barrier("nobody else comes")
        except KeyboardInterrupt:
            print("interrupted")
        run.put("done", "")
        """)
    both = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "socket"), str(rank)],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
            for rank in range(2)]
    results = [each.communicate(timeout=120) for each in both]
    assert results[0] == ("interrupted\n", "") and [each.returncode for each in both] == [0, 0]


def test_a_lost_process_is_reported(tmp_path):
    begin = BEGIN.split("mesh = ")[0]
    program = begin + textwrap.dedent("""
        lost = threading.Event()
        def on_loss(loss):
            print(loss.rank, loss.kind, loss.pid > 0, flush=True)
            lost.set()
        run = ms.initialize_processes(address=sys.argv[1], rank=int(sys.argv[2]), count=2, on_loss=on_loss)
        run.barrier("begin", seconds=60)
        if run.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        print(lost.wait(60), flush=True)
        os._exit(0)
        """)
    both = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "socket"), str(rank)],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
            for rank in range(2)]
    results = [each.communicate(timeout=120) for each in both]
    assert results[0] == ("1 died True\nTrue\n", "")
    assert both[1].returncode == -signal.SIGKILL
