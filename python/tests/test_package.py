"""The package as a whole: what it imports, its names, its version, the command."""

import ast
import graphlib
import importlib
import os
import pathlib
import pkgutil
import re
import runpy
import subprocess
import sys

import pytest

import meshard

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(meshard.__file__).parent


def run(*words, **environment):
    return subprocess.run([sys.executable, *words], capture_output=True, encoding="utf-8", timeout=120, check=False,
                          env={**os.environ, "PYTHONPATH": str(FOLDER.parent), **environment})


def modules():
    names = ["meshard"] + [found.name for found in pkgutil.walk_packages(meshard.__path__, "meshard.")
                           if not found.name.startswith("meshard.lib")]  # not modules: opened at run time
    return [importlib.import_module(name) for name in names
            if not name.startswith(("meshard._meshard", "meshard.torch"))
            and name not in ("meshard.__main__", "meshard.pytest_plugin")]


def test_import_needs_only_numpy_and_ml_dtypes():
    done = run("-c", "import sys, meshard; print(*sorted({name.partition('.')[0] for name in sys.modules}))")
    assert done.returncode == 0, done.stderr
    assert "numpy" in done.stdout.split()
    assert not {"jax", "jaxlib", "torch", "scipy", "pytest", "nanobind"} & set(done.stdout.split())


def test_import_starts_no_plugin():
    done = run("-c", "import meshard", MESHARD_PLUGIN="/no/such/plugin.so")
    assert done.returncode == 0, done.stderr


def test_some_parts_are_imported_when_they_are_used():
    done = run("-c", """if True:
        import sys, meshard
        late = ("data", "io", "nn", "optim")
        print([name for name in late if "meshard." + name in sys.modules], set(late) <= set(dir(meshard)))
        from meshard import nn, optim
        import meshard.io as files
        print(meshard.nn is nn, meshard.optim is optim, meshard.io is files, meshard.data.__name__)
        try:
            meshard.other
        except AttributeError as error:
            print(error)
        """)
    assert (done.stderr, done.stdout.splitlines()) == ("", [
        "[] True", "True True True meshard.data", "module 'meshard' has no attribute 'other'; near names: outer, gather, where"])


def imports(path, modules):
    """The other modules of the package that a file imports, also in functions. Not the packages around it."""
    own = modules[path]
    package = own.split(".") if path.name == "__init__.py" else own.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            start = ".".join(package[:len(package) - node.level + 1] + (node.module or "").split(".")).strip(".")
            for alias in node.names:
                name = f"{start}.{alias.name}" if f"{start}.{alias.name}" in modules.values() else start
                if name in modules.values() and not f"{own}.".startswith(f"{name}."):
                    yield name


def test_no_modules_import_each_other_in_a_circle():
    files = sorted(FOLDER.rglob("*.py"))
    modules = {path: ".".join(["meshard", *path.relative_to(FOLDER).with_suffix("").parts]).removesuffix(".__init__")
               for path in files}
    graph = {modules[path]: set(imports(path, modules)) for path in files}
    assert "meshard._array_api.creation" in graph["meshard._array_api.manipulation"]
    list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError, naming the modules


def test_version_is_that_of_the_project():
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    assert meshard.__version__ == re.search(r"project\(meshard VERSION ([\d.]+)", text)[1]


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_public_names_exist_and_are_documented(module):
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        if callable(value) and not isinstance(value, type) and name not in ("P",):
            assert (value.__doc__ or "").strip(), f"{module.__name__}.{name} has no documentation"


def test_no_name_hides_that_of_another_part():
    where = {}
    for part in re.findall(r"^from \.(\w+) import \*", (FOLDER / "__init__.py").read_text(encoding="utf-8"), re.MULTILINE):
        module = importlib.import_module(f"meshard.{part}")
        for name in module.__all__:
            before = where.setdefault(name, module)
            assert getattr(before, name) is getattr(module, name), \
                f"meshard.{name} is in {before.__name__} and in {module.__name__}"


def test_the_sample_of_types_runs(capsys):
    runpy.run_path(str(ROOT / "python" / "tests" / "typing_sample.py"), run_name="__main__")
    assert capsys.readouterr().out.strip()


@pytest.mark.skipif(not (FOLDER / "bin" / "meshard").exists(), reason="this package does not contain the program meshard")
def test_the_command():
    done = run("-m", "meshard", "--version")
    assert done.returncode == 0 and meshard.__version__ in done.stdout, done.stderr
    help_of_fetch = run("-m", "meshard", "fetch", "--help")
    assert help_of_fetch.returncode == 0 and "tpu" in help_of_fetch.stdout
    assert run("-m", "meshard", "no-such-command").returncode != 0
    launched = run("-m", "meshard", "launch", "-n", "2", "--", sys.executable, "-c", "import meshard as ms; "
                   "run = ms.initialize_processes(collectives='none'); print('rank', run.process_index, 'of', run.size)")
    assert launched.returncode == 0, launched.stderr
    assert sorted(launched.stdout.splitlines()) == ["[0] rank 0 of 2", "[1] rank 1 of 2"]


@pytest.mark.skipif(not (FOLDER / "bin" / "meshard-compile").exists(), reason="this package does not contain meshard-compile")
def test_programs_are_compiled_for_hardware_that_is_not_here():
    report = meshard.explain(lambda x: x @ x, meshard.ones((8, 8)), topology="cpu:8")
    assert "cpu" in str(report)


@pytest.mark.skipif(not (FOLDER / "_meshard" / "__init__.pyi").exists(), reason="this package was not installed from a wheel")
def test_every_public_name_has_a_stub():
    assert (FOLDER / "py.typed").exists()
    text = (FOLDER / "_meshard" / "ops.pyi").read_text(encoding="utf-8")
    for name in dir(meshard._meshard.ops):
        if not name.startswith("_"):
            assert re.search(rf"^(def {name}\(|class {name}\b|{name}: )", text, re.MULTILINE), name
