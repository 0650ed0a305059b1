"""environment.py has a lock file with hashes for every peer, and makes nothing with --existing."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import environment  # noqa: E402

PROGRAM = pathlib.Path(environment.__file__)


def run(*arguments, **variables):
    return subprocess.run([sys.executable, PROGRAM, *arguments], capture_output=True, encoding="utf-8",
                          env={**os.environ, **variables}, check=False)


class Environment(unittest.TestCase):
    def test_every_package_has_a_version_and_a_hash(self):
        for peer in environment.PEERS:
            entries = environment.locked_wheel.read_lock(environment.lock_of(peer))  # rejects other lines
            self.assertIn(peer.replace("_", "-"), entries)
            self.assertIn("numpy", entries)

    def test_existing_makes_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            done = run("jax", "--existing", MESHARD_CACHE=folder)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("jax is not installed", done.stderr)
            self.assertEqual(list(pathlib.Path(folder).iterdir()), [])

    @unittest.skipUnless(importlib.util.find_spec("ensurepip"), "this Python cannot make environments (Debian package python3-venv)")
    def test_a_peer_that_cannot_be_installed_is_one_line(self):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as wheels:
            done = run("jax", MESHARD_CACHE=folder, MESHARD_WHEEL_DIR=wheels)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("environment.py: jax could not be installed", done.stderr)

    def test_unknown_names(self):
        self.assertEqual(run("theano").returncode, 2)
        self.assertEqual(run().returncode, 2)


if __name__ == "__main__":
    unittest.main(verbosity=0)
