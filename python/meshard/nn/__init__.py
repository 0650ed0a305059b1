"""Layers, activations, attention, losses."""

__all__ = []
