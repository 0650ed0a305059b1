"""Programs of JAX of kinds used in practice. Each module has `lower(mesh_devices)`, which returns a jax.stages.Lowered."""
