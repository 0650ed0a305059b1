#!/usr/bin/env python3
"""The works of PyTorch: DeviceMesh, layouts, and greedy decoding.

usage: torch_peer.py
"""

import protocol
import torch_gpt
import torch_mesh


def hello():
    import torch
    return {"project": f"PyTorch {torch.__version__.split('+')[0]}", "client": f"{torch.get_num_threads()} threads"}, lambda: None


WORKS = {"hello": hello, "mesh": torch_mesh.mesh, "layout": torch_mesh.layout, "decode": torch_gpt.decode}

if __name__ == "__main__":
    protocol.serve(WORKS)
