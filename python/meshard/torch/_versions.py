"""The versions of PyTorch that work."""

import torch

OLDEST = 2, 15

if torch.__version__ < OLDEST:
    raise ImportError(f"[torch] meshard.torch needs PyTorch {'.'.join(map(str, OLDEST))} or newer; this is {torch.__version__}: "
                      "pip install --upgrade torch")
