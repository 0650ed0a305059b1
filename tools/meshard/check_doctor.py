"""Runs `meshard doctor` on a good plugin, on a file that is none, and on nothing."""
import os
import subprocess
import sys
import tempfile

TOOL, FAKE = sys.argv[1:3]


def doctor(*arguments, **environment):
    env = {"PATH": os.environ["PATH"], **environment}
    done = subprocess.run([TOOL, "doctor", *arguments], capture_output=True, text=True, env=env,
                          timeout=60)
    return done.returncode, done.stdout


def expect(outcome, code, *parts):
    if outcome[0] != code:
        sys.exit(f"exit code {outcome[0]}, expected {code}:\n{outcome[1]}")
    for part in parts:
        if part not in outcome[1]:
            sys.exit(f"{part!r} is not in:\n{outcome[1]}")


with tempfile.TemporaryDirectory() as empty:
    expect(doctor(FAKE), 0, "StableHLO   0.9.0 to 1.13.3", "usable", "4 x fake", "1 found, 1 usable")
    expect(doctor(MESHARD_PLUGIN=FAKE, HOME=empty), 0, FAKE, "MESHARD_PLUGIN", "usable",
           "virtual CPUs  works: cpu:8", "TPUs          does not work:")
    expect(doctor(MESHARD_PLUGIN=FAKE, HOME=empty, MESHARD_FAKE_ON_COMPILE="abort"), 0,
           "virtual CPUs  does not work: [compile] the compiler crashed (signal 6)")
    text = os.path.join(empty, "no_plugin.so")
    with open(text, "w", encoding="utf-8") as file:
        file.write("text")
    expect(doctor(text), 1, "cannot load", "mend", "1 found, 0 usable")
    expect(doctor(FAKE, text), 0, "2 found, 1 usable")
    expect(doctor(os.path.join(empty, "absent.so")), 1, "there is no file")
    # The machine may have plugins outside of HOME; what is not there is told with how to get it.
    code, text = doctor(HOME=empty, MESHARD_CACHE=empty)
    if "TPUs          works" not in text and "meshard fetch tpu" not in text:
        sys.exit(text)
expect(doctor(FAKE, MESHARD_FAKE_ON_CREATE="abort"), 1, "crashed (signal 6)")
expect(doctor("--timeout", "0.5", FAKE, MESHARD_FAKE_ON_CREATE="hang"), 1,
       "did not answer within 0.5 s")
print("ok")
