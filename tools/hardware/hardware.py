#!/usr/bin/env python3
"""Runs everything that the first day on a GPU or TPU should show, and writes one JSON file and one page.

usage: hardware.py [--plugin NAME|PATH] [--out FILE.json] [--build FOLDER] [--jax PYTHON] [--minutes N] [--only STEP]...
       hardware.py --pack FILE.tar.gz
       hardware.py --page FILE.json

The steps run in this order, each in processes of its own with a time limit; a step that fails, crashes or hangs is
reported, and the next one runs: doctor, digits, conformance, transfers, memory, host-calls, explain, rows, ffi.

  --plugin    a PJRT plugin: its path; its platform (cuda, rocm, oneapi, tpu, cpu), or another part of the path of one
              that `meshard doctor` finds; or fake-gpu: the CPU plugin, which appears as an NVIDIA GPU.
              Default: the first usable plugin that is not of CPUs, else of CPUs
  --out       the result; the page is FILE.html beside it. Default: build-hardware/PLATFORM.json
  --build     uses the programs of this build folder and builds nothing. Default: builds them in build-hardware
  --jax       a Python interpreter with JAX, for times beside JAX. Default: python3 if it has JAX
  --minutes   the time for all steps together, without the build (default 8)
  --only      only this step, and doctor; may be given more than once
  --pack      writes the tree with the headers and data that a machine without network and packages needs
  --page      writes the page of a result again

Exit code: 0 if every step passed, or the platform does not support it; 1 otherwise; 2 if nothing could be run.
"""

import argparse
import datetime
import io
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fetch"))
import child  # noqa: E402
import locked_wheel  # noqa: E402
import page  # noqa: E402
import steps  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
CARRIED = ROOT / "carried"  # in an archive of --pack
# Header-only packages that the programs are built with, by their paths below an include folder.
HEADERS = ("CLI", "nlohmann", "xxhash.h", "xxh3.h")
TARGETS = ("meshard_tool", "meshard_compile", "meshard_conformance", "meshard_hardware", "digits")
FAKE_GPU = "cuda,NVIDIA H100 80GB HBM3"
PLATFORMS = ("cuda", "rocm", "oneapi", "tpu", "cpu")


class CannotRun(Exception):
    pass


def pack(target):
    """An archive of the tracked files, with the headers and the digits in carried/."""
    tracked = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard"],
                             capture_output=True)
    if tracked.returncode != 0:
        raise CannotRun("--pack needs a checkout of git")
    names = [name for name in tracked.stdout.decode().split("\0") if name and (ROOT / name).is_file()]
    with tarfile.open(target, "w:gz") as archive:
        for name in names:
            archive.add(ROOT / name, f"meshard/{name}", recursive=False)
        for header in HEADERS:
            found = next((folder / header for folder in include_folders() if (folder / header).exists()), None)
            if found is None:
                if header == "xxh3.h":  # part of xxhash.h in newer versions
                    continue
                raise CannotRun(f"no header {header}: ./dev setup installs it")
            archive.add(found, f"meshard/carried/include/{header}")
        digits = digits_file()
        if digits is None:
            raise CannotRun("no digits.csv: ./dev setup fetches it")
        archive.add(digits, "meshard/carried/digits.csv")
        commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True).stdout
        note = tarfile.TarInfo("meshard/carried/commit")
        note.size = len(commit)
        archive.addfile(note, io.BytesIO(commit))
    print(f"{target}: {len(names)} files of the tree, headers and digits, {os.path.getsize(target) / 1e6:.1f} MB")


def include_folders():
    prefixes = [pathlib.Path(name) for name in os.environ.get("CPLUS_INCLUDE_PATH", "").split(":") if name]
    return [CARRIED / "include", *prefixes, pathlib.Path("/usr/local/include"), pathlib.Path("/usr/include")]


def digits_file():
    for path in (CARRIED / "digits.csv", locked_wheel.cache_root() / "data" / "digits.csv"):
        if path.is_file():
            return path
    return None


def build(folder, log):
    """Configures and builds what the steps run, without tests and benchmarks."""
    environment, options = dict(os.environ), []
    if (CARRIED / "include").is_dir():
        others = environment.get("CPLUS_INCLUDE_PATH", "")
        environment["CPLUS_INCLUDE_PATH"] = f"{CARRIED / 'include'}:{others}".rstrip(":")
        options.append(f"-DCMAKE_PREFIX_PATH={CARRIED}")
    configure = ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DMESHARD_TESTS=OFF", "-DMESHARD_BENCH=OFF",
                 "-DMESHARD_WERROR=OFF", *options]
    jobs = os.environ.get("MESHARD_JOBS") or str(os.cpu_count())
    for what, command in (("configuring", configure),
                          ("building", ["cmake", "--build", folder, "-j", jobs, "--target", *TARGETS])):
        print(f"== {what} in {folder}", flush=True)
        ended = child.run(command, 3 * 3600, environment)
        with open(log, "a", encoding="utf-8") as file:
            file.write(ended.output)
        if ended.outcome != "passed":
            raise CannotRun(f"{what} {ended.outcome}; the end of {log}:\n{child.tail(ended.output)}")


def plugins_of(doctor_output):
    """(path, platform, usable) of each plugin in the output of `meshard doctor`."""
    found = []
    for line in doctor_output.splitlines():
        if re.match(r"(/|\./).*\.so$", line):
            found.append([line, "", False])
        elif found and (fact := re.match(r"  (platform|verdict) +(.*)", line)):
            if fact[1] == "platform":
                found[-1][1] = fact[2].split(",")[0].strip()
            else:
                found[-1][2] = fact[2].startswith("usable")
    return [tuple(each) for each in found]


def guess_platform(path):
    """As guess_platform() of meshard/pjrt/plugin_search.h."""
    name = pathlib.PurePath(path).name
    for platform_name, parts in (("tpu", ("tpu",)), ("cuda", ("cuda", "gpu")), ("rocm", ("rocm",)),
                                 ("oneapi", ("xpu", "oneapi", "sycl")), ("cpu", ("cpu",))):
        if any(part in name for part in parts):
            return platform_name
    return ""


def choose(wanted, found):
    """The plugin's path: the file, or the one of `found` that the words fit."""
    if wanted and "/" in wanted:
        if not os.path.isfile(wanted):
            raise CannotRun(f"--plugin {wanted}: no such file")
        return os.path.abspath(wanted)
    if wanted in PLATFORMS:
        fitting = [each for each in found if wanted in (each[1], guess_platform(each[0]))]
    elif wanted:
        fitting = [each for each in found if wanted in each[0] or wanted.replace("-", "_") in each[0]]
    else:
        fitting = sorted((each for each in found if each[2]), key=lambda each: each[1] == "cpu")
    fitting.sort(key=lambda each: not each[2])  # a plugin that is not usable is reported, too
    if not fitting:
        raise CannotRun(f"no plugin{f' for {wanted}' if wanted else ''} was found; give its path"
                        + "".join(f"\n  found {path}" for path, *_ in found))
    return fitting[0][0]


def quirks(programs, plugin, environment):
    """The names of the quirks that count for a plugin."""
    ended = child.run([programs / "meshard", "doctor", "--quirks", plugin], 120, environment)
    return set(re.findall(r"^ +([a-z][a-z0-9-]+): ", ended.output, re.MULTILINE))


def environment_for(plugin, programs):
    """The variables with which the steps use the plugin."""
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("MESHARD_FAULT", "MESHARD_FAULTY_AS")}
    if plugin == "fake-gpu":
        wrapper = programs.parent / "lib" / "libmeshard_faulty.so"
        if not wrapper.is_file():
            raise CannotRun(f"no {wrapper}: fake-gpu needs a build with tests, such as --build build")
        lock = locked_wheel.read_lock(locked_wheel.lock_path("plugins.lock"))
        import fetch_targets
        real = os.environ.get("MESHARD_PLUGIN") or fetch_targets.plugin_path("cpu", lock)
        environment.update(MESHARD_PLUGIN=str(wrapper), MESHARD_FAULTY_PLUGIN=str(real), MESHARD_FAULTY_AS=FAKE_GPU,
                           MESHARD_PLATFORM="cuda")
        # Behind the other name is a compiler of CPUs, with its faults.
        its_own = quirks(programs, real, {**environment, "MESHARD_PLATFORM": "cpu"})
        missing = sorted(its_own - quirks(programs, wrapper, environment))
        environment.setdefault("MESHARD_QUIRKS", ",".join(f"+{name}" for name in missing))
        return environment
    environment["MESHARD_PLUGIN"] = plugin
    if guess_platform(plugin):
        environment["MESHARD_PLATFORM"] = guess_platform(plugin)
    return environment


def find_jax(given):
    if given:
        return given
    python = shutil.which("python3")
    if python and child.run([python, "-c", "import jax"], 60).outcome == "passed":
        return python
    return None


def without_home(value):
    """The value, with the home folder and the tree shortened in all of its texts."""
    if isinstance(value, str):
        return value.replace(str(ROOT), "(tree)").replace(os.path.expanduser("~") + "/", "~/")
    if isinstance(value, list):
        return [without_home(each) for each in value]
    if isinstance(value, dict):
        return {key: without_home(each) for key, each in value.items()}
    return value


def version():
    done = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True,
                          encoding="utf-8")
    if done.returncode == 0:
        return done.stdout.strip()
    carried = CARRIED / "commit"
    return carried.read_text().strip() if carried.is_file() else "unknown"


def processor():
    try:
        names = re.findall(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        names = []
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} threads"


def result_of(context, results, seconds):
    """The JSON result; docs/guides/hardware.md describes it."""
    device = next((each.get("facts", {}) for each in results if each["step"] == "doctor"), {})
    return without_home({
        "format": 1,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "meshard": version(),
        "platform": context.platform,
        "device": device,
        "host": {"processor": processor(), "system": platform.platform()},
        "seconds": round(seconds, 1),
        "passed": all(each["status"] in ("passed", "unsupported") for each in results),
        "steps": results,
    })


def write(result, out):
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")
    out.with_suffix(".html").write_text(page.page(result))
    print(f"{out} and {out.with_suffix('.html').name}")


def run(arguments):
    folder = pathlib.Path(arguments.build).resolve() if arguments.build else ROOT / "build-hardware"
    if not arguments.build:
        folder.mkdir(exist_ok=True)
        build(folder, folder / "build.log")
    programs = folder / "bin"
    if arguments.plugin == "fake-gpu":
        plugin = "fake-gpu"
    elif arguments.plugin and "/" in arguments.plugin:
        plugin = choose(arguments.plugin, [])
    else:
        found = child.run([programs / "meshard", "doctor"], 300)
        plugin = choose(arguments.plugin, plugins_of(found.output))
    environment = environment_for(plugin, programs)
    context = steps.Context(programs, environment, environment["MESHARD_PLUGIN"], find_jax(arguments.jax),
                            digits_file())
    context.platform = environment.get("MESHARD_PLATFORM", "")
    print(f"== {plugin}", flush=True)
    begin = time.monotonic()
    results = steps.run_all(context, arguments.minutes, arguments.only)
    result = result_of(context, results, time.monotonic() - begin)
    write(result, pathlib.Path(arguments.out or ROOT / "build-hardware" / f"{context.platform or 'unknown'}.json"))
    return 0 if result["passed"] else 1


def main(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--plugin")
    parser.add_argument("--out")
    parser.add_argument("--build")
    parser.add_argument("--jax")
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--only", action="append", default=[], choices=[name for name, *_ in steps.STEPS])
    parser.add_argument("--pack")
    parser.add_argument("--page")
    arguments = parser.parse_args(words)
    try:
        if arguments.pack:
            pack(arguments.pack)
            return 0
        if arguments.page:
            source = pathlib.Path(arguments.page)
            write_page = page.page(json.loads(source.read_text()))
            source.with_suffix(".html").write_text(write_page)
            return 0
        return run(arguments)
    except CannotRun as error:
        print(f"hardware: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
