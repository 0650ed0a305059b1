"""python_package.py reads what pytest reports."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import python_package  # noqa: E402

REPORT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite name="pytest" tests="6">
<testcase classname="python.tests.test_a" name="test_one"/>
<testcase classname="python.tests.test_a.TestClass" name="test_two[x.y-1]"/>
<testcase classname="python.tests.test_a" name="test_fails"><failure message="no">text</failure></testcase>
<testcase classname="python.tests.test_a" name="test_broken"><error message="no">text</error></testcase>
<testcase classname="python.tests.test_a.TestClass" name="test_jax"><skipped message="could not import 'jax': No module"/></testcase>
<testcase classname="" name="python.tests.test_b"><skipped message="collection skipped">('b.py', 1, "Skipped: could not import 'jax'")</skipped></testcase>
</testsuite></testsuites>
"""


class Report(unittest.TestCase):
    def test_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "report.xml"
            file.write_text(REPORT, encoding="utf-8")
            counts = python_package.Counts(file)
        self.assertEqual((counts.passed, counts.failed), (2, 2))
        self.assertEqual([node for node, _ in counts.skipped],
                         ["python/tests/test_a.py::TestClass::test_jax", "python/tests/test_b.py"])
        self.assertTrue(all(python_package.needs("jax", reason) for _, reason in counts.skipped))

    def test_what_the_environment_of_jax_has(self):
        self.assertTrue(python_package.needs("jax", "could not import 'jax': No module named 'jax'"))
        self.assertTrue(python_package.needs("jax", "could not import 'jax.numpy': No module named 'jax'"))
        self.assertTrue(python_package.needs("jax", "could not import 'optax': No module named 'optax'"))
        self.assertFalse(python_package.needs("jax", "could not import 'torch': No module named 'torch'"))
        self.assertTrue(python_package.needs("torch", "could not import 'torch': No module named 'torch'"))
        self.assertFalse(python_package.needs("torch", "could not import 'torchvision': No module named 'torchvision'"))
        self.assertFalse(python_package.needs("jax", "needs MPI"))

    def test_a_missing_wheel_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            before, python_package.WHEELS = python_package.WHEELS, pathlib.Path(folder)
            try:
                with self.assertRaisesRegex(python_package.locked_wheel.FetchError, "./dev wheel"):
                    python_package.the_wheel()
            finally:
                python_package.WHEELS = before


if __name__ == "__main__":
    unittest.main(verbosity=0)
