"""Runs steps of meshard-hardware on the CPU plugin, and on the same one that appears as a GPU.

usage: check_steps.py PROGRAM FAULTY_PLUGIN
"""

import os
import pathlib
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import hardware  # noqa: E402
import steps  # noqa: E402

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost
PROGRAM, FAULTY = sys.argv[1:3]
FETCH = [sys.executable, str(ROOT / "tools" / "fetch" / "fetch_plugin.py"), "--print-path"]
PLUGIN = subprocess.run(FETCH, capture_output=True, encoding="utf-8", check=True).stdout.strip()
passed = 0


def statuses(step, **more):
    environment = {name: value for name, value in os.environ.items() if name != "MESHARD_PLATFORM"}
    done = subprocess.run([PROGRAM, step], capture_output=True, encoding="utf-8", timeout=120,
                          env={**environment, **more})
    if done.returncode != 0:
        sys.exit(f"{step}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    checks = steps.lines_of_checks(done.stdout)
    return {each["name"]: each["status"] for each in checks}, {each["name"]: each.get("text", "") for each in checks}


def expect(what, there, wanted):
    global passed
    if any(there.get(name) != value for name, value in wanted.items()):
        sys.exit(f"{what}: {there}, expected {wanted}")
    passed += 1


if not os.path.isfile(PLUGIN):
    print("skipped: no CPU plugin")
    sys.exit(77)
CPU = {"MESHARD_PLUGIN": PLUGIN}
GPU = {"MESHARD_PLUGIN": FAULTY, "MESHARD_FAULTY_PLUGIN": PLUGIN, "MESHARD_FAULTY_AS": hardware.FAKE_GPU,
       "MESHARD_PLATFORM": "cuda"}
expect("device", statuses("device", **CPU)[1], {"platform": "cpu", "plugin": PLUGIN})
expect("device", statuses("device", **GPU)[1], {"platform": "cuda", "device-kind": "NVIDIA H100 80GB HBM3"})
expect("memory", statuses("memory", **GPU)[0], {"live-bytes": "passed", "allocator": "unsupported", "end": "passed"})
expect("FFI", statuses("ffi", **CPU)[0], {"handler": "passed", "unknown-target": "passed"})
expect("FFI", statuses("ffi", **GPU)[0], {"handler": "unsupported"})
expect("host calls", statuses("host-calls", **CPU)[0],
       {"debug-print": "passed", "callback": "passed", "nan-check": "passed"})
expect("host calls", statuses("host-calls", **GPU)[0],
       {"debug-print": "unsupported", "callback": "unsupported", "nan-check": "unsupported"})
if subprocess.run([PROGRAM, "nonsense"], capture_output=True).returncode != 2:
    sys.exit("an unknown step is accepted")
print(f"{passed + 1} passed, 0 failed")
