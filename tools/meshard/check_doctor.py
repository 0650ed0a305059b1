"""Runs `meshard doctor` on a working plugin, on a file that is not a plugin, and on no file."""
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost

TOOL, FAKE = sys.argv[1:3]


def doctor(*arguments, **environment):
    env = {"PATH": os.environ["PATH"], **environment}
    done = subprocess.run([TOOL, "doctor", *arguments], capture_output=True, encoding="utf-8", env=env,
                          timeout=60)
    return done.returncode, done.stdout + done.stderr


def expect(outcome, code, *parts):
    if outcome[0] != code:
        sys.exit(f"exit code {outcome[0]}, expected {code}:\n{outcome[1]}")
    for part in parts:
        if part not in outcome[1]:
            sys.exit(f"{part!r} is not in:\n{outcome[1]}")


with tempfile.TemporaryDirectory() as empty:
    expect(doctor(FAKE), 0, "StableHLO   0.9.0 to 1.13.3", "usable", "4 x fake", "1 found, 1 usable")
    # Of the fake plugin, whose platform has no row of its own.
    expect(doctor(FAKE), 0, "count for this plugin (--quirks lists them)")
    expect(doctor(FAKE, "--quirks"), 0, "window-fills: ", "of two pads", "Seen: CPU plugins of API 0.81")
    expect(doctor(FAKE, MESHARD_QUIRKS="-window-fills,+launch-queue"), 0,
           "; MESHARD_QUIRKS turns off window-fills; MESHARD_QUIRKS adds launch-queue")
    expect(doctor(FAKE, MESHARD_QUIRKS="-window-fill"), 1, "no quirk", '"window-fills"')
    if "launch-queue: " in doctor(FAKE, "--quirks")[1]:
        sys.exit("a row for CPUs counts for the fake plugin")
    expect(doctor(MESHARD_PLUGIN=FAKE, HOME=empty), 0, FAKE, "MESHARD_PLUGIN", "usable",
           "virtual CPUs  works: cpu:8", "TPUs          does not work:")
    expect(doctor(MESHARD_PLUGIN=FAKE, HOME=empty, MESHARD_FAKE_ON_COMPILE="abort"), 0,
           "virtual CPUs  does not work: [compile] the compiler crashed (signal 6)")
    # Output of a plugin does not interrupt the lines about it, and is shown if the plugin fails.
    code, shown = doctor(FAKE, MESHARD_FAKE_ON_CREATE="0 a warning of the plugin")
    if code != 0 or "a warning of the plugin" in shown:
        sys.exit(shown)
    expect(doctor(FAKE, MESHARD_FAKE_ON_CREATE="5 a warning of the plugin"), 1, "log         ", "a warning of the plugin")
    # A plugin that others can write is not loaded, nor is one that changed since it was fetched.
    cached = os.path.join(empty, "cache", "plugins", "fake-1")
    os.makedirs(cached)
    copy = shutil.copy(FAKE, os.path.join(cached, "fake_cpu_pjrt.so"))
    os.chmod(copy, 0o666)
    expect(doctor(copy), 1, "is not trusted", "0666", "nobody else write")
    os.chmod(copy, 0o644)
    cache = {"HOME": empty, "MESHARD_CACHE": os.path.join(empty, "cache")}
    expect(doctor(**cache), 0, copy, "hash        not recorded; `meshard fetch cpu`")
    with open(copy, "rb") as file:
        right = hashlib.sha256(file.read()).hexdigest()
    for digest, part in ((right, "recalculated; unchanged"), ("0" * 64, "changed since it was fetched")):
        with open(copy + ".fetched", "w", encoding="utf-8") as file:
            file.write(f"meshard fetched 1\nsha256 {digest}\nsize 1\ntime 1\nowner 1\n")
        code, shown = doctor(**cache)
        if part not in shown:
            sys.exit(shown)
    text = os.path.join(empty, "no_plugin.so")
    with open(text, "w", encoding="utf-8") as file:
        file.write("text")
    expect(doctor(text), 1, "cannot load", "fix", "1 found, 0 usable")
    expect(doctor(FAKE, text), 0, "2 found, 1 usable")
    expect(doctor(os.path.join(empty, "absent.so")), 1, "there is no file")
    # The machine may have plugins outside of HOME. For missing plugins, doctor shows how to get
    # them.
    code, text = doctor(HOME=empty, MESHARD_CACHE=empty)
    if "TPUs          works" not in text and "meshard fetch tpu" not in text:
        sys.exit(text)
expect(doctor(FAKE, MESHARD_FAKE_ON_CREATE="abort"), 1, "crashed (signal 6)")
expect(doctor("--timeout", "0.5", FAKE, MESHARD_FAKE_ON_CREATE="hang"), 1,
       "did not answer within 0.5 s")
print("ok")
