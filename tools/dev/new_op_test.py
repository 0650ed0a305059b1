"""new_op.py writes a complete op in the right place, or nothing."""

import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import new_op  # noqa: E402

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = "#pragma once\n/// e to the power\n/// of x.\nTensor {op}(In x);\n"
SOURCE = ('#include "meshard/ops/{op}.h"\nextern constinit const OpDef {op}_op = {{.name = "{op}",\n'
          '  .doc = "e to the power "\n         "of x.",\n  .emit = write("stablehlo.exponential")}};\n\n'
          "Tensor {op}(In x) {{\n  return x;\n}}\n")


class NewOp(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.ops = self.root / "meshard" / "ops"
        self.ops.mkdir(parents=True)
        self.table = self.root / new_op.TABLE
        self.samples = self.root / new_op.SAMPLES
        self.samples.parent.mkdir(parents=True)
        self.attributes = self.root / new_op.ATTRIBUTES
        self.attributes.parent.mkdir()
        self.write({self.attributes: "struct SortAttributes {\n  int keys;\n};\n\nstruct PadAttributes {\n};\n",
                    self.ops / "sort.h": HEADER.format(op="sort"), self.ops / "sort.cc": SOURCE.format(op="sort"),
                    self.ops / "family.h": "#pragma once\n\n/// e to the power\n/// of x.\nTensor exp(In x);\n\n"
                                           "/// x\nTensor log(In x);\n",
                    self.ops / "family.cc": SOURCE.format(op="exp") + "\n" + SOURCE.format(op="log"),
                    self.table: '  ops = {\n      {"exp", exp, "m",\n       f},\n      {"log", log},\n  };\n',
                    self.samples: '  samples{\n      {"exp", unary(exp)},\n      {"log", unary(log)},\n  };\n'})

    def tearDown(self):
        self.folder.cleanup()

    def write(self, texts):
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")

    def read(self, name):
        return (self.ops / name).read_text(encoding="utf-8")

    def test_own_files(self):
        new_op.new_op(self.root, "log_add", "sort")
        self.assertEqual(self.read("log_add.h"), "#pragma once\n/// What log_add computes.\nTensor log_add(In x);\n")
        self.assertIn('log_add_op = {.name = "log_add",\n  .doc = "",', self.read("log_add.cc"))
        self.assertIn("stablehlo.exponential", self.read("log_add.cc"))
        self.assertEqual(self.attributes.read_text(encoding="utf-8"),
                         "struct SortAttributes {\n  int keys;\n};\n\nstruct LogAddAttributes {\n  int keys;\n};\n\n"
                         "struct PadAttributes {\n};\n")
        self.assertIn("TEST(LogAdd, SpecialCases) { FAIL()", self.read("log_add_test.cc"))

    def test_in_a_family(self):
        for model in ("exp", "log"):
            new_op.new_op(self.root, f"new_{model}", model)
        self.assertEqual(self.read("family.h"),
                         "#pragma once\n\n/// e to the power\n/// of x.\nTensor exp(In x);\n\n"
                         "/// What new_exp computes.\nTensor new_exp(In x);\n\n/// x\nTensor log(In x);\n\n"
                         "/// What new_log computes.\nTensor new_log(In x);\n")
        source = self.read("family.cc")
        for op in ("exp", "new_exp", "log", "new_log"):
            self.assertEqual(source.count(f'OpDef {op}_op = {{.name = "{op}"'), 1)
            self.assertEqual(source.count(f"Tensor {op}(In x) {{\n  return x;\n}}\n"), 1)
        self.assertEqual(self.table.read_text(encoding="utf-8"),
                         '  ops = {\n      {"exp", exp, "m",\n       f},\n      {"new_exp", new_exp, "m",\n       f},\n'
                         '      {"log", log},\n      {"new_log", new_log},\n  };\n')
        self.assertIn('{"new_exp", unary(new_exp)},\n      {"log", unary(log)},\n      {"new_log", unary(new_log)},\n',
                      self.samples.read_text(encoding="utf-8"))

    def refused(self, name, like, text):
        before = sorted(p.name for p in self.ops.iterdir())
        with self.assertRaisesRegex(new_op.NewOpError, text):
            new_op.new_op(self.root, name, like)
        self.assertEqual(sorted(p.name for p in self.ops.iterdir()), before)

    def test_refuses(self):
        self.refused("LogAdd", "exp", "snake_case")
        self.refused("log_add", "sin", "declares sin")
        self.refused("exp", "exp", "family.h already declares exp")
        (self.ops / "log_add_test.cc").write_text("", encoding="utf-8")
        self.refused("log_add", "sort", "already exists")
        self.table.write_text("", encoding="utf-8")
        self.refused("log_add", "exp", "element_wise_table.h does not define exp")

    @unittest.skipUnless((ROOT / "meshard" / "ops" / "exponential.cc").exists(), "no model op")
    def test_the_real_model_compiles_under_a_new_name(self):
        for path in (new_op.OPS / "exponential.h", new_op.OPS / "exponential.cc", new_op.TABLE, new_op.SAMPLES):
            shutil.copy(ROOT / path, self.root / path)
        new_op.new_op(self.root, "zzz", "exp")
        self.assertIn('{"zzz", zzz, "stablehlo.exponential"', self.table.read_text(encoding="utf-8"))
        # CTest runs this inside the build, which has generated headers.
        generated = next((each / "include" for each in (pathlib.Path.cwd(), *pathlib.Path.cwd().parents, ROOT / "build")
                          if (each / "include" / "meshard").exists()), ROOT)
        done = subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-I", str(self.root), "-I", str(ROOT),
                               "-I", str(generated), str(self.ops / "exponential.cc")],
                              capture_output=True, encoding="utf-8")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=0)
