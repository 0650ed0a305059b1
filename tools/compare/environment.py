"""Creates the Python environment with JAX, optax and flax, and prints the path of its interpreter.

It is in the project's cache folder, under the hash of jax.lock. Only the packages of that file are installed, by hash.
"""

import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import venv

LOCK = pathlib.Path(__file__).with_name("jax.lock")


def cache_folder():
    if "MESHARD_CACHE" in os.environ:
        return pathlib.Path(os.environ["MESHARD_CACHE"])
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "meshard"


def environment_folder():
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    key = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:16]
    return cache_folder() / f"jax-{key}-python{version}"


def existing_interpreter():
    """The environment's python; None if it does not exist yet."""
    folder = environment_folder()
    return folder / "bin/python" if (folder / "complete").exists() else None


def interpreter():
    """The environment's python; creates it if it does not exist."""
    folder = environment_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w", encoding="ascii") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            print(f"installing {LOCK.name} in {folder}", file=sys.stderr)
            venv.create(folder, with_pip=True)
            subprocess.run([folder / "bin/python", "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps",
                            "--only-binary", ":all:", "--disable-pip-version-check", "-r", LOCK],
                           check=True, stdout=sys.stderr)
            (folder / "complete").touch()
    return folder / "bin/python"


if __name__ == "__main__":
    print(interpreter())
