#!/usr/bin/env python3
"""Makes the Python environment of one peer of the benchmarks, and prints its interpreter.

usage: environment.py PEER [--existing]

PEER is jax, torch or torch_xla. The environment contains the packages of PEER.lock, each verified by its hash, and is in
the cache folder; it is made once. --existing makes nothing, and fails if the environment does not exist.
"""

import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "fetch"))
import locked_environment  # noqa: E402
import locked_wheel  # noqa: E402

# What is downloaded, and how large the environment becomes.
PEERS = {
    "jax": "downloads 0.2 GB, takes 0.6 GB",
    "torch": "downloads 2.5 GB, takes 4.4 GB; with NVIDIA's libraries, under NVIDIA's licenses, because PyTorch's wheel needs them",
    "torch_xla": "downloads 3.4 GB, takes 6.3 GB; with NVIDIA's libraries, under NVIDIA's licenses, because PyTorch's wheel needs them",
}


def lock_of(peer):
    return pathlib.Path(__file__).resolve().with_name(f"{peer}.lock")


def interpreter(peer, existing=False):
    """The environment's python. None if it does not exist, and `existing` forbids to make it."""
    found = locked_environment.existing_interpreter(lock_of(peer))
    if found or existing:
        return found
    print(f"{peer}: {PEERS[peer]}", file=sys.stderr, flush=True)
    return locked_environment.interpreter(lock_of(peer))


def main():
    words = [word for word in sys.argv[1:] if word != "--existing"]
    if len(words) != 1 or words[0] not in PEERS:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        python = interpreter(words[0], "--existing" in sys.argv[1:])
    except subprocess.CalledProcessError as error:
        raise locked_wheel.FetchError(f"{words[0]} could not be installed: pip ended with status {error.returncode}") from error
    if python is None:
        print(f"environment.py: {words[0]} is not installed", file=sys.stderr)
        return 1
    print(python)
    return 0


if __name__ == "__main__":
    locked_wheel.run(main)
