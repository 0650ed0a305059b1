"""The array API: the functions of the standard, version 2024.12, and the general ops beside them."""

import math as _math

from . import _tensor, fft, linalg  # noqa: F401
from ._array_api import (
    creation,
    data_types,
    elementwise,
    indexing,
    info,
    linear_algebra,
    manipulation,
    others,
    searching,
    set_functions,
    sorting,
    statistical,
    utility,
)
from ._array_api.creation import *  # noqa: F403
from ._array_api.data_types import *  # noqa: F403
from ._array_api.elementwise import *  # noqa: F403
from ._array_api.indexing import *  # noqa: F403
from ._array_api.info import *  # noqa: F403
from ._array_api.linear_algebra import *  # noqa: F403
from ._array_api.manipulation import *  # noqa: F403
from ._array_api.others import *  # noqa: F403
from ._array_api.searching import *  # noqa: F403
from ._array_api.set_functions import *  # noqa: F403
from ._array_api.sorting import *  # noqa: F403
from ._array_api.statistical import *  # noqa: F403
from ._array_api.utility import *  # noqa: F403

e, inf, nan, newaxis, pi = _math.e, _math.inf, _math.nan, None, _math.pi

__all__ = ["e", "fft", "inf", "linalg", "nan", "newaxis", "pi"]
for _chapter in (creation, data_types, elementwise, indexing, info, linear_algebra, manipulation, others, searching,
                 set_functions, sorting, statistical, utility):
    __all__ += _chapter.__all__
