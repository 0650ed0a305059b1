"""Devices, counters, waiting, transfers and processes."""

__all__ = []
