#!/usr/bin/env python3
"""Checkpoints that several processes write under mpirun: what is in the files, restoring in other numbers of processes,
failures of one process, and processes that are killed at random moments while they train and save.

usage: check_checkpoints.py PROGRAM GPT MPI_LIBRARY

Skipped (status 77) without mpirun, libmeshard_mpi.so or a plugin. MESHARD_CHECKPOINT_KILLS is how often a process is
killed (default 10; 50 in `./dev nightly`). MESHARD_CHECKPOINT_TEST selects tests by a part of their name,
MESHARD_TEST_SEED=n repeats the moments. The last line is `N passed, N failed`.
"""

import collections
import itertools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import sys
import tempfile
import time

from mpi_runs import Failed, ended, environment, expect, start

PROGRAM, GPT, LIBRARY = (os.path.abspath(path) for path in sys.argv[1:])
NIGHTLY = os.environ.get("MESHARD_NIGHTLY")
KILLS = int(os.environ.get("MESHARD_CHECKPOINT_KILLS") or (50 if NIGHTLY else 10))
SEED = os.environ.get("MESHARD_TEST_SEED") or "1"
if SEED == "random":
    SEED = str(random.randrange(1 << 32))
SKIPPED = 77
LIMIT = 300


def launch(count, *command, **variables):
    own = {"MESHARD_PROCESS_SILENCE_SECONDS": "300"} | variables
    return start(count, command, environment(LIBRARY, own))


def run(count, *command, **variables):
    """@return status, output, errors"""
    return ended(launch(count, *command, **variables), LIMIT)


def succeed(count, *command, **variables):
    status, output, errors = run(count, *command, **variables)
    expect(status == 0, f"{count} processes, {command}: status {status}: {output}{errors}")
    return output


def names_in(folder):
    return sorted(each.name for each in pathlib.Path(folder).iterdir())


# --- what is in the files, read without meshard -------------------------------------------------------------------

FORMATS = {"F32": "f", "F64": "d", "I32": "i", "I64": "q", "U8": "B", "BF16": "H"}


def read_file(path):
    """{name: (dtype, shape, values)} of a safetensors file, which must have no gaps."""
    data = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    tensors, ends = {}, [0]
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        expect(begin == ends[-1], f"{path}: {name} begins at {begin}")
        ends.append(end)
        one = FORMATS[entry["dtype"]]
        count = (end - begin) // struct.calcsize(one)
        tensors[name] = (entry["dtype"], entry["shape"], struct.unpack_from(f"<{count}{one}", data, 8 + length + begin))
    expect(8 + length + ends[-1] == len(data), f"{path} has {len(data)} bytes")
    return tensors


def read_checkpoint(path):
    """{name: (dtype, {indices: value})} of a checkpoint of several writers; no element may be there twice."""
    index = json.loads(pathlib.Path(f"{path}.index.json").read_text(encoding="utf-8"))
    folder = pathlib.Path(path).parent
    files = {name: read_file(folder / name) for name in index["meshard"]["files"]}
    for name, size in index["meshard"]["files"].items():
        expect((folder / name).stat().st_size == size, name)
    expect(names_in(folder) == sorted([*files, f"{path.name}.index.json"]), names_in(folder), "besides", list(files))
    used, tensors = set(), {}

    def add(name, file, piece, start):
        dtype, shape, values = files[file][piece]
        used.add((file, piece))
        elements = tensors.setdefault(name, (dtype, {}))[1]
        for at, value in zip(itertools.product(*[range(size) for size in shape]), values):
            place = tuple(a + b for a, b in zip(start, at))
            expect(place not in elements, f"{name} {place} is there twice")
            elements[place] = value

    for name, file in index["weight_map"].items():
        add(name, file, name, [0] * len(files[file][name][1]))
    for name, tensor in index["meshard"]["split"].items():
        for box, file in tensor["parts"].items():
            add(name, file, name + box, [int(each.split(":")[0]) for each in box[1:-1].split(", ")])
            expect(files[file][name + box][0] == tensor["dtype"], name)
        expect(set(tensors[name][1]) == set(itertools.product(*[range(size) for size in tensor["shape"]])), name)
    everything = {(file, piece) for file, tensors_of in files.items() for piece in tensors_of}
    size = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "BF16": 2, "U8": 1}
    total = sum(size[dtype] * len(elements) for dtype, elements in tensors.values())
    expect(index["metadata"]["total_size"] == total, index["metadata"], total)
    expect(used == everything, "in files, but not in the index:", everything - used)
    return tensors


def bf16(number):
    return struct.unpack("<I", struct.pack("<f", number))[0] >> 16


def known_tensors(devices):
    """As known_tensors() of checkpoint_program.cc."""
    def counted(dtype, shape, first, convert=lambda number: number):
        places = list(itertools.product(*[range(size) for size in shape]))
        return dtype, {place: convert(first + i) for i, place in enumerate(places)}
    known = {"rows": counted("F32", (10, 6), 0), "columns": counted("F32", (3, 8), 100), "few": counted("I32", (2,), 200),
             "copies": counted("F64", (5,), 300), "both": counted("F32", (4, 2, 6), 400),
             "half": counted("BF16", (4, 4), 0, bf16), "last": counted("I64", (3,), 500), "empty": ("F32", {}),
             "host": counted("F32", (2, 2), 700), "recorded": counted("F32", (10, 6), 0, lambda number: 2 * number)}
    if devices >= 4:
        known["some"] = counted("U8", (4,), 60)
    return known


def save_and_restore(command, writers, folder):
    path = folder / "run.safetensors"
    succeed(writers, PROGRAM, writers, path, command)
    found, known = read_checkpoint(path), known_tensors(writers)
    expect(set(found) == set(known), set(found) ^ set(known))
    for name, tensor in known.items():
        expect(found[name] == tensor, f"{name}: {found[name]}, not {tensor}")
    for readers, devices in ((1, 4), (1, 2), (4, 4), (2, 2), (3, 3)):
        if devices < 4 or writers >= 4:  # else `some` is missing
            expect("all is there" in succeed(readers, PROGRAM, devices, path, "check"), readers, devices)
    # One process replaces it by one file, and several replace that.
    succeed(1, PROGRAM, 4, path, "save")
    expect(names_in(folder) == ["run.safetensors"], names_in(folder))
    expect("all is there" in succeed(2, PROGRAM, 2, path, "check"))
    succeed(writers, PROGRAM, writers, path, command)
    read_checkpoint(path)


def copies_have_one_owner(folder):
    path = folder / "run"
    succeed(4, PROGRAM, 4, path, "copies")
    found = read_checkpoint(path)
    expect(set(found) == {f"t{i}" for i in range(8)}, set(found))
    index = json.loads((folder / "run.index.json").read_text(encoding="utf-8"))
    writers = collections.Counter(index["weight_map"].values())
    expect(sorted(writers.values()) == [2, 2, 2, 2], writers)


def a_folder(folder):
    path = folder / "model"
    succeed(2, PROGRAM, 2, f"{path}/", "save")
    expect("model.safetensors.index.json" in names_in(path), names_in(path))
    expect("all is there" in succeed(1, PROGRAM, 2, path, "check"))
    succeed(3, PROGRAM, 3, path, "save")
    read_checkpoint(path / "model.safetensors")
    succeed(1, PROGRAM, 3, path, "save", "check")
    expect(names_in(path) == ["model.safetensors"], names_in(path))


def each_process_reads_its_part(folder):
    output = succeed(4, PROGRAM, 4, folder / "run", "reads")
    reads = re.findall(r"process \d of 4 has read (\d+) of (\d+)", output)
    expect(len(reads) == 4, output)
    for read, whole in reads:
        # A quarter, and what the system maps around each page that is read.
        expect(int(whole) / 4 <= int(read) < int(whole) / 4 + (1 << 20), output)


# --- one process fails --------------------------------------------------------------------------------------------

def old_one_remains(folder, path, before):
    expect({name: (folder / name).stat().st_mtime_ns for name in names_in(folder)} == before, names_in(folder), list(before))
    expect("all is there" in succeed(1, PROGRAM, 3, path, "check"))


def failure(command, pattern, count, folder, **variables):
    """All processes get the error, and the old checkpoint remains."""
    path = folder / "run"
    succeed(3, PROGRAM, 3, path, "save")
    before = {name: (folder / name).stat().st_mtime_ns for name in names_in(folder)}
    output = succeed(3, PROGRAM, 3, path, command, **variables)
    lines = re.findall(r"^process \d: .*", output, re.MULTILINE)
    expect(len(lines) == count and all(re.search(pattern, line) for line in lines), output)
    old_one_remains(folder, path, before)


def other_folders(folder):
    """The last process has another working directory, so the others do not see its file."""
    (folder / "b").mkdir()
    (folder / "a").mkdir()
    script = 'cd "$1/$(if [ $OMPI_COMM_WORLD_RANK = 2 ]; then echo b; else echo a; fi)" && exec "$2" 3 run save'
    status, output, errors = run(3, "sh", "-c", script, "sh", folder, PROGRAM)
    expect(status != 0, output, errors)
    expect(re.search(r"because of process 2 \(.*process 0 does not see its file .*"
                     "all processes must save to a file system that they share", errors), output, errors)
    expect(names_in(folder / "a") + names_in(folder / "b") == [], names_in(folder / "a"), names_in(folder / "b"), errors)


def alone(folder):
    path = folder / "run"
    output = succeed(3, PROGRAM, 3, path, "save-alone")
    expect(re.search(r"process 2: .*parts of \"rows\".* are in other processes", output), output)
    expect(names_in(folder) == ["run"] and set(read_file(path)) == {"copies", "host"}, names_in(folder))


# --- saves in the background at the end ---------------------------------------------------------------------------

def the_end_waits(count, folder):
    path = folder / "run"
    succeed(count, PROGRAM, 3, path, "end-async")
    expect("all is there" in succeed(1, PROGRAM, 3, path, "check"))


def nobody_asks(count, folder):
    status, output, errors = run(count, PROGRAM, 2, folder / "run", "unasked")
    expect(status == 1 and "/nonexistent/run" in errors and "in the background" in errors, status, output, errors)


def a_failing_process_does_not_wait(folder):
    path = folder / "run"
    status, output, errors = run(3, PROGRAM, 3, path, "fail-async")
    expect(status != 0 and "on purpose" in errors and f"{path} was not saved: the process ended before" in errors,
           status, output, errors)
    expect("run.alone" in names_in(folder), names_in(folder), output, errors)


# --- one process is killed ----------------------------------------------------------------------------------------

def killed(folder, generator):
    """One of four processes is killed while they train and save. Afterward, the last checkpoint is complete."""
    path = folder / "run.safetensors"
    child = launch(4, PROGRAM, 4, path, "loop")
    pids, published, wanted = {}, -1, generator.randrange(1, 12)
    while len(pids) < 4 or published < wanted:
        line = child.stdout.readline()
        expect(line, "mpirun has ended:", child.stderr.read() if not line else "")
        if match := re.match(r"process (\d) has pid (\d+)", line):
            pids[int(match[1])] = int(match[2])
        if match := re.match(r"saved (\d+)", line):
            published = int(match[1])
    time.sleep(generator.random() * 0.1)
    victim = generator.randrange(4)
    os.kill(pids[victim], signal.SIGKILL)
    status, output, errors = ended(child, 60)
    for number in re.findall(r"^saved (\d+)$", output, re.MULTILINE):
        published = int(number)
    line = rf"^\[processes\] process \d of 4 ends: process {victim} \(pid {pids[victim]} on .+\) died"
    expect(status != 0 and re.search(line, errors, re.MULTILINE), f"victim {victim}: status {status}: {errors}")
    for _ in range(500):
        left = [pid for pid in pids.values() if os.path.exists(f"/proc/{pid}/exe")]  # not of a zombie
        if not left:
            break
        time.sleep(0.01)
    expect(not left, f"processes are left: {left}")
    status, output, errors = run(1, PROGRAM, 4, path, "check-loop")
    found = re.match(r"step (\d+)", output)
    expect(status == 0 and found, f"victim {victim}, after {published} was saved: {output}{errors}", names_in(folder))
    # What was said to be saved is there, or a later one.
    expect(int(found[1]) >= published, f"step {found[1]} after {published} was saved")


def read_meanwhile(folder):
    """A checkpoint that is replaced all the time is always complete for a reader."""
    path = folder / "run.safetensors"
    child = launch(2, PROGRAM, 2, path, "loop")
    try:
        line = child.stdout.readline()
        while line and not line.startswith("saved"):
            line = child.stdout.readline()
        last = -1
        for _ in range(15):
            output = succeed(1, PROGRAM, 2, path, *["check-loop"] * 20)
            steps = [int(step) for step in re.findall(r"^step (\d+)", output, re.MULTILINE)]
            expect(len(steps) == 20 and steps == sorted(steps) and steps[0] >= last, steps, last)
            last = steps[-1]
        expect(last > 0 and child.poll() is None, last, child.poll())
    finally:
        child.terminate()
        child.communicate()


def kills(generator):
    """Processes are killed one after the other, in one folder; a save that is not killed cleans up."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for number in range(KILLS):
            try:
                killed(folder, generator)
            except Failed as error:
                raise Failed(f"kill {number}: {error}") from None
        succeed(2, PROGRAM, 2, folder / "run.safetensors", "save")
        read_checkpoint(folder / "run.safetensors")


# --- an example ---------------------------------------------------------------------------------------------------

def gpt(folder):
    """Saved with 4 processes, and resumed with 2 and with 1: the losses are those of one process."""
    options = ("--layers", 2, "--width", 32, "--heads", 2, "--hidden", 48, "--context", 32, "--batch", 8, "--sample", 0)

    def losses(processes, mesh, steps, path, *more):
        file = folder / "losses.txt"
        succeed(processes, GPT, *options, "--mesh", mesh, "--steps", steps, "--save-every", 2, "--checkpoint", path,
                "--losses", file, *more)
        return [float(line) for line in file.read_text(encoding="utf-8").split()]

    def close(expected, found):
        return len(expected) == len(found) and all(abs(a - b) <= 1e-6 * abs(a) for a, b in zip(expected, found))

    (folder / "one").mkdir()
    (folder / "four").mkdir()
    first = losses(1, "data=2,model=2", 3, folder / "one" / "run.safetensors")
    rest = losses(1, "data=2,model=2", 6, folder / "one" / "run.safetensors", "--resume")
    expect(len(first) == 3 and len(rest) == 3, first, rest)
    path = folder / "four" / "run.safetensors"
    found = losses(4, "data=2,model=2", 3, path)
    expect(close(first, found), first, found)
    expect(any("-of-00004.safetensors" in name for name in names_in(path.parent)), names_in(path.parent))
    for processes, mesh in ((2, "data=1,model=2"), (1, "data=2,model=1")):
        copy = folder / f"resumed-{processes}-{mesh}"
        shutil.copytree(path.parent, copy)
        found = losses(processes, mesh, 6, copy / "run.safetensors", "--resume")
        expect(close(rest, found), f"resumed with {processes} processes on {mesh}: {found}, not {rest}")
        if processes == 1:
            expect(names_in(copy) == ["run.safetensors"], names_in(copy))


def main():
    if shutil.which("mpirun") is None or not os.path.exists(LIBRARY):
        print("skipped: no mpirun (Debian package openmpi-bin), or no libmeshard_mpi.so (libopenmpi-dev)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        status, output, errors = run(1, PROGRAM, 4, pathlib.Path(folder) / "run", "save", "check")
    if status != 0 and "no plugin" in errors:
        print("skipped: no plugin")
        return SKIPPED
    tests = [("one process", lambda _: expect(status == 0 and "all is there" in output, output, errors))]
    tests += [(f"{command} of {count}", save_and_restore, command, count)
              for command, count in (("save", 4), ("save-async", 4), ("save", 2), ("save", 3))]
    tests += [(test.__name__, test) for test in (copies_have_one_owner, a_folder, each_process_reads_its_part)]
    tests += [("one saves another tensor", failure, "differ",
               r'because of process 2 \(.*: it saves "host", f32\[2,3\], where process 0 saves "host", f32\[2,2\]', 3),
              ("one cannot write", failure, "full", r"because of process 2 \(.*: \[io\] cannot write .*File too large", 3)]
    tests += [(test.__name__, test) for test in (other_folders, alone)]
    tests += [("one does not save", lambda folder: failure(
        "absent", r"deadline exceeded.*\"save 0 of all processes\" was not reached within 3 s", 2, folder,
        MESHARD_PROCESS_WAIT_SECONDS="3"))]
    tests += [(f"{test.__name__} of {count}", test, count) for test in (the_end_waits, nobody_asks) for count in (1, 3)]
    tests += [(test.__name__, test) for test in (a_failing_process_does_not_wait, read_meanwhile, gpt)]
    tests += [("kills", lambda _: kills(random.Random(SEED)))]
    passed, failed = 0, 0
    wanted = os.environ.get("MESHARD_CHECKPOINT_TEST", "")
    for name, test, *arguments in tests:
        if wanted not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                test(*arguments, pathlib.Path(folder))
                passed += 1
            except Failed as error:
                failed += 1
                print(f"FAILED {name} (MESHARD_TEST_SEED={SEED}): {error}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
