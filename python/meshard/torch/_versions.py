"""The supported versions of PyTorch."""

import torch

OLDEST = 2, 15

if torch.__version__ < OLDEST:
    raise ImportError(f"[torch] meshard.torch needs PyTorch {OLDEST[0]}.{OLDEST[1]} or newer; this is "
                      f"{torch.__version__}: pip install --upgrade torch")
