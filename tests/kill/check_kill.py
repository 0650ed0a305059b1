"""Kills writers at random times. Afterward, the old or the new file must be intact, and the next writer must clean up.

MESHARD_KILLS=n sets how often each writer is killed (default: 5); MESHARD_TEST_SEED as in other random tests.
"""

import hashlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost

WRITER, FETCH = sys.argv[1], sys.argv[2]
KILLS = int(os.environ.get("MESHARD_KILLS", "5"))
SEED = os.environ.get("MESHARD_TEST_SEED", "20240229")
if SEED == "random":
    SEED = str(random.randrange(1 << 32))
draw = random.Random(int(SEED))

# Unpacks two wheels in turn to the same place, as repeated fetching does.
FETCHER = """
import sys
sys.path.insert(0, sys.argv[1])
import pathlib
import locked_wheel as lw
folder, target = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
rounds = int(sys.argv[4])
hashes = [(folder / f"{i}.sha256").read_text(encoding="utf-8") for i in range(2)]
i = 0
while i < rounds:
    with lw.locked(folder / "fetch.lock"):
        lw.unpack(folder / f"{i % 2}.whl", "x.so", hashes[i % 2], target)
    if i == 0:
        print("writing", flush=True)
    i += 1
"""


def kill_once(command):
    """Starts a writer, and kills it at a random time after it has written its first file."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as process:
        try:
            if process.stdout.readline() != "writing\n":
                return "the writer ended before its first file"
            time.sleep(draw.random() * 0.05)
            if process.poll() is not None:
                return f"the writer ended by itself: {process.returncode}"
        finally:
            process.kill()
    return ""


def run_writer(kind, path):
    done = subprocess.run([WRITER, kind, path], capture_output=True, encoding="utf-8", check=False)
    return "" if done.returncode == 0 else f"{kind}: {done.stderr.strip() or 'not whole'}"


def parts_in(folder):
    return [name for name in os.listdir(folder) if ".part-" in name]


def check_written(kind, folder):
    """The failures of one kind of file that the library writes."""
    path = folder if kind == "compiled" else os.path.join(folder, "file")
    failures = []
    for _ in range(KILLS):
        problems = [kill_once([WRITER, kind, path]), run_writer(f"check-{kind}", path)]
        problems += [run_writer(f"once-{kind}", path)]
        problems += [f"left: {parts_in(folder)}" if parts_in(folder) else ""]
        failures += [problem for problem in problems if problem]
    return failures


def check_fetched(folder):
    """As check_written, for fetched files: the file and its record."""
    root = pathlib.Path(folder)
    contents = [bytes([65 + i]) * 3_000_000 for i in range(2)]
    hashes = [hashlib.sha256(each).hexdigest() for each in contents]
    for i in range(2):
        (root / f"{i}.sha256").write_text(hashes[i])
        with zipfile.ZipFile(root / f"{i}.whl", "w") as wheel:
            wheel.writestr("x.so", contents[i])
    target = root / "there" / "x.so"
    command = [sys.executable, "-c", FETCHER, FETCH, folder, str(target)]
    failures = []
    for _ in range(KILLS):
        problem = kill_once([*command, str(1 << 30)])
        found = hashlib.sha256(target.read_bytes()).hexdigest()
        record = target.with_name("x.so.fetched")
        if problem:
            failures.append(problem)
        if found not in hashes:
            failures.append("fetched: not whole")
        if record.exists() and f"sha256 {found}\n" not in record.read_text(encoding="utf-8"):
            failures.append("fetched: the record is of another file")
        subprocess.run([*command, "1"], check=True, stdout=subprocess.DEVNULL)
        if parts_in(target.parent):
            failures.append(f"left: {parts_in(target.parent)}")
    return failures


def main():
    passed, failed = 0, 0
    for kind in ("checkpoint", "npy", "compiled", "fetched"):
        with tempfile.TemporaryDirectory() as folder:
            failures = check_fetched(folder) if kind == "fetched" else check_written(kind, folder)
        for failure in failures[:10]:
            print(f"failed: {kind}: {failure} (MESHARD_TEST_SEED={SEED})")
        passed, failed = passed + (not failures), failed + bool(failures)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
