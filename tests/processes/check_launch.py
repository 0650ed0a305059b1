#!/usr/bin/env python3
"""Kills and suspends processes of a training under `meshard launch`: it ends with the losses of an undisturbed run.

usage: check_launch.py MESHARD LAUNCHED_TRAINING

MESHARD_LAUNCH_KILLS=n sets how many processes are killed (default: 2); MESHARD_TEST_SEED as in other random tests. Skipped
(status 77) without a plugin. The last line is `N passed, N failed`.
"""

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if SIGCHLD is ignored, exit statuses are lost

TOOL, PROGRAM = (os.path.abspath(path) for path in sys.argv[1:])
KILLS = int(os.environ.get("MESHARD_LAUNCH_KILLS", "2"))
SEED = os.environ.get("MESHARD_TEST_SEED", "20240229")
if SEED == "random":
    SEED = str(random.randrange(1 << 32))
LIMIT, EVERY, ROWS, SKIPPED = 300, 5, 24, 77
LOSS = re.compile(r"^\[0\] step (\d+) loss (\S+)$")
READ = re.compile(r"^\[(\d)\] step (\d+) rows (\d+) to (\d+)$")
RESTART = re.compile(r"^meshard launch: restart (\d+) of \d+ with (\d+) process")
LOST = re.compile(r"^meshard launch: process (\d) of (\d) \(pid (\d+)\) was killed by signal 9")


class Failed(Exception):
    pass


def expect(condition, *shown):
    if not condition:
        raise Failed(" ".join(str(each) for each in shown))


class Attempt:
    """What one attempt printed."""

    def __init__(self, count):
        self.count, self.losses, self.rows, self.begin = count, [], {}, None


class Run:
    """A training under `meshard launch`. Its attempts are filled in while it runs."""

    def __init__(self, folder, count, *options, steps=30, step_ms=10, program=None):
        path = os.path.join(folder, "state.safetensors")
        command = [*(program or [PROGRAM]), path, str(steps), str(EVERY), str(step_ms)]
        # Python must not hold back what the program prints, and one stream keeps the order.
        self.child = subprocess.Popen([TOOL, "launch", "-n", str(count), *options, "--", *command], text=True,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.attempts, self.text, self.times = [Attempt(count)], [], []
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self):
        for line in self.child.stdout:
            with self.changed:
                self.text.append(line)
                self.times.append(time.monotonic())
                now = self.attempts[-1]
                if match := RESTART.match(line):
                    self.attempts.append(Attempt(int(match[2])))
                elif match := LOSS.match(line):
                    now.begin = now.begin or time.monotonic()
                    now.losses.append((int(match[1]), float(match[2])))
                elif match := READ.match(line):
                    now.rows.setdefault(int(match[2]), []).append((int(match[3]), int(match[4])))
                self.changed.notify_all()
        with self.changed:
            self.changed.notify_all()

    def wait_for(self, attempt, steps):
        """Until this attempt has made so many steps. @return whether it did before the end"""
        done = lambda: len(self.attempts) > attempt and len(self.attempts[attempt].losses) >= steps
        with self.changed:
            self.changed.wait_for(lambda: done() or self.child.poll() is not None, timeout=LIMIT)
            return done()

    def processes(self):
        with open(f"/proc/{self.child.pid}/task/{self.child.pid}/children", encoding="utf-8") as file:
            return [int(pid) for pid in file.read().split()]

    def end(self):
        try:
            status = self.child.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.child.kill()
            raise Failed(f"still runs after {LIMIT} s:", "".join(self.text[-40:])) from None
        self.thread.join()
        return status

    def shown(self):
        return "".join(line for line in self.text if not READ.match(line))


def check_attempts(run, losses):
    """Each attempt goes on where a checkpoint was, with the losses of the undisturbed run and each row in one process."""
    done = 0
    for attempt in run.attempts:
        steps = [step for step, _ in attempt.losses]
        if not steps:
            continue
        expect(steps == list(range(steps[0], steps[-1] + 1)), "steps", steps, run.shown())
        # The newest complete checkpoint: a save may have been complete after the last loss that was printed.
        expect(steps[0] % EVERY == 0 and done - EVERY <= steps[0] <= done, f"step {steps[0]} after {done}", run.shown())
        done = steps[-1] + 1
        for step, loss in attempt.losses:
            expect(abs(loss - losses[step]) <= 1e-6 * max(1, abs(losses[step])), step, loss, losses[step], run.shown())
        for step in steps[:-1]:
            parts = sorted(attempt.rows.get(step, []))
            expect(len(parts) == attempt.count and parts[0][0] == 0 and parts[-1][1] == ROWS and
                   all(a[1] == b[0] for a, b in zip(parts, parts[1:])), f"rows of step {step}", parts, run.shown())
    expect(done == len(losses), f"{done} of {len(losses)} steps", run.shown())


def undisturbed(folder, count, steps):
    run = Run(folder, count, steps=steps, step_ms=0)
    status = run.end()
    expect(status == 0 and len(run.attempts) == 1, status, run.shown())
    losses = [loss for _, loss in run.attempts[0].losses]
    expect(len(losses) == steps and losses[-1] < losses[0], run.shown())
    return losses


def killed(draw, kills, count, least, steps, losses):
    """Random processes are killed at random times, one in each attempt. @return seconds to the next step"""
    times, hit = [], []
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, count, "--restarts", str(kills), "--min-processes", str(least), steps=steps)
        for attempt in range(kills):
            if not run.wait_for(attempt, draw.randrange(1, 2 * EVERY)):
                break
            time.sleep(draw.random() * 0.03)
            pids = run.processes()
            if not pids:
                break
            hit.append((time.monotonic(), draw.choice(pids)))
            os.kill(hit[-1][1], signal.SIGKILL)
        status = run.end()
    expect(status == 0, f"status {status}", run.shown())
    check_attempts(run, losses)
    named = [int(match[3]) for match in map(LOST.match, run.text) if match]
    expect(named == [pid for _, pid in hit], named, hit, run.shown())
    expect([each.count for each in run.attempts] == [max(count - i, least) for i in range(len(hit) + 1)], run.shown())
    for (when, _), attempt in zip(hit, run.attempts[1:]):
        times.append(attempt.begin - when)
    return times


def suspended(losses):
    """A process that hangs is lost, too; the others name it."""
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, 2, "--restarts", "1", "--grace", "1", steps=len(losses))
        expect(run.wait_for(0, EVERY + 1), run.shown())
        pid = run.processes()[1]
        os.kill(pid, signal.SIGSTOP)
        status = run.end()
    expect(status == 0 and len(run.attempts) == 2, status, run.shown())
    check_attempts(run, losses)
    expect(f"meshard launch: process 1 (pid {pid} on " in run.shown() and "gives no sign of life" in run.shown(), run.shown())


def one_step_less(steps):
    """A process that ends main early is named within 5 s."""
    less = ["bash", "-c", 'exec "$0" "$1" $(($2 - MESHARD_PROCESS_RANK)) "$3" "$4"', PROGRAM]
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, 2, steps=steps + 1, step_ms=0, program=less)
        status = run.end()
    name = re.search(r"^meshard launch: process 1 \(pid \d+ on .+ has ended its main program normally", run.shown(), re.M)
    expect(status == 1 and name, status, run.shown())
    last = max(when for when, line in zip(run.times, run.text) if LOSS.match(line))
    named = next(when for when, line in zip(run.times, run.text) if "has ended its main program" in line)
    expect(named - last < 5, f"named after {named - last:.1f} s", run.shown())


def has_plugin():
    with tempfile.TemporaryDirectory() as folder:
        child = subprocess.run([PROGRAM, os.path.join(folder, "x"), "0", "1", "0"], capture_output=True, text=True, check=False)
    return "no plugin" not in child.stderr


def main():
    if not has_plugin():
        print("skipped: no plugin")
        return SKIPPED
    draw, passed, failed, times = random.Random(int(SEED)), 0, 0, []
    steps = 30 if KILLS <= 4 else 60
    with tempfile.TemporaryDirectory() as folder:
        losses = undisturbed(folder, 3, steps)
    tests = [("suspended", suspended, losses), ("one step less", one_step_less, steps)]
    at = 0
    while at < KILLS:
        kills = min(draw.randrange(1, 5) if KILLS > 2 else 2, KILLS - at)
        count = draw.randrange(2, 5) if KILLS > 2 else 3
        least = draw.randrange(1, count + 1) if KILLS > 2 else 2
        name = f"{kills} killed of {count}, at least {least}"
        tests.append((name, killed, draw, kills, count, least, steps, losses))
        at += kills
    for name, test, *arguments in tests:
        try:
            times += test(*arguments) or []
            passed += 1
        except Failed as failure:
            failed += 1
            print(f"FAILED {name} (MESHARD_TEST_SEED={SEED}): {failure}", flush=True)
    if times:
        print(f"{len(times)} killed; from the loss to the next step {min(times):.1f} to {max(times):.1f} s")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
