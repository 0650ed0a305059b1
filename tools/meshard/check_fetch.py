"""Runs `meshard fetch` with wheels made here: its output, its errors, and the files it leaves."""
import fcntl
import hashlib
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost

TOOL = pathlib.Path(sys.argv[1])
FETCH = pathlib.Path(__file__).resolve().parents[1] / "fetch"


def run(command, cache, wheels, **more):
    env = {**os.environ, "MESHARD_CACHE": str(cache), "MESHARD_WHEEL_DIR": str(wheels), **more}
    done = subprocess.run([str(word) for word in command], capture_output=True, encoding="utf-8", env=env,
                          stdin=subprocess.DEVNULL, timeout=100)
    return done.returncode, done.stdout + done.stderr


def expect(outcome, code, *parts):
    if outcome[0] != code:
        sys.exit(f"exit code {outcome[0]}, expected {code}:\n{outcome[1]}")
    for part in parts:
        if part not in outcome[1]:
            sys.exit(f"{part!r} is not in:\n{outcome[1]}")


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def make_wheel(folder, name, version, members):
    """A wheel that pip accepts; returns its lock entry."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    path = folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for member, contents in members.items():
            wheel.writestr(member, contents)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    lines = [f"{name}=={version} --hash=sha256:{sha256(path.read_bytes())}", "# size 3000000",
             f"# license the terms of {name}"]
    return lines + [f"# unpack {member} sha256:{sha256(contents)}" for member, contents in members.items()]


with tempfile.TemporaryDirectory() as root:
    root = pathlib.Path(root)
    cache, wheels, program = root / "cache", root / "wheels", root / "share"
    for folder in (wheels, program):
        folder.mkdir()
    for name in ("fetch_targets.py", "locked_wheel.py", "file_trust.py"):
        shutil.copy(FETCH / name, program)
    lock = make_wheel(wheels, "libtpu", "1.2", {"libtpu/libtpu.so": b"tpu", "libtpu/LICENSE": b"terms"})
    lock += make_wheel(wheels, "jax-cuda13-pjrt", "3.4", {"jax_plugins/xla_cuda13/xla_cuda_plugin.so": b"gpu"})
    lock += make_wheel(wheels, "nvidia-nvvm", "5", {"nvidia/cu13/nvvm/libdevice/libdevice.10.bc": b"bc"})
    lock += make_wheel(wheels, "nvidia-cuda-nvcc", "5", {"nvidia/cu13/bin/ptxas": b"#!/bin/sh\n"})
    (program / "plugins.lock").write_text("\n".join(lock) + "\n")
    fetch = [sys.executable, program / "fetch_targets.py"]

    # Without a terminal, nobody can agree. The license has been displayed.
    expect(run([*fetch, "tpu"], cache, wheels), 1, "libtpu 1.2, 3 MB", "license: the terms of libtpu", "--yes")
    if any(cache.rglob("*.so")):
        sys.exit("something was fetched without a yes")
    expect(run([*fetch, "tpu", "cuda", "--yes"], cache, wheels), 0, "the terms of nvidia-nvvm", "hash checked")
    tpu = cache / "plugins/libtpu-1.2/libtpu.so"
    gpu = cache / "plugins/xla_cuda13-3.4"
    assert tpu.read_bytes() == b"tpu" and (tpu.parent / "LICENSE").read_bytes() == b"terms"
    assert (gpu / "jax_plugins/xla_cuda13/xla_cuda_plugin.so").read_bytes() == b"gpu"
    assert (gpu / "nvidia/cu13/nvvm/libdevice/libdevice.10.bc").is_file()
    assert os.access(gpu / "nvidia/cu13/bin/ptxas", os.X_OK)
    left = [path.name for path in cache.iterdir() if path.name not in ("plugins", "fetch.lock")]
    assert not left, left
    # Files that exist are not requested again, even if the wheels are gone; damaged files are
    # replaced.
    (root / "none").mkdir()
    expect(run([*fetch, "tpu"], cache, root / "none"), 0, "hash checked")
    tpu.write_bytes(b"changed")
    expect(run([*fetch, "tpu"], cache, wheels), 1, "license")
    expect(run([*fetch, "tpu", "--yes"], cache, wheels), 0)
    assert tpu.read_bytes() == b"tpu"
    # Checks the record that loading compares the file with, and that files of a killed fetch are
    # removed.
    about = tpu.stat()
    record = (tpu.parent / "libtpu.so.fetched").read_text(encoding="utf-8").split("\n")
    assert record[1:5] == [f"sha256 {sha256(b'tpu')}", "size 3", f"time {about.st_mtime_ns}", f"owner {about.st_uid}"], record
    (tpu.parent / "libtpu.so.fetched").unlink()
    expect(run([*fetch, "tpu"], cache, root / "none"), 0)
    assert (tpu.parent / "libtpu.so.fetched").is_file()
    (cache / "fetch-killed").mkdir()
    (tpu.parent / "libtpu.so.part-killed").write_bytes(b"t")
    tpu.write_bytes(b"changed")
    expect(run([*fetch, "tpu", "--yes"], cache, wheels), 0)
    assert not (cache / "fetch-killed").exists() and not (tpu.parent / "libtpu.so.part-killed").exists()
    # An unanswered question does not block other fetches.
    parent, terminal = pty.openpty()
    tpu.write_bytes(b"changed")
    asking = subprocess.Popen([str(word) for word in [*fetch, "tpu"]], stdin=terminal, stdout=terminal, stderr=terminal,
                              env={**os.environ, "MESHARD_CACHE": str(cache), "MESHARD_WHEEL_DIR": str(wheels)})
    os.close(terminal)
    try:
        asked = b""
        while b"[y/N]" not in asked:
            asked += os.read(parent, 1000)
        with open(cache / "fetch.lock", "r+") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(parent, b"y\n")
        asking.wait(100)
    finally:
        asking.kill()
        asking.wait()
        os.close(parent)
    assert tpu.read_bytes() == b"tpu"
    # A cache that others can write is rejected.
    cache.chmod(0o777)
    expect(run([*fetch, "tpu"], cache, wheels), 1, str(cache), "0777")
    cache.chmod(0o755)
    # A wheel with another hash is rejected and leaves no files.
    (program / "plugins.lock").write_text("\n".join(lock).replace(lock[0][-10:], "0123456789") + "\n")
    tpu.unlink()
    expect(run([*fetch, "tpu", "--yes"], cache, wheels), 1, "pip could not get libtpu==1.2")
    assert not tpu.exists()
    expect(run([*fetch, "abacus"], cache, wheels), 2, "usage")

    # The program itself, with its own lock file, and without confirmation.
    expect(run([TOOL, "fetch", "tpu"], root / "other", root / "none"), 1, "libtpu 0.0.51", "Google Cloud Platform")
    expect(run([TOOL, "fetch", "cuda"], root / "other", root / "none"), 1, "nvidia-nvvm", "End User License")
    code, _ = run([TOOL, "fetch", "abacus"], root / "other", root / "none")
    assert code != 0
print("ok")
