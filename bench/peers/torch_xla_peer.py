#!/usr/bin/env python3
"""The works of torch_xla, on its own virtual CPU devices: calls, recording, and the programs of torch_models.py.

usage: torch_xla_peer.py [DEVICES]
"""

import os
import sys
import time
import warnings

import protocol
import torch_models


def start():
    warnings.simplefilter("ignore")
    import torch
    import torch_xla
    import torch_xla.runtime
    torch.set_num_threads(1)
    torch_xla.runtime.use_spmd()
    torch_xla.device()
    return torch, torch_xla


def hello():
    version = start()[1].__version__
    return {"project": f"torch_xla {version.split('+')[0]}", "client": "its own CPU devices"}, lambda: None


def parameters(count, devices, calls=24):
    """`count` parameters of 8 x 8, sharded by rows; a step halves them and adds 1, in place. The seconds of one step."""
    torch, torch_xla = start()
    import numpy as np
    import torch_xla.core.xla_model as model
    import torch_xla.distributed.spmd as spmd
    mesh = spmd.Mesh(np.arange(devices), (devices,), ("tp",))
    tensors = [torch.ones(8, 8).to("xla") for _ in range(count)]
    for each in tensors:
        spmd.mark_sharding(each, mesh, ("tp", None))

    def run():
        begin = time.perf_counter()
        for _ in range(calls):
            for each in tensors:
                each.mul_(0.5).add_(1.0)
            torch_xla.sync()
            model.wait_device_ops()
        return (time.perf_counter() - begin) / calls

    run()
    return {}, run


def record(ops):
    """A chain of additions that is recorded and not run. The seconds of one."""
    torch, _ = start()
    x, y = torch.ones(64, 64).to("xla"), torch.ones(64, 64).to("xla")

    def run():
        z = x
        begin = time.perf_counter()
        for _ in range(ops):
            z = z + y
        return (time.perf_counter() - begin) / ops

    run()
    return {}, run


class TorchXla:
    """On one device, or as data x model on all of them; see torch_programs.Eager."""

    def __init__(self, data=1, model=1):
        self._torch, self._torch_xla = start()
        import numpy as np
        import torch_xla.distributed.spmd as spmd
        self._spmd = spmd
        self._mesh = spmd.Mesh(np.arange(data * model), (data, model), ("data", "model"))

    def _marked(self, tensor, spec):
        self._spmd.mark_sharding(tensor, self._mesh, (*spec, *[None] * (tensor.ndim - len(spec))))
        return tensor

    def shard(self, module, spec_of):
        module.to("xla")
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            self._marked(tensor, spec_of(name) or ())

    def whole(self, tensor):
        return self._marked(tensor.to("xla"), ())

    def batch(self, tensor):
        return self._marked(tensor.to("xla"), ("data",))

    def _synced(self, step):
        def synced(*arguments, **named):
            value = step(*arguments, **named)
            self._torch_xla.sync()
            return value

        return synced

    def train_step(self, model, loss, optimizer):
        import torch_programs
        return self._synced(torch_programs.train_step(model, loss, optimizer))

    def inference(self, module):
        return self._synced(self._torch.no_grad()(module))

    def wait(self, value):
        import torch_xla.core.xla_model
        torch_xla.core.xla_model.wait_device_ops()


WORKS = {"hello": hello, "parameters": parameters, "record": record, **torch_models.works(TorchXla)}

if __name__ == "__main__":
    DEVICES = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    os.environ.update(PJRT_DEVICE="CPU", CPU_NUM_DEVICES=str(DEVICES), TF_CPP_MIN_LOG_LEVEL="3")
    protocol.serve(WORKS)
