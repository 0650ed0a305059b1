"""Sharding annotations, manual regions and sharded tensors."""

__all__ = []
