"""odd_machine.py imitates the machines as described, and counts failures there."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

ODD = pathlib.Path(__file__).resolve().parent / "odd_machine.py"
sys.path.insert(0, str(ODD.parent))
import odd_machine  # noqa: E402

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost


class OddMachine(unittest.TestCase):
    def inside(self, machine, script, program=("/bin/sh", "-c"), **environment):
        can, why = odd_machine.possible(machine)
        if not can:
            self.skipTest(why)
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, str(ODD), "--inside", machine, *program, script],
                                  capture_output=True, encoding="utf-8", env={**os.environ, "TMPDIR": folder, **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def test_flags_are_added(self):
        self.assertEqual(self.inside("avx2", 'echo "$XLA_FLAGS"', XLA_FLAGS="--a=1"), "--a=1 --xla_cpu_max_isa=AVX2")
        self.assertEqual(self.inside("avx", 'echo "$XLA_FLAGS"', XLA_FLAGS=""), "--xla_cpu_max_isa=AVX")

    def test_one_core(self):
        self.assertEqual(self.inside("one-core", "nproc"), "1")

    def test_signals(self):
        # Runs grep directly, because a shell would set SIGCHLD for itself.
        ignored = int(self.inside("signals", "/proc/self/status", ("grep", "SigIgn")).split()[1], 16)
        for number in (2, 17):
            self.assertTrue(ignored >> (number - 1) & 1, number)

    def test_no_home(self):
        self.assertEqual(self.inside("no-home", 'echo "${HOME-none} ${MESHARD_CACHE-none}"', MESHARD_CACHE="/x"), "none none")

    def test_read_only_cache(self):
        with tempfile.TemporaryDirectory() as cache:
            script = 'touch "$MESHARD_CACHE/x" 2>/dev/null && echo written || echo refused'
            self.assertEqual(self.inside("read-only-cache", script, MESHARD_CACHE=cache), "refused")

    def test_user(self):
        with tempfile.TemporaryDirectory() as cache:
            self.assertEqual(self.inside("user", 'id -u; touch "$TMPDIR/x" "$HOME/x"', MESHARD_CACHE=cache), "65534")

    def test_path(self):
        with tempfile.TemporaryDirectory() as cache:
            script = f'test -f "{odd_machine.ROOT}/dev" && echo "{odd_machine.ROOT}/dev"'
            found = self.inside("path", script, MESHARD_CACHE=cache)
            self.assertIn(" ", found)
            self.assertFalse(found.isascii())

    def test_locale(self):
        self.assertEqual(self.inside("locale", 'echo "$LC_ALL ${LANG-none}"', LANG="de_DE.UTF-8"), "C none")

    def test_memory(self):
        script = f"{sys.executable} -c 'bytearray(2 << 30)' 2>/dev/null && echo enough || echo refused"
        self.assertEqual(self.inside("memory", script), "refused")

    def test_other_plugins(self):
        with tempfile.TemporaryDirectory() as cache:
            there = pathlib.Path(cache) / "plugins" / "xla_cpu_pjrt-0.0.1" / "xla_cpu_pjrt.so"
            there.parent.mkdir(parents=True)
            there.touch()
            self.assertEqual(self.inside("xla-cpu-pjrt", 'echo "$MESHARD_PLUGIN"', MESHARD_CACHE=cache), str(there))

    def test_counts(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "a").write_text("#!/bin/sh\ntest $(nproc) = 1\n")
            (root / "b").write_text("#!/bin/sh\ntest $(nproc) = 0\n")
            for name in "ab":
                (root / name).chmod(0o755)
            (root / "CTestTestfile.cmake").write_text("".join(f'add_test({name} "{root / name}")\n' for name in "ab"))
            done = subprocess.run([sys.executable, str(ODD), "--build", folder, "one-core"], capture_output=True, encoding="utf-8")
            self.assertEqual((done.returncode, done.stdout.strip().split("\n")[-1]), (1, "1 passed, 1 failed"), done.stdout)
            done = subprocess.run([sys.executable, str(ODD), "--build", folder, "one-core", "^a"], capture_output=True, encoding="utf-8")
            self.assertEqual((done.returncode, done.stdout.strip().split("\n")[-1]), (0, "1 passed, 0 failed"), done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=0)
