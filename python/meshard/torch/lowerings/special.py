"""Special."""
