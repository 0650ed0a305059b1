#!/usr/bin/env python3
"""The works of PyTorch: DeviceMesh, layouts, greedy decoding, and the programs of torch_models.py.

usage: torch_peer.py
"""

import protocol
import torch_gpt
import torch_mesh
import torch_programs


def hello():
    import torch
    return {"project": f"PyTorch {torch.__version__.split('+')[0]}", "client": f"{torch.get_num_threads()} threads"}, lambda: None


WORKS = {"hello": hello, "mesh": torch_mesh.mesh, "layout": torch_mesh.layout, "decode": torch_gpt.decode,
         **torch_programs.WORKS}

if __name__ == "__main__":
    protocol.serve(WORKS)
