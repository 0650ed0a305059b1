import os as _os
import numpy as _np
import ml_dtypes as _ml
from . import _meshard
_meshard.set_package_folder(_os.path.dirname(__file__) + _os.sep)
_meshard.set_dtype_objects([_np.dtype(d) for d in (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", _ml.bfloat16,
    "float32", "float64", _ml.float8_e4m3fn, _ml.float8_e5m2, _ml.float8_e4m3, _ml.float8_e3m4, _ml.float8_e4m3fnuz,
    _ml.float8_e5m2fnuz, _ml.float8_e4m3b11fnuz, _ml.float8_e8m0fnu, "complex64", "complex128")])
_meshard.set_numpy_types(_np.ndarray, _np.generic)
Tensor = _meshard.Tensor
