#!/usr/bin/env python3
"""The works of meshard.torch, in the environment of PyTorch.

usage: meshard_torch_peer.py PLUGIN DEVICES PYTHON

PYTHON is the interpreter of an environment with our package.
"""

import pathlib
import sys

import protocol
import torch_models

OPTIONS = {"plugin": "", "devices": 8}


def start():
    import meshard as ms
    if not OPTIONS.get("configured"):
        OPTIONS["configured"] = True
        ms.configure_runtime(plugin=OPTIONS["plugin"], cpu_devices=OPTIONS["devices"])
    import meshard.torch as mt
    return ms, mt


def hello():
    import torch
    start()
    return {"project": f"meshard with PyTorch {torch.__version__.split('+')[0]}", "client": "the same plugin"}, lambda: None


class Meshard:
    """On one device, or as data x model on all of them; see torch_programs.Eager."""

    def __init__(self, data=1, model=1):
        self._ms, self._mt = start()
        self._mesh = self._ms.Mesh({"data": data, "model": model}) if data * model > 1 else None
        self._state = []

    def shard(self, module, spec_of):
        named = [*module.named_parameters(), *module.named_buffers()]
        self._state = [each for _, each in named]
        if self._mesh is not None:
            for name, tensor in named:
                self._mt.mark_sharding(tensor, self._mesh, self._ms.P(*(spec_of(name) or ())))

    def whole(self, tensor):
        return tensor

    def batch(self, tensor):
        return tensor if self._mesh is None else self._mt.mark_sharding(tensor, self._mesh, self._ms.P("data"))

    def train_step(self, model, loss, optimizer):
        return self._mt.train_step(model, loss, optimizer)

    def inference(self, module):
        import torch
        return torch.inference_mode()(self._mt.compile(module))

    def wait(self, value):
        held = [each.value for each in (value, *self._state) if isinstance(each, self._mt.Held)]
        self._ms.block_until_ready(held)


WORKS = {"hello": hello, **torch_models.works(Meshard)}

if __name__ == "__main__":
    OPTIONS.update(plugin=sys.argv[1], devices=int(sys.argv[2]))
    sys.path[:0] = [str(each) for each in (pathlib.Path(sys.argv[3]).parents[1] / "lib").glob("python*/site-packages")]
    protocol.serve(WORKS)
