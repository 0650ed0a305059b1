"""SPMD programs over device meshes, on any PJRT plugin."""

import os as _os

from . import _meshard

_meshard.set_package_folder(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)

from . import tree  # noqa: E402  (needs the package folder)
from ._dtypes import *  # noqa: E402,F403
from ._errors import *  # noqa: E402,F403
from ._transforms import *  # noqa: E402,F403
from ._mesh import *  # noqa: E402,F403
from ._array import *  # noqa: E402,F403
from ._marking import *  # noqa: E402,F403
from ._runtime import *  # noqa: E402,F403
from ._dlpack import *  # noqa: E402,F403
from ._callbacks import *  # noqa: E402,F403
from ._processes import *  # noqa: E402,F403
from ._reports import *  # noqa: E402,F403
from ._expect import *  # noqa: E402,F403
from ._plan import *  # noqa: E402,F403
from . import data, io, nn, optim, random  # noqa: E402

Tensor = _meshard.Tensor
__version__ = _meshard.__version__
