"""Reads the golden files that the C++ tests share."""

import json
import pathlib

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden"


def cases(*names):
    """The cases of golden files, in order; a name may have wildcards."""
    found = []
    for name in names:
        for path in sorted(GOLDEN.glob(name)):
            read = json.loads(path.read_text(encoding="utf-8"))
            found += read if isinstance(read, list) else read["cases"]
    assert found, names
    return found


def meta(name):
    """What a golden file says of all its cases."""
    return json.loads((GOLDEN / name).read_text(encoding="utf-8"))
