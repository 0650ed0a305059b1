"""SPMD programs over device meshes, on any PJRT plugin."""

import importlib as _importlib
import os as _os
from typing import TYPE_CHECKING as _TYPE_CHECKING

from . import _meshard

_meshard.add_library_folder(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)

_meshard.search_lapack_in(_os.path.join(_os.path.dirname(__file__), "..", "scipy.libs"))

from . import _foreign_arrays, tree  # noqa: E402, F401  (need the package folder)
from ._dtypes import *  # noqa: E402,F403
from ._errors import *  # noqa: E402,F403
from ._transforms import *  # noqa: E402,F403
from ._mesh import *  # noqa: E402,F403
from ._array import *  # noqa: E402,F403
from ._marking import *  # noqa: E402,F403
from ._collectives import *  # noqa: E402,F403
from ._runtime import *  # noqa: E402,F403
from ._dlpack import *  # noqa: E402,F403
from ._callbacks import *  # noqa: E402,F403
from ._processes import *  # noqa: E402,F403
from ._reports import *  # noqa: E402,F403
from ._expect import *  # noqa: E402,F403
from ._plan import *  # noqa: E402,F403
from ._programs import *  # noqa: E402,F403
from . import _copies, _names, random  # noqa: E402,F401

if _TYPE_CHECKING:
    from . import data, io, nn, numpy, optim, pipeline

Tensor = _meshard.Tensor
__version__ = _meshard.__version__

_LATE = ("data", "io", "nn", "numpy", "optim", "pipeline")  # imported when they are first used


def __getattr__(name):
    if name in _LATE:
        return _importlib.import_module("." + name, __name__)
    raise _names.missing(__name__, name, __dir__())


def __dir__():
    return sorted({*globals(), *_LATE})
