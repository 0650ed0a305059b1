"""What the random comparisons with NumPy and with JAX share."""

import argparse

import numpy as np


def differences(cases, count, describe, report=None):
    """Calls `describe(i, name)` for `count` calls, case after case. Returns what it says of those that differ.

    It returns None for equal results, otherwise the text (call, difference). `report` gets each text at once.
    """
    names, found = sorted(cases), []
    for i in range(count):
        name = names[i % len(names)]
        text = describe(i, name)
        if text:
            found.append(f"call {i}: {name}{text}")
            if report:
                report(found[-1])
    return found


def guarded(difference):
    """The result of `difference()`; a failure is a difference."""
    try:
        return difference()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main(doc, cases, compare, has_first=False):
    """The command line of a comparison: COUNT and --seed, and --first if it can begin with a later call.

    Returns the exit status.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=500, help="the number of calls (default: 500)")
    parser.add_argument("--seed", type=int, help="of the arguments (default: a new one, which is printed)")
    if has_first:
        parser.add_argument("--first", type=int, default=0, help="the number of the first call (default: 0)")
    given = parser.parse_args()
    seed = int(np.random.SeedSequence().entropy % 2**32) if given.seed is None else given.seed
    print(f"{given.count} calls of {len(cases)} functions, seed {seed}")
    more = {"first": given.first} if has_first else {}
    found = compare(given.count, seed, report=lambda text: print(text, flush=True), **more)
    print(f"{len(found)} differences")
    return 1 if found else 0
