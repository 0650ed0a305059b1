"""new_op.py writes a complete op in the right place, or nothing."""

import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import new_op  # noqa: E402

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = "#pragma once\n/// e to the power\n/// of x.\nTensor exp(In x);\n"
SOURCE = ('#include "meshard/ops/exp.h"\nconst OpDef exp_op = {.name = "exp",\n  .doc = "e to the power "\n'
          '         "of x.",\n  .emit = write("stablehlo.exponential")};\n')
LIST = "// All ops.\nMESHARD_OP(add)\nMESHARD_OP(exp)\nMESHARD_OP(tanh)\n"


class NewOp(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.ops = self.root / "meshard" / "ops"
        self.ops.mkdir(parents=True)
        for name, text in {"exp.h": HEADER, "exp.cc": SOURCE, "op_list.inc": LIST}.items():
            (self.ops / name).write_text(text)

    def tearDown(self):
        self.folder.cleanup()

    def test_writes_all_files(self):
        new_op.new_op(self.root, "log_add", "exp")
        self.assertEqual((self.ops / "op_list.inc").read_text(encoding="utf-8"),
                         LIST.replace("MESHARD_OP(tanh)", "MESHARD_OP(log_add)\nMESHARD_OP(tanh)"))
        self.assertEqual((self.ops / "log_add.h").read_text(encoding="utf-8"),
                         "#pragma once\n/// What log_add computes.\nTensor log_add(In x);\n")
        source = (self.ops / "log_add.cc").read_text(encoding="utf-8")
        self.assertIn('log_add_op = {.name = "log_add",\n  .doc = "",', source)
        self.assertIn("stablehlo.exponential", source)
        self.assertIn("TEST(LogAdd, SpecialCases) { FAIL()", (self.ops / "log_add_test.cc").read_text(encoding="utf-8"))

    def test_first_and_last_place(self):
        self.assertTrue(new_op.add_to_list(LIST, "abs").startswith("// All ops.\nMESHARD_OP(abs)\nMESHARD_OP(add)"))
        self.assertTrue(new_op.add_to_list(LIST, "where").endswith("(tanh)\nMESHARD_OP(where)\n"))

    def refused(self, name, like, text):
        before = sorted(p.name for p in self.ops.iterdir())
        with self.assertRaisesRegex(new_op.NewOpError, text):
            new_op.new_op(self.root, name, like)
        self.assertEqual(sorted(p.name for p in self.ops.iterdir()), before)

    def test_refuses(self):
        self.refused("LogAdd", "exp", "snake_case")
        self.refused("log", "sin", "the template meshard/ops/sin.h")
        self.refused("exp", "exp", "exp.h already exists")
        self.refused("tanh", "exp", "already contains tanh")

    def test_order_of_the_real_list(self):
        text = (ROOT / "meshard" / "ops" / "op_list.inc").read_text(encoding="utf-8")
        self.assertIn("MESHARD_OP(zzz)", new_op.add_to_list(text, "zzz"))

    @unittest.skipUnless((ROOT / "meshard" / "ops" / "exp.cc").exists(), "no model op")
    def test_the_real_model_compiles_under_a_new_name(self):
        for suffix in (".h", ".cc"):
            text = (ROOT / "meshard" / "ops" / ("exp" + suffix)).read_text(encoding="utf-8")
            (self.ops / ("zzz" + suffix)).write_text(new_op.renamed(text, "exp", "zzz"))
        done = subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-I", str(self.root), "-I", str(ROOT),
                               str(self.ops / "zzz.cc")], capture_output=True, encoding="utf-8")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=0)
