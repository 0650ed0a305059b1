"""explain, predict, check_sharded, expect and plan."""

__all__ = []
