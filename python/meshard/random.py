"""Random numbers."""

__all__ = []
