"""Meshes, layouts, specs, shardings and topologies."""

__all__ = []
