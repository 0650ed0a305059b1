"""Python environments of their own, each with the packages of one lock file and no others.

A lock file NAME.lock is a pip requirement file in which every package has a version and a hash. Its environment is in
the cache folder, in NAME-HASH-pythonX.Y, where HASH is that of the file. MESHARD_WHEEL_DIR names a folder of wheels to
install from; without it, pip uses its own configuration.
"""

import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import venv

import locked_wheel


def folder_of(lock):
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    key = hashlib.sha256(pathlib.Path(lock).read_bytes()).hexdigest()[:16]
    return locked_wheel.cache_root() / f"{pathlib.Path(lock).stem}-{key}-python{version}"


def existing_interpreter(lock):
    """The environment's python; None if it was not made yet, or this user has no cache."""
    try:
        folder = folder_of(lock)
    except locked_wheel.FetchError:
        return None
    return folder / "bin/python" if (folder / "complete").exists() else None


def interpreter(lock):
    """The environment's python; it is made if it does not exist."""
    folder = folder_of(lock)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w", encoding="ascii") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            print(f"installing {pathlib.Path(lock).name} in {folder}", file=sys.stderr)
            venv.create(folder, with_pip=True)
            command = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps",
                       "--only-binary", ":all:", "--disable-pip-version-check", "-r", lock]
            if os.environ.get("MESHARD_WHEEL_DIR"):
                command += ["--no-index", "--find-links", os.environ["MESHARD_WHEEL_DIR"]]
            subprocess.run(command, check=True, stdout=sys.stderr)
            (folder / "complete").touch()
    return folder / "bin/python"
