"""PyTorch's DeviceMesh and its layout algebra, seen from one rank, without creating process groups."""

import time

_STARTED = {}


def _torch(ranks):
    """PyTorch with a fake process group of this size, of which it can have one."""
    if _STARTED.get("ranks") != ranks:
        import logging

        import torch
        import torch.distributed as dist
        from torch.distributed.device_mesh import DeviceMesh
        from torch.testing._internal.distributed.fake_pg import FakeStore
        logging.disable(logging.CRITICAL)
        if dist.is_initialized():
            dist.destroy_process_group()
        dist.init_process_group(backend="fake", rank=ranks // 2 + 3, world_size=ranks, store=FakeStore())
        name = dist.distributed_c10d._get_default_group().group_name
        DeviceMesh._init_process_groups = staticmethod(lambda layout, *args, **kwargs: [name] * len(layout))
        _STARTED.update(ranks=ranks, torch=torch)
    return _STARTED["torch"]


def _each(work, times):
    """A run: `work` that many times, the seconds of one."""

    def run():
        begin = time.perf_counter()
        for _ in range(times):
            work()
        return (time.perf_counter() - begin) / times

    return run


def mesh(operation, ranks, times):
    """One operation on the mesh (dp, cp, tp) = (ranks / 64, 8, 8)."""
    torch = _torch(ranks)
    from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
    shape, names = (ranks // 64, 8, 8), ("dp", "cp", "tp")
    make = lambda: init_device_mesh("cpu", shape, mesh_dim_names=names)  # noqa: E731
    root, made = make(), [0]
    ids = ((torch.arange(ranks, dtype=torch.int64) * 1103515245 + 12345) % ranks).to(torch.int32).view(shape)
    dp_cp, dp_tp, tp, dp = root["dp", "cp"], root["dp", "tp"], root["tp"], root["dp"]

    def flatten(part):
        made[0] += 1
        part._flatten(f"f{made[0]}")

    works = {
        "chain": lambda: make()["dp", "tp"]._flatten("f"),
        "listed": lambda: DeviceMesh("cpu", ids, mesh_dim_names=names),
        "slice_tp": lambda: root["tp"],
        "slice_dp_tp": lambda: root["dp", "tp"],
        "flatten_dp_cp": lambda: flatten(dp_cp),
        "flatten_dp_tp": lambda: flatten(dp_tp),
        "unflatten": lambda: root._unflatten(0, (2, ranks // 128), ("a", "b")),
        "concatenate": lambda: DeviceMesh._concatenate([tp, dp]),
    }
    run = _each(works[operation], times)
    run()
    return {}, run


def layout(operation, times):
    """One operation of the layout algebra."""
    import torch.distributed._pycute as cute
    from torch.distributed._pycute import Layout
    four, two = Layout((16, 8, 8, 16), (1024, 128, 16, 1)), Layout((16, 16), (1024, 1))
    nested = Layout(((2, 2, 2), (2, 2, 2)), ((1, 16, 4), (8, 2, 32)))
    inner, left, line, tile = Layout((4, 4, 16)), Layout((4, 2), (1, 16)), Layout(64), Layout(8)
    works = {
        "coalesce": lambda: cute.coalesce(four),
        "composition": lambda: cute.composition(two, inner),
        "complement": lambda: cute.complement(two, 16384),
        "right_inverse": lambda: cute.right_inverse(nested),
        "left_inverse": lambda: cute.left_inverse(left),
        "logical_divide": lambda: cute.logical_divide(line, tile),
        "value": lambda: nested(37),
    }
    run = _each(works[operation], times)
    run()
    return {}, run
