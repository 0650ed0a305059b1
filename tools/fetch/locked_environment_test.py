"""An environment has the packages of its lock file, is made once, and is not made from a package with another hash."""

import hashlib
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import locked_environment  # noqa: E402


def make_wheel(folder, name, text):
    """A wheel of one module; its hash."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    about = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}.py", text)
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", f"{name}.py,,\n{about}/METADATA,,\n{about}/WHEEL,,\n{about}/RECORD,,\n")
    return hashlib.sha256(path.read_bytes()).hexdigest()


@unittest.skipUnless(importlib.util.find_spec("ensurepip"), "this Python cannot make environments (Debian package python3-venv)")
class LockedEnvironment(unittest.TestCase):
    def test_an_environment_of_a_folder_of_wheels(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            digest = make_wheel(folder, "meshard_probe", "answer = 42\n")
            os.environ.update(MESHARD_CACHE=str(folder / "cache"), MESHARD_WHEEL_DIR=str(folder))
            lock = folder / "probe.lock"
            lock.write_text("# Nothing else.\nmeshard_probe==1.0 --hash=sha256:" + "0" * 64 + "\n")
            with self.assertRaises(subprocess.CalledProcessError):
                locked_environment.interpreter(lock)
            self.assertIsNone(locked_environment.existing_interpreter(lock))
            lock.write_text(f"meshard_probe==1.0 --hash=sha256:{digest}\n")
            python = locked_environment.interpreter(lock)
            self.assertEqual(subprocess.check_output([python, "-c", "import meshard_probe; print(meshard_probe.answer)"], encoding="utf-8"), "42\n")
            self.assertEqual(locked_environment.existing_interpreter(lock), python)
            (folder / "meshard_probe-1.0-py3-none-any.whl").unlink()
            self.assertEqual(locked_environment.interpreter(lock), python)  # nothing is installed again


if __name__ == "__main__":
    unittest.main(verbosity=0)
