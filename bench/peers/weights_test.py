"""weights.py reads safetensors files and nests their tensors."""

import importlib.util
import json
import pathlib
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))


@unittest.skipUnless(importlib.util.find_spec("numpy"), "this Python has no numpy")
class Weights(unittest.TestCase):
    def test_a_file_is_read_and_nested(self):
        import weights
        header = {"__metadata__": {"a": "b"}, "steps": {"dtype": "I32", "shape": [], "data_offsets": [0, 4]},
                  "blocks.1.up": {"dtype": "F32", "shape": [2, 1], "data_offsets": [4, 12]},
                  "blocks.0.up": {"dtype": "F32", "shape": [1], "data_offsets": [12, 16]},
                  "head": {"dtype": "F32", "shape": [0, 3], "data_offsets": [16, 16]}}
        text = json.dumps(header).encode()
        with tempfile.NamedTemporaryFile() as file:
            file.write(struct.pack("<Q", len(text)) + text + struct.pack("<i3f", 7, 1.5, -2, 4))
            file.flush()
            read = weights.nested(weights.read(file.name))
        self.assertEqual(read["blocks"][1]["up"].tolist(), [[1.5], [-2]])
        self.assertEqual(read["blocks"][0]["up"].tolist(), [4])
        self.assertEqual(read["head"].shape, (0, 3))
        self.assertNotIn("steps", read)


if __name__ == "__main__":
    unittest.main(verbosity=0)
