"""What the tests of reports need: which compilers are here."""

import glob
import os

import pytest

import meshard


def _has_compile_program():
    try:
        meshard.find_compile_program()
    except meshard.NotFoundError:
        return False
    return True


def libtpu():
    """The path of the TPU compiler in meshard's cache; None if it is not installed."""
    cache = os.environ.get("MESHARD_CACHE") or os.path.expanduser("~/.cache/meshard")
    found = sorted(glob.glob(os.path.join(cache, "plugins", "libtpu-*", "libtpu.so")))
    return found[-1] if found else None


needs_compiler = pytest.mark.skipif(not _has_compile_program(),
                                    reason="no program meshard-compile: set MESHARD_COMPILE")
needs_tpu = pytest.mark.skipif(not libtpu() or not _has_compile_program(), reason="no TPU compiler: meshard fetch tpu")
