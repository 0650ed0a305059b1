"""torch_xla.distributed.parallel_loader."""

import torch

from . import _model, _top


class ParallelLoader:
    """The batches of a loader on the device, sharded by `input_sharding`: a ShardingSpec, or a dictionary of them."""

    def __init__(self, cpu_loader, devices, batchdim=0, batches_per_execution=1, loader_prefetch_size=16,
                 device_prefetch_size=8, host_to_device_transfer_threads=1, input_sharding=None):
        self._loader, self._device, self._input_sharding = cpu_loader, torch.device(devices[0]), input_sharding
        self.batches_per_execution = batches_per_execution

    def per_device_loader(self, device):
        return self._batches()

    def per_device_samples(self):
        return len(self._loader)

    def close(self):
        """Nothing."""

    def _batches(self):
        for i, batch in enumerate(self._loader):
            if i % self.batches_per_execution == 0:
                _top.sync()
            with torch.no_grad():
                made = self._sent(batch)
            yield made
        _top.sync()

    def _sent(self, batch):
        specs = self._input_sharding
        if not isinstance(specs, dict):
            sent = _model.send_cpu_data_to_device(batch, self._device, specs)
            return sent[0] if isinstance(batch, torch.Tensor) else sent
        if not isinstance(batch, dict):
            raise ValueError(f"input batch should be a dict when input sharding is a dict, not {type(batch).__name__}")
        missing = [key for key in batch if key not in specs]
        if missing:
            raise KeyError(f"Keys: {missing} are missing from input_sharding.")
        return {key: _model.send_cpu_data_to_device(each, self._device, specs[key])[0] for key, each in batch.items()}


class MpDeviceLoader:
    """A loader whose batches are on the device. Each new batch runs the operations recorded for the one before."""

    def __init__(self, loader, device, **kwargs):
        self._loader, self._device, self._arguments = loader, device, kwargs

    def __iter__(self):
        return ParallelLoader(self._loader, [self._device], **self._arguments).per_device_loader(self._device)

    def __len__(self):
        return len(self._loader)
