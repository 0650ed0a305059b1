"""Reads the parameters that the benchmark saved, so that the measured project starts from the same numbers."""

import json

import numpy as np


def read(path):
    """The f32 tensors of a safetensors file, by name."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        start = file.tell()
        tensors = {}
        for name, about in header.items():
            if name == "__metadata__" or about["dtype"] != "F32":
                continue
            first, last = about["data_offsets"]
            file.seek(start + first)
            tensors[name] = np.frombuffer(file.read(last - first), np.float32).reshape(about["shape"])
    return tensors


def nested(tensors):
    """A dictionary of dictionaries, by the parts of the names: `blocks.0.mlp.up.weight`. A level whose keys are
    the numbers 0, 1, ... is a list."""
    root = {}
    for name, value in tensors.items():
        *parts, last = name.split(".")
        at = root
        for part in parts:
            at = at.setdefault(part, {})
        at[last] = value

    def with_lists(at):
        if not isinstance(at, dict):
            return at
        if at and all(key.isdigit() for key in at):
            return [with_lists(at[str(i)]) for i in range(len(at))]
        return {key: with_lists(value) for key, value in at.items()}

    return with_lists(root)
