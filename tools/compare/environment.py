"""Creates the Python environment with JAX, optax and flax, and prints the path of its interpreter."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "fetch"))
import locked_environment  # noqa: E402

LOCK = pathlib.Path(__file__).with_name("jax.lock")


def existing_interpreter():
    """The environment's python; None if it does not exist yet."""
    return locked_environment.existing_interpreter(LOCK)


if __name__ == "__main__":
    print(locked_environment.interpreter(LOCK))
