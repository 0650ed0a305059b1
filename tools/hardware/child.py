"""A program in a process group of its own, with a time limit."""

import dataclasses
import os
import signal
import subprocess
import tempfile
import time

MOST_OUTPUT = 4000  # characters of a failed program's output that a report keeps


@dataclasses.dataclass
class Ended:
    """How a program ended: `passed`, `failed` (exit code), `crashed` (signal) or `timed out`."""
    outcome: str
    seconds: float
    output: str
    code: int = 0


def run(command, limit, environment=None, cwd=None):
    """Runs a command for at most `limit` seconds; then its whole group is killed. Output of both streams is kept."""
    begin = time.monotonic()
    with tempfile.TemporaryFile() as file:
        try:
            process = subprocess.Popen([str(word) for word in command], stdout=file, stderr=subprocess.STDOUT,
                                       stdin=subprocess.DEVNULL, env=environment, cwd=cwd, start_new_session=True)
        except OSError as error:
            return Ended("failed", 0, f"{command[0]}: {error.strerror}", 127)
        outcome = None
        try:
            process.wait(timeout=max(limit, 0.1))
        except subprocess.TimeoutExpired:
            outcome = "timed out"
        except BaseException:
            kill(process)
            raise
        # Also what a program that has ended left behind.
        kill(process)
        code = process.wait()
        file.seek(0)
        output = file.read().decode(errors="replace")
    if outcome is None:
        outcome = "passed" if code == 0 else "crashed" if code < 0 else "failed"
    return Ended(outcome, time.monotonic() - begin, output, code)


def kill(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def tail(text):
    return text if len(text) <= MOST_OUTPUT else "..." + text[-MOST_OUTPUT:]
