#!/usr/bin/env python3
"""Measures io::publish and io::receive between two runs, in turns with a copy of as many bytes from the memory of one
process to that of another through TCP on the loopback interface.

usage: publish.py [--bytes N] [--turns N] PROGRAM MPI_LIBRARY

PROGRAM is build/bin/publish_program. Four processes (2x2) publish; four others (1x4) receive onto another layout. Prints
a line for each turn: seconds of the copy (the best of two), seconds of receive(), and the ratio of throughputs (goal: 0.7).
"""

import argparse
import os
import pathlib
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests" / "processes"))
from mpi_runs import MPIRUN, environment  # noqa: E402


def copy_through_tcp(count):
    """Seconds until `count` bytes of a child's memory are in this process's."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        child = os.fork()
        if child == 0:
            source = bytearray(b"x") * count
            with socket.create_connection(server.getsockname()) as end:
                end.recv(1)
                end.sendall(source)
            os._exit(0)
        destination = memoryview(bytearray(b"y") * count)
        end, _ = server.accept()
        with end:
            began = time.perf_counter()
            end.sendall(b"x")
            done = 0
            while done < count:
                done += end.recv_into(destination[done:done + (1 << 20)])
            seconds = time.perf_counter() - began
        os.waitpid(child, 0)
    return seconds


def measure(given, words, variables, address):
    """The ratio of each turn."""
    ratios = []
    for _ in range(given.turns):
        copy = min(copy_through_tcp(given.bytes) for _ in range(2))
        server = subprocess.run([*words, "time", address, "1x4", str(given.bytes), "2"], env=variables,
                                encoding="utf-8", stdout=subprocess.PIPE, check=True)
        receive = min(float(line.split()[1]) for line in server.stdout.split("\n") if line.startswith("seconds "))
        ratios.append(copy / receive)
        print(f"copy {copy:.3f} s ({given.bytes / copy / 1e9:.2f} GB/s), receive {receive:.3f} s "
              f"({given.bytes / receive / 1e9:.2f} GB/s), ratio {ratios[-1]:.2f}", flush=True)
    return ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bytes", type=int, default=1 << 30)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("program")
    parser.add_argument("library")
    given = parser.parse_args()
    variables = environment(os.path.abspath(given.library), {"MESHARD_PUBLISH_SECRET": secrets.token_hex(16)})
    words = [*MPIRUN, "-n", "4", os.path.abspath(given.program)]

    with tempfile.TemporaryDirectory() as folder:
        stop = pathlib.Path(folder) / "stop"
        trainer = subprocess.Popen([*words, "publish", "127.0.0.1:0", "2x2", str(given.bytes), "0", stop],
                                   env=variables, encoding="utf-8", stdout=subprocess.PIPE)
        try:
            ratios = measure(given, words, variables, trainer.stdout.readline().strip())
        finally:
            stop.touch()
            trainer.wait()
    print(f"median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
