"""Optimizers."""

__all__ = []
