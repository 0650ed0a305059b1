"""Programs of JAX of kinds used in practice. The function `lower(devices)` of each module returns a Lowered."""
