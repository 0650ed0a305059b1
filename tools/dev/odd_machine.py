#!/usr/bin/env python3
"""Runs the tests, or some of them, as they would run on an odd machine.

usage: odd_machine.py --build FOLDER [--jobs N] [--timeout SECONDS] MACHINE|all [NAME]
       odd_machine.py --inside MACHINE COMMAND...

NAME selects programs or tests as in run_tests.py; `^REGEX` selects programs by a regular expression. The second form
runs one command there. A machine that this one cannot imitate is skipped, and says why. The machines are:
"""

import argparse
import ctypes
import os
import pathlib
import re
import resource
import shlex
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SELF = pathlib.Path(__file__).resolve()
NOBODY = 65534
MEMORY = 1 << 30
PATH_NAME = "a tree of Zo\u00eb \u6c34"


class Impossible(Exception):
    """The reason why this machine cannot imitate the other one."""


def need_root(what):
    if os.geteuid() != 0:
        raise Impossible(f"{what} needs root")


def cache_root():
    sys.path.insert(0, str(ROOT / "tools" / "fetch"))
    import locked_wheel
    return locked_wheel.cache_root()


def add_xla_flag(flag):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flag}".strip()


def private_mounts():
    """Makes further mounts of this process visible only to it and its children."""
    need_root("mounting")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x00020000) != 0:  # CLONE_NEWNS
        raise Impossible(f"no mount namespaces: {os.strerror(ctypes.get_errno())}")
    if subprocess.run(["mount", "--make-rprivate", "/"], capture_output=True, check=False).returncode != 0:
        raise Impossible("mounts cannot be made private")


def bind(source, target, read_only=False):
    done = subprocess.run(["mount", "--bind", source, target], capture_output=True, encoding="utf-8", check=False)
    if done.returncode == 0 and read_only:
        done = subprocess.run(["mount", "-o", "remount,bind,ro", target], capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        raise Impossible(f"cannot mount: {done.stderr.strip()}")


def temporary(name):
    """A folder in the program's own temporary folder."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="odd-")) / name
    folder.mkdir(parents=True)
    return folder


def avx2(command):
    """the compiler of the CPU plugin goes up to AVX2 (--xla_cpu_max_isa)"""
    add_xla_flag("--xla_cpu_max_isa=AVX2")
    return command


def avx(command):
    """the compiler of the CPU plugin goes up to AVX, without fused multiply-add (--xla_cpu_max_isa)"""
    add_xla_flag("--xla_cpu_max_isa=AVX")
    return command


def one_core(command):
    """one core (CPU affinity)"""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return command


def signals(command):
    """SIGINT, SIGHUP and SIGCHLD are ignored, as in background jobs and daemons"""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_IGN)
    return command


def no_home(command):
    """neither HOME nor XDG_CACHE_HOME nor MESHARD_CACHE is set"""
    for name in ("HOME", "XDG_CACHE_HOME", "MESHARD_CACHE"):
        os.environ.pop(name, None)
    return command


def read_only_cache(command):
    """the cache folder is mounted for reading only; where mounting is impossible and this is not root, without write permission"""
    cache = cache_root()
    if os.geteuid() == 0:
        private_mounts()
        bind(cache, cache, read_only=True)
        return command
    folder = temporary("cache")
    for entry in cache.iterdir():
        (folder / entry.name).symlink_to(entry)
    folder.chmod(0o555)
    os.environ["MESHARD_CACHE"] = str(folder)
    return command


def user(command):
    """a user without an account's home: nobody; the cache is mounted at a place that it may read"""
    need_root("changing the user")
    cache, folder = cache_root(), temporary("home")
    private_mounts()
    inside = folder / ".cache" / "meshard"
    inside.mkdir(parents=True)
    bind(cache, inside)
    for path in (pathlib.Path(os.environ.get("TMPDIR", folder)), folder.parent, folder):
        os.chown(path, NOBODY, NOBODY)
    os.environ.update(HOME=str(folder), USER="nobody", LOGNAME="nobody", MESHARD_CACHE=str(inside))
    # The Python interpreter of a test may be in a home folder that user nobody cannot enter.
    system = "/usr/bin/python3"
    if "python" in pathlib.Path(command[0]).name and pathlib.Path(system).exists():
        command = [system, *command[1:]]
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    return command


def path(command):
    """the tree (mounted there, not copied or built there), HOME and the temporary folder have spaces and letters beyond ASCII"""
    tree, cache = temporary(PATH_NAME), cache_root()
    home = temporary(PATH_NAME)
    private_mounts()
    bind(ROOT, tree)
    (home / "cache").mkdir()
    bind(cache, home / "cache")
    inside = temporary(PATH_NAME)
    folder = os.getcwd()
    os.environ.update(HOME=str(home), MESHARD_CACHE=str(home / "cache"), TMPDIR=str(inside), TEST_TMPDIR=str(inside))
    moved = lambda text: text.replace(f"{ROOT}/", f"{tree}/")  # noqa: E731
    os.chdir(moved(f"{folder}/"))
    for key, value in list(os.environ.items()):
        if key != "PATH":
            os.environ[key] = moved(value)
    return [moved(word) for word in command]


def c_locale(command):
    """LC_ALL=C, and LANG is not set"""
    for name in [name for name in os.environ if name.startswith("LC_") or name in ("LANG", "LANGUAGE")]:
        del os.environ[name]
    os.environ["LC_ALL"] = "C"
    return command


def memory(command):
    """1 GiB of memory for each program: a cgroup where one can be made, else a limit on its data (RLIMIT_DATA)"""
    for root in ("/sys/fs/cgroup/memory", "/sys/fs/cgroup"):
        limit = "memory.limit_in_bytes" if root.endswith("memory") else "memory.max"
        group = pathlib.Path(root) / f"meshard-odd-{os.getpid()}"
        try:
            group.mkdir()
            (group / limit).write_text(str(MEMORY))
            (group / "cgroup.procs").write_text(str(os.getpid()))
        except OSError:
            remove_group(group)
            continue
        remove_when_empty(group)
        return command
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    return command


def remove_when_empty(group):
    """Starts a process outside the group that removes the group when it is empty. It is not a child of this process."""
    middle = os.fork()
    if middle > 0:
        os.waitpid(middle, 0)
        return
    os.setsid()
    if os.fork() > 0:
        os._exit(0)
    (group.parent / "cgroup.procs").write_text(str(os.getpid()))
    quiet = os.open(os.devnull, os.O_RDWR)
    for file in (0, 1, 2):
        os.dup2(quiet, file)
    while group.exists():
        time.sleep(1)
        remove_group(group)
    os._exit(0)


def remove_group(group):
    try:
        group.rmdir()
    except OSError:
        pass


def with_plugin(name):
    """A machine with this CPU plugin of third_party/plugins.lock, which is fetched at its first use."""
    def machine(command):
        fetch = [sys.executable, str(ROOT / "tools" / "fetch" / "fetch_plugin.py"), name]
        path = subprocess.run([*fetch, "--print-path"], capture_output=True, encoding="utf-8", check=True).stdout.strip()
        if not os.path.isfile(path):
            fetched = subprocess.run(fetch, capture_output=True, encoding="utf-8", check=False)
            if fetched.returncode != 0:
                raise Impossible(fetched.stderr.strip())
        os.environ["MESHARD_PLUGIN"] = path
        return command
    machine.__doc__ = f"the CPU plugin is {name} instead of the default one"
    return machine


MACHINES = {"avx2": avx2, "avx": avx, "one-core": one_core, "signals": signals, "no-home": no_home,
            "read-only-cache": read_only_cache, "user": user, "path": path, "locale": c_locale, "memory": memory,
            **{name: with_plugin(name) for name in ("lammps-jax-pjrt-cpu", "xla-cpu-pjrt")}}
# Time limits for one core, which has to do the work of several cores.
SLOW = {"one-core": 3600}


def describe():
    return "\n".join(f"  {name:<20} {machine.__doc__}" for name, machine in MACHINES.items())


def inside(name, command):
    try:
        command = MACHINES[name](command)
    except Impossible as error:
        sys.exit(f"odd machine {name}: {error}")
    os.execvp(command[0], command)


def possible(name):
    """Whether a command can run on the machine; otherwise the reason."""
    done = subprocess.run([sys.executable, str(SELF), "--inside", name, "true"], capture_output=True, encoding="utf-8", check=False)
    return done.returncode == 0, done.stderr.strip()


def run(name, arguments):
    """The exit status, and the counts of the last line."""
    under = shlex.join([sys.executable, str(SELF), "--inside", name])
    command = [sys.executable, str(SELF.parent / "run_tests.py"), "--build", arguments.build, "--jobs", str(arguments.jobs),
               "--under", under]
    timeout = arguments.timeout or SLOW.get(name)
    if timeout:
        command += ["--timeout", str(timeout)]
    if arguments.name and arguments.name.startswith("^"):
        command += ["--only", arguments.name]
    elif arguments.name:
        command.append(arguments.name)
    with subprocess.Popen(command, stdout=subprocess.PIPE, encoding="utf-8") as process:
        last = ""
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line
    counts = [int(count) for count in re.findall(r"\d+", last)] if " passed, " in last else [0, 1]
    return counts + [0] * (3 - len(counts))


def main():
    if sys.argv[1:2] == ["--inside"] and len(sys.argv) > 3 and sys.argv[2] in MACHINES:
        inside(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__ + describe(), formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--timeout", type=int, help="seconds that a program may take")
    parser.add_argument("machine", choices=[*MACHINES, "all"])
    parser.add_argument("name", nargs="?")
    arguments = parser.parse_args()
    totals, summary = [0, 0, 0], []
    for name in MACHINES if arguments.machine == "all" else [arguments.machine]:
        can, why = possible(name)
        if not can:
            print(f"SKIPPED machine {name}: {why}")
            totals[2] += 1
            continue
        print(f"== on the odd machine {name}: {MACHINES[name].__doc__}", flush=True)
        counts = run(name, arguments)
        summary.append(f"{name}: {counts[0]} passed, {counts[1]} failed")
        totals = [total + count for total, count in zip(totals, counts)]
    print("\n".join(summary) if len(summary) > 1 else "", end="\n" if len(summary) > 1 else "")
    print(f"{totals[0]} passed, {totals[1]} failed" + (f", {totals[2]} skipped" if totals[2] else ""))
    return 1 if totals[1] or not (totals[0] or totals[2]) else 0


if __name__ == "__main__":
    sys.exit(main())
