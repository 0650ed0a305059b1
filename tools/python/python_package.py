#!/usr/bin/env python3
"""Builds the wheel of the Python package, and tests it in an environment of its own. `./dev python` calls it.

usage: python_package.py wheel --library PREFIX         builds the wheel against the library installed in PREFIX
       python_package.py test [--jax PYTHON] [NAME...]  installs it into an environment with only its dependencies and
                                                        pytest, and runs the tests, or those whose name contains NAME;
                                                        without NAME also checks the types
       python_package.py pytorch PYTHON                 compares PyTorch's own suites and whole models, hours; PYTHON is
                                                        the interpreter of an environment with PyTorch
       python_package.py jax PYTHON FILE [ARGUMENT...]  runs a program with the package; PYTHON is the interpreter of an
                                                        environment with JAX and optax
       python_package.py types                          checks the stubs, and a sample program against them, with mypy
       python_package.py interpreter                    prints the interpreter of this environment
       python_package.py compiler-interpreter           prints that of the environment with nanobind, if it exists

Everything is in build-python/: the build of the extension module, wheels/, and the environment. Packages are those of
python_build.lock and python_tests.lock, each verified by its hash. --jax names the interpreter of an environment with
JAX and optax: tests that were skipped for the lack of them are run there. The last line of test and types is
`N passed, N failed`, with `, N skipped`.
"""

import argparse
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import xml.etree.ElementTree as ElementTree

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tools" / "fetch"))
import locked_environment  # noqa: E402
import locked_wheel  # noqa: E402

FOLDER = ROOT / "build-python"
WHEELS = FOLDER / "wheels"
ENVIRONMENT = FOLDER / "environment"
BUILD_LOCK = HERE / "python_build.lock"
TESTS_LOCK = HERE / "python_tests.lock"
LEAST_TAG = "manylinux_2_"  # a wheel without such a tag depends on libraries that other machines lack


def run(command, **options):
    """Runs a command. @error FetchError, with its output, if it fails."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8", errors="replace", check=False, **options)
    if done.returncode != 0:
        raise locked_wheel.FetchError(f"{' '.join(map(str, command[:4]))} ... failed:\n{done.stdout[-6000:]}")
    return done.stdout


def build_environment(python):
    """The environment variables under which the programs of the build's Python environment are found first."""
    return {**os.environ, "PATH": f"{pathlib.Path(python).parent}{os.pathsep}{os.environ['PATH']}"}


def build_wheel(library):
    """Builds the wheel, and has auditwheel name the oldest platform that it is for. Returns its path."""
    python = locked_environment.interpreter(BUILD_LOCK)
    environment = build_environment(python)
    raw = FOLDER / "raw"
    for folder in (raw, WHEELS):
        shutil.rmtree(folder, ignore_errors=True)
    cached = ["-Ccmake.define.CMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    run([python, "-m", "pip", "wheel", ROOT, "--no-deps", "--no-build-isolation", "--disable-pip-version-check",
         "--wheel-dir", raw, f"-Cbuild-dir={FOLDER / 'build'}", "-Ccmake.source-dir=python",
         f"-Ccmake.define.CMAKE_PREFIX_PATH={pathlib.Path(library).resolve()}", *cached], env=environment)
    run([python, "-m", "auditwheel", "repair", "--wheel-dir", WHEELS, *raw.glob("*.whl")], env=environment)
    made = the_wheel()
    if LEAST_TAG not in made.name:
        raise locked_wheel.FetchError(f"auditwheel gave {made.name} no manylinux tag")
    print(f"wheel: {made.relative_to(ROOT)}, {made.stat().st_size / 1e6:.1f} MB")
    return made


def the_wheel():
    """The wheel that was built last."""
    found = list(WHEELS.glob("*.whl"))
    if len(found) != 1:
        raise locked_wheel.FetchError("there is no wheel in build-python/wheels; ./dev wheel builds it")
    return found[0]


def installed():
    """The interpreter of an environment with the wheel, its dependencies and pytest."""
    python, stamp = ENVIRONMENT / "bin" / "python", ENVIRONMENT / "installed"
    lock = hashlib.sha256(TESTS_LOCK.read_bytes()).hexdigest()
    wheel = hashlib.sha256(the_wheel().read_bytes()).hexdigest()
    before = stamp.read_text(encoding="ascii").split() if stamp.exists() else ["", ""]
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    if before[0] != lock:
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)
        venv.create(ENVIRONMENT, with_pip=True)
        offline = ["--no-index", "--find-links", os.environ["MESHARD_WHEEL_DIR"]] \
            if os.environ.get("MESHARD_WHEEL_DIR") else []
        run([*pip, "--require-hashes", "--only-binary", ":all:", *offline, "-r", TESTS_LOCK])
    if before != [lock, wheel]:
        run([*pip, "--force-reinstall", "--no-index", the_wheel()])
        run([python, "-m", "pip", "check", "--disable-pip-version-check"])
        stamp.write_text(f"{lock} {wheel}\n", encoding="ascii")
    return python


class Counts:
    """What pytest reports: the counts, and what is needed to run skipped tests again."""

    def __init__(self, report):
        self.passed = self.failed = 0
        self.skipped = []  # (node, reason)
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                self.failed += 1
            elif (skip := case.find("skipped")) is not None:
                # For a file that was skipped as a whole, the reason is in the text.
                reason = f"{skip.get('message') or ''} {skip.text or ''}"
                self.skipped.append((node_of(case), " ".join(reason.split())[:300]))
            else:
                self.passed += 1


def node_of(case):
    """pytest's name of a test, or of the file if the file as a whole was skipped."""
    parts = [part for part in (case.get("classname") or "").split(".") if part]
    if not parts:
        return case.get("name").replace(".", "/") + ".py"
    files = [i for i in range(len(parts)) if parts[i].startswith("test_")]
    split = files[0] + 1 if files else len(parts)
    return "::".join(["/".join(parts[:split]) + ".py", *parts[split:], case.get("name")])


# The modules for whose tests there are environments with them, beside the one that has only what the package needs.
OTHERS = {"jax": ("jax", "optax"), "torch": ("torch",)}


def needs(library, reason):
    """Whether a test was skipped because a module of the environment of a library is missing, which pytest quotes."""
    return re.search(rf"could not import '({'|'.join(OTHERS[library])})['.]", reason) is not None


def pytest(python, words, environment):
    """Runs pytest. Returns its exit status and the counts."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.xml"
        status = subprocess.run([str(python), "-m", "pytest", "-q", "-rf", "--durations=5", "-p", "no:cacheprovider",
                                 f"--rootdir={ROOT}", f"--junitxml={report}", *words],
                                env=environment, cwd=ROOT, check=False).returncode
        if not report.exists():
            raise locked_wheel.FetchError(f"pytest ended with status {status} and without a report")
        return status, Counts(report)


def site_packages():
    """Where the package is installed."""
    return next((ENVIRONMENT / "lib").glob("python*/site-packages"))


def quick_environment():
    """The variables of programs that compare values.

    The compiler's quickest settings, as in the tests of the library; and no programs of earlier runs.
    """
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    environment.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")
    environment.setdefault("MESHARD_PROGRAM_CACHE_MB", "0")
    environment.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    return environment


def test(names, others):
    """Runs the tests and prints the counts. Returns the exit status.

    `others` has interpreters by the names of OTHERS; the tests that need that library are run again with it.
    """
    python = installed()
    environment = {**quick_environment(), "PYTHONSAFEPATH": "1"}
    # What the build has besides the wheel: without it, the tests that need it are skipped.
    mpi, examples = FOLDER / "library" / "lib" / "libmeshard_mpi.so", ROOT / "build" / "bin"
    if mpi.exists():
        environment.setdefault("MESHARD_MPI_LIBRARY", str(mpi))
    if all((examples / name).exists() for name in ("digits", "gpt")):
        environment.setdefault("MESHARD_EXAMPLES", str(examples))
    chosen = ["-k", " or ".join(names)] if names else []
    status, counts = pytest(python, ["python/tests", *chosen], environment)
    passed, failed, skipped = counts.passed, counts.failed, counts.skipped
    if not names:
        checked = types()
        passed, failed = passed + checked[0], failed + checked[1]
    for library, interpreter in others.items():
        again = sorted({node for node, reason in skipped if needs(library, reason)})
        if not again:
            continue
        print(f"== {len(again)} tests or files that need {' or '.join(OTHERS[library])}", flush=True)
        _, more = pytest(interpreter, again, {**environment, "PYTHONPATH": str(site_packages())})
        passed, failed = passed + more.passed, failed + more.failed
        skipped = [(node, reason) for node, reason in skipped if node not in again] + more.skipped
    for node, reason in skipped:
        print(f"SKIPPED {node}: {reason}")
    if status not in (0, 1, 5) and not failed:  # 5: no test was chosen
        failed += 1
    print(f"{passed} passed, {failed} failed" + (f", {len(skipped)} skipped" if skipped else ""))
    return 0 if passed and not failed else 1


# PyTorch's own suites, whole models and programs for ranks: scripts in python/tests/pytorch, which end with an error
# where one is not as in PyTorch.
PYTORCH_SCRIPTS = (
    ["op_database.py"], ["op_database.py", "--grad"], *(["op_database.py", "--dtype", dtype] for dtype in
                                                       ("int64", "bool", "bfloat16", "complex64")),
    *(["op_database.py", "--device", *options] for options in ([], ["--grad"], ["--variant", "in place"],
                                                               ["--variant", "out"])),
    ["random_eager_programs.py", "--programs", "1000"],
    ["module_database.py"], ["optimizer_database.py"], ["model_database.py"],
    ["rank_database.py", "--topology", "v5p:2x2x2"], ["explained_models.py"])


def pytorch(interpreter):
    """Runs PYTORCH_SCRIPTS. Returns the exit status."""
    installed()
    environment = {**quick_environment(), "PYTHONPATH": str(site_packages())}
    failed = 0
    for script, *options in PYTORCH_SCRIPTS:
        print(f"== {script} {' '.join(options)}", flush=True)
        failed += subprocess.run([interpreter, ROOT / "python" / "tests" / "pytorch" / script, *options],
                                 env=environment, cwd=FOLDER, check=False).returncode != 0
    print(f"{len(PYTORCH_SCRIPTS) - failed} passed, {failed} failed")
    return 1 if failed else 0


def beside_jax(interpreter, program):
    """Runs a program with the package in an environment with JAX. Returns the exit status."""
    installed()
    environment = {**quick_environment(), "PYTHONPATH": str(site_packages())}
    return subprocess.run([interpreter, *program], env=environment, cwd=ROOT, check=False).returncode


def types():
    """Checks the stubs of the installed package and a program that uses them. Returns how many checks passed and failed."""
    python = locked_environment.interpreter(BUILD_LOCK)
    installed()
    package = site_packages() / "meshard"
    stubs = [stub.relative_to(package.parent).with_suffix("") for stub in sorted(package.rglob("*.pyi"))]
    modules = [".".join(part for part in stub.parts if part != "__init__") for stub in stubs]
    checks = [("the stubs", [word for module in modules for word in ("-m", module)]),
              ("the sample program", [ROOT / "python" / "tests" / "typing_sample.py"])]
    failed = 0
    for name, words in checks:
        done = subprocess.run([str(python), "-m", "mypy", "--strict", "--config-file=", "--cache-dir", FOLDER / "mypy",
                               "--python-executable", ENVIRONMENT / "bin" / "python", *words], cwd=FOLDER, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8")
        failed += done.returncode != 0
        print(f"  mypy: {name:<20} {'FAILED' if done.returncode else 'passed'}")
        if done.returncode:
            print(done.stdout)
    return len(checks) - failed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("wheel").add_argument("--library", required=True)
    tests = commands.add_parser("test")
    for library in OTHERS:
        tests.add_argument(f"--{library}")
    tests.add_argument("names", nargs="*")
    commands.add_parser("pytorch").add_argument("interpreter")
    jax = commands.add_parser("jax")
    jax.add_argument("interpreter")
    jax.add_argument("program", nargs=argparse.REMAINDER)
    commands.add_parser("types")
    commands.add_parser("interpreter")
    commands.add_parser("compiler-interpreter")
    arguments = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    if arguments.command == "wheel":
        build_wheel(arguments.library)
    elif arguments.command == "test":
        given = {library: getattr(arguments, library) for library in OTHERS}
        return test(arguments.names, {library: python for library, python in given.items() if python})
    elif arguments.command == "pytorch":
        return pytorch(arguments.interpreter)
    elif arguments.command == "jax":
        return beside_jax(arguments.interpreter, arguments.program)
    elif arguments.command == "types":
        passed, failed = types()
        print(f"{passed} passed, {failed} failed")
        return 1 if failed else 0
    elif arguments.command == "compiler-interpreter":
        python = locked_environment.existing_interpreter(BUILD_LOCK)
        if python is None:
            return 1
        print(python)
    else:
        print(installed())
    return 0


if __name__ == "__main__":
    locked_wheel.run(main)
