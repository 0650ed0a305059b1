"""Checks `meshard launch`: what processes get, how output, signals, losses and restarts are handled, and that nothing is left.

usage: check_launch.py TOOL
"""
import os
import re
import signal
import subprocess
import sys
import time

from expectations import Checks

# A shell starts what it runs in the background with SIGINT ignored, which children inherit.
for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(each, signal.SIG_DFL)

checks = Checks("launch")
LIMIT = 60
READY = 'echo ready $$; '


def ends(what, arguments, code, *parts, without=()):
    found, out, err = checks.run(*arguments)
    checks.check(f"{what}: ends with {code}", found == code, f"{found}\n{out}{err}")
    for part in parts:
        checks.check(f"{what}: {part!r}", re.search(part, out + err, re.M), out + err)
    for part in without:
        checks.check(f"{what}: not {part!r}", not re.search(part, out + err, re.M), out + err)


def shell(script):
    return ["--", "bash", "-c", script]


def started(count, script, *options):
    """The supervisor, and the process ids that its processes have printed."""
    child = subprocess.Popen([*checks.command, "-n", str(count), *options, *shell(script)], text=True, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    pids, lines = [], []
    while len(pids) < count:
        lines.append(child.stdout.readline())
        if not lines[-1]:
            break
        if match := re.match(r"\[\d+\] ready (\d+)", lines[-1]):
            pids.append(int(match[1]))
    return child, pids


def is_there(pid):
    """A process that nobody has waited for yet is not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def are_gone(pids):
    end = time.monotonic() + LIMIT
    while any(map(is_there, pids)) and time.monotonic() < end:
        time.sleep(0.01)
    return not any(map(is_there, pids))


def signaled(what, number, script, code, *parts, options=(), again=False):
    child, pids = started(2, script, *options)
    os.kill(child.pid, number)
    if again:
        time.sleep(0.3)
        os.kill(child.pid, number)
    out, _ = child.communicate(timeout=LIMIT)
    checks.check(f"{what}: ends with {code}", child.returncode == code, f"{child.returncode}\n{out}")
    checks.check(f"{what}: no orphans", len(pids) == 2 and are_gone(pids), pids)
    for part in parts:
        checks.check(f"{what}: {part!r}", part in out, out)


# What each process gets.
ends("variables", ["-n", "3", *shell('echo "$MESHARD_PROCESS_RANK/$MESHARD_PROCESS_COUNT/$MESHARD_LAUNCH_ATTEMPT"')], 0,
     r"^\[0\] 0/3/0$", r"^\[1\] 1/3/0$", r"^\[2\] 2/3/0$")
ends("one device for each process", ["-n", "1", *shell('echo "cpu $MESHARD_CPU_DEVICES, tpu $TPU_LOG_DIR."')], 0,
     r"^\[0\] cpu 1, tpu \.$")
ends("the address", ["-n", "1", *shell('ls -ld "$(dirname "$MESHARD_PROCESS_ADDRESS")"')], 0, r"^\[0\] drwx------")
code, out, err = checks.run("-n", "1", *shell('dirname "$MESHARD_PROCESS_ADDRESS"'))
checks.check("the folder of the socket is removed", out.startswith("[0] /") and not os.path.exists(out[4:].strip()), out + err)
ends("no input", ["-n", "1", *shell("cat; echo end")], 0, r"^\[0\] end$")
ends("arguments", ["-n", "1", "--", "printf", "%s,", "--restarts", "--", "-n", "a b"], 0, r"^\[0\] --restarts,--,-n,a b,$")

# Output: whole lines, also long ones and the last one.
ends("a last line without an end", ["-n", "2", *shell("printf 'a\\nb'")], 0, r"^\[0\] a$", r"^\[0\] b$", r"^\[1\] b$")
code, out, err = checks.run("-n", "4", *shell("for i in $(seq 500); do echo $i 12345678901234567890; done"))
checks.check("lines do not mix", sorted(out.split("\n")) ==
             sorted([""] + [f"[{rank}] {i} 12345678901234567890" for rank in range(4) for i in range(1, 501)]), out[:500])
code, out, err = checks.run("-n", "1", *shell("head -c 200000 /dev/zero | tr '\\0' x; echo >&2 problem"))
checks.check("a long line", out.count("x") == 200000 and max(map(len, out.split("\n"))) <= 65536 + 4 and "[0] problem\n" in err)

# Losses.
slow = "sleep 100 & wait"
ends("a status", ["-n", "3", *shell(f"[ $MESHARD_PROCESS_RANK = 1 ] && exit 3; {slow}")], 3,
     r"^meshard launch: process 1 of 3 \(pid \d+\) ended with status 3, \d+\.\d s after its start$", without=["restart"])
ends("a signal", ["-n", "2", *shell(f"[ $MESHARD_PROCESS_RANK = 0 ] && kill -SEGV $$; {slow}")], 139,
     r"^meshard launch: process 0 of 2 \(pid \d+\) was killed by signal 11 \(Segmentation fault\)")
report = 'echo "[processes] process 0 of 2 ends: process 1 (pid 5 on alpha) does not run any more" >&2; exit 1'
ends("what the library reports", ["-n", "2", *shell(f"[ $MESHARD_PROCESS_RANK = 0 ] && {{ {report}; }}; {slow}")], 1,
     r"^meshard launch: process 1 \(pid 5 on alpha\) does not run any more$")
ends("the first one is named", ["-n", "2", *shell(f"[ $MESHARD_PROCESS_RANK = 1 ] && exit 7; sleep 0.3; {report}")], 7,
     r"^meshard launch: process 1 of 2 \(pid \d+\) ended with status 7")
ends("a process that ends early", ["-n", "2", *shell("[ $MESHARD_PROCESS_RANK = 1 ] || sleep 0.3")], 0, without=["launch"])

# Restarts.
ends("a restart", ["-n", "2", "--restarts", "3", *shell('echo "attempt $MESHARD_LAUNCH_ATTEMPT"; [ $MESHARD_LAUNCH_ATTEMPT = 2 ] '
                                                        f'|| {{ [ $MESHARD_PROCESS_RANK = 1 ] && kill -9 $$; {slow}; }}')], 0,
     r"^meshard launch: restart 1 of 3 with 2 processes$", r"^meshard launch: restart 2 of 3 with 2 processes$",
     r"^\[1\] attempt 2$", without=["restart 3", "gives up"])
ends("a crash loop", ["-n", "2", "--restarts", "2", *shell("exit $((4 + MESHARD_LAUNCH_ATTEMPT))")], 6,
     r"^meshard launch: restart 2 of 2", r"^meshard launch: gives up after restart 2$")
crash = f"[ $MESHARD_PROCESS_RANK = 0 ] && exit 1; {slow}"
ends("fewer processes", ["-n", "3", "--restarts", "3", "--min-processes", "2", *shell(crash)], 1, "restart 1 of 3 with 2 processes",
     "restart 2 of 3 with 2 processes", "restart 3 of 3 with 2 processes")
ends("an axis", ["-n", "6", "--restarts", "3", "--shrink", "data=3", *shell(crash)], 1,
     r"restart 1 of 3 with 4 processes, axis data of 2 instead of 3$", r"restart 2 of 3 with 2 processes, axis data of 1 instead of 2$",
     r"restart 3 of 3 with 2 processes$")
ends("an axis inside of processes", ["-n", "2", "--restarts", "1", "--shrink", "data=8", *shell(crash)], 1,
     r"restart 1 of 1 with 1 process, axis data of 4 instead of 8$")
ends("an axis, and no fewer", ["-n", "6", "--restarts", "1", "--shrink", "data=3", "--min-processes", "5", *shell(crash)], 1,
     r"restart 1 of 1 with 6 processes$")

# Signals: passed on, with time to end; then SIGKILL. A supervisor that is killed leaves nothing either.
drain = "trap 'echo drained; exit 0' TERM INT; " + READY + "sleep 100 & wait"
deaf = "trap '' TERM INT; " + READY + "sleep 100; sleep 100"
signaled("SIGTERM", signal.SIGTERM, drain, 143, "[0] drained", "[1] drained", "ended by signal 15")
signaled("SIGINT", signal.SIGINT, drain, 130, "[0] drained", "[1] drained", options=["--restarts", "3"])
signaled("SIGTERM is ignored", signal.SIGTERM, deaf, 143, options=["--grace", "0.5"])
signaled("SIGINT twice", signal.SIGINT, deaf, 130, options=["--grace", "1000"], again=True)
signaled("SIGKILL", signal.SIGKILL, READY + "exec sleep 100", -9)
ends("a loss beside a process that ignores SIGTERM",
     ["-n", "2", "--grace", "0.2", *shell(f"[ $MESHARD_PROCESS_RANK = 0 ] && exit 3; trap '' TERM; {slow}")], 3)
child, pids = started(2, READY + "trap 'sleep 0.1; exit 0' CONT; while sleep 0.05; do :; done")
os.kill(child.pid, signal.SIGTSTP)
end = time.monotonic() + LIMIT
state = lambda pid: open(f"/proc/{pid}/stat", encoding="utf-8").read().rsplit(")", 1)[1].split()[0]
while time.monotonic() < end and {state(pid) for pid in [child.pid, *pids]} != {"T"}:
    time.sleep(0.01)
checks.check("SIGTSTP suspends all", {state(pid) for pid in [child.pid, *pids]} == {"T"})
os.kill(child.pid, signal.SIGCONT)
child.communicate(timeout=LIMIT)
checks.check("SIGCONT", child.returncode == 0 and are_gone(pids), child.returncode)

# Command lines.
ends("no program", ["-n", "2"], 2, "no program: it comes after --")
ends("no count", ["--", "true"], 2, "--processes is required")
ends("an unknown program", ["-n", "2", "--restarts", "2", "--", "/absent/program"], 2, "cannot start /absent/program: No such file",
     without=["restart"])
ends("a file that is not a program", ["-n", "1", "--", os.devnull], 2, "cannot start /dev/null: Permission denied")
ends("a misspelled option", ["-n", "2", "--restart", "2", "--", "true"], 2, "did you mean --restarts?")
ends("more than there are", ["-n", "2", "--restarts", "1", "--min-processes", "3", "--", "true"], 2, "--min-processes 3 is more than -n 2")
ends("no restarts", ["-n", "2", "--min-processes", "1", "--", "true"], 2, "no effect without --restarts")
ends("no axis", ["-n", "2", "--restarts", "1", "--shrink", "data", "--", "true"], 2, "is not an axis and its size")
ends("an axis that does not fit", ["-n", "6", "--restarts", "1", "--shrink", "data=4", "--", "true"], 2, "cannot be divided evenly")
checks.end()
