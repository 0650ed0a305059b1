"""Files: checkpoints, safetensors and npy."""

__all__ = []
