"""Interrupts `meshard explain` while a compiler hangs: it must leave no process and no file."""
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import sys

from expectations import Checks

FAKE = sys.argv[2]
MODULE = """module @one {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}
"""


def processes_in(folder):
    """The ids of the processes whose command line contains the folder."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and folder.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue  # the process has ended
    return found


def within(seconds, condition):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def start(arguments, environment):
    """Starts the command with default signals, because background jobs of scripts, or the parent, may ignore SIGINT."""
    def default_signals():
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)

    return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment,
                            preexec_fn=default_signals)


def ended_within(seconds, process):
    """The exit status; None if the process is still running."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None


def interrupt(checks, fate, folder):
    temporary = os.path.join(folder, "tmp")
    os.mkdir(temporary)
    module = os.path.join(folder, "one.mlir")
    with open(module, "w", encoding="utf-8") as file:
        file.write(MODULE)
    running = start([*checks.command, module, "--topology", "cpu:1", "--plugin", FAKE, "--no-cache"],
                    {**os.environ, "TMPDIR": temporary, "MESHARD_FAKE_ON_COMPILE": "hang"})
    try:
        checks.check(f"{fate.name}: the compiler runs", within(30, lambda: processes_in(temporary)))
        running.send_signal(fate)
        code = ended_within(30, running)
        checks.check(f"{fate.name}: the command ended by it", code == -fate, str(code))
        checks.check(f"{fate.name}: the compiler ended", within(30, lambda: not processes_in(temporary)))
        checks.check(f"{fate.name}: no file is left", within(30, lambda: not os.listdir(temporary)),
                     str(os.listdir(temporary)))
    finally:
        running.kill()
        running.wait()
        for left in processes_in(temporary):
            os.kill(left, signal.SIGKILL)


checks = Checks("explain")
for tried in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
    with tempfile.TemporaryDirectory() as root:
        interrupt(checks, tried, root)
checks.end()
