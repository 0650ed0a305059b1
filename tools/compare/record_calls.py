"""Draws random calls, computes JAX's answers, and writes them as cases for meshard-conformance.

usage: record_calls.py OUT_FOLDER [COUNT] [SEED] [FAMILY...]

The same count, seed and families give the same cases, for any number of processes.
"""

import collections
import concurrent.futures
import multiprocessing
import os
import pathlib
import sys
import time

# Compilation takes most of the time, and the cases do not depend on the highest optimization level.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax  # noqa: E402
import numpy as np  # noqa: E402

from calls import case  # noqa: E402
from calls.call import OPERATIONS  # noqa: E402

CHUNK = 50


def drawn_calls(count, seed):
    """(family, op, seed) of each case: first every operation once, then random ones."""
    table = [(family, op) for family, ops in OPERATIONS.items() for op in ops]
    rng = np.random.default_rng(seed)
    order = list(rng.permutation(len(table))) if count < len(table) else range(len(table))
    chosen = [table[k] for k in order] + [table[int(rng.integers(len(table)))] for _ in range(count - len(table))]
    return [(family, op, seed + k) for k, (family, op) in enumerate(chosen[:count])]


def write(folder, cases, seed):
    """Writes a file for each family, with one case per line."""
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    for family, lines in cases.items():
        body = ",\n".join(lines)
        pathlib.Path(folder, f"calls_{family}.json").write_text(
            f'{{"meta":{{"jax":"{jax.__version__}","seed":{seed}}},"cases":[\n{body}\n]}}\n', encoding="ascii")


def main(folder, count="2000", seed="0", *families):
    count, seed = int(count), int(seed)
    case.load_families(families)
    calls = drawn_calls(count, seed)
    chunks = [calls[k:k + CHUNK] for k in range(0, count, CHUNK)]
    cases, refused = collections.defaultdict(list), collections.Counter()
    start, done = time.monotonic(), 0
    processes = max(1, min(len(os.sched_getaffinity(0)), len(chunks)))
    with concurrent.futures.ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        for lines, why in pool.map(case.recorded_cases, chunks, [families] * len(chunks)):
            for family, line in lines:
                cases[family].append(line)
            refused.update(why)
            done += len(lines) + sum(why.values())
            print(f"{done} of {count}, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    write(folder, cases, seed)
    print(f"{sum(map(len, cases.values()))} cases, {sum(refused.values())} calls that JAX refuses")
    for why, times in refused.most_common():
        print(f"  {times} x {why}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(*sys.argv[1:])
