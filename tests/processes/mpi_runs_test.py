"""mpi_runs.py ends a launcher that has nothing left to wait for, and no other."""

import signal
import time
import unittest

import mpi_runs

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost
mpi_runs.LOOK = 0.5


def launcher(script):
    """In place of mpirun: a shell that gets `-n COUNT COMMAND...`."""
    return ["sh", "-c", f"shift 2; export OMPI_COMM_WORLD_RANK=0; {script}", "launcher"]


def run(script, limit, *command):
    child = mpi_runs.start(2, command, None, launcher=launcher(script))
    begin = time.monotonic()
    return *mpi_runs.ended(child, limit), time.monotonic() - begin


class Ended(unittest.TestCase):
    def test_a_launcher_that_hangs_after_its_processes_were_waited_for(self):
        status, output, errors, _ = run('"$@"; exec tail -f /dev/null', 60, "sh", "-c", "echo out; echo error >&2; exit 3")
        self.assertEqual((status, output, errors), (-signal.SIGKILL, "out\n", "error\n"))

    def test_a_launcher_that_hangs_before_its_processes_were_waited_for(self):
        status, output, errors, _ = run('"$@" & exec tail -f /dev/null', 60, "echo", "out")
        self.assertEqual((status, output, errors), (-signal.SIGKILL, "out\n", ""))

    def test_a_process_that_takes_longer_than_the_looks(self):
        status, output, _, seconds = run('"$@"', 60, "sh", "-c", "sleep 2; echo out; exit 3")
        self.assertEqual((status, output), (3, "out\n"))
        self.assertGreaterEqual(seconds, 2)

    def test_a_launcher_that_takes_long_to_start(self):
        status, output, _, _ = run('sleep 2; "$@"', 60, "echo", "out")
        self.assertEqual((status, output), (0, "out\n"))

    def test_a_process_that_hangs_is_a_failure(self):
        with self.assertRaisesRegex(mpi_runs.Failed, "still runs after 4 s: out"):
            run('"$@"', 4, "sh", "-c", "echo out; exec tail -f /dev/null")


if __name__ == "__main__":
    unittest.main()
