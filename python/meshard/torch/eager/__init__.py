"""The device "meshard": PyTorch programs that are written eagerly, recorded, and run on meshes."""
