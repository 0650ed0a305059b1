"""The Python reference: its pages are current, help() says the same, and the examples of docstrings run."""

import ast
import doctest
import importlib
import inspect
import pathlib
import sys

import pytest

import meshard

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(meshard.__file__).parent
sys.path.insert(0, str(ROOT / "tools" / "reference"))
python_pages = pytest.importorskip("python_pages", reason="the source tree is not here")
if not (FOLDER / "__init__.pyi").exists():
    pytest.skip("this package was not installed from a wheel", allow_module_level=True)

READER = python_pages.Reader(FOLDER)
ENTRIES = [entry for _, module, parts in python_pages.PAGES.values()
           for entry in READER.page_entries(module, parts)[0].values()]


def imported(module):
    if module.startswith("meshard.torch"):
        pytest.importorskip("torch")
    return importlib.import_module(module)


def own_text(doc):
    """A docstring without the signatures that nanobind puts before it."""
    return [line.strip() for line in inspect.cleandoc(doc or "").splitlines()
            if line.strip() and "->" not in line and not line.startswith("Overloaded function")]


def test_pages_are_current():
    wanted = python_pages.pages(READER)  # raises ValueError for a public name without a docstring
    folder = ROOT / "docs" / "python"
    stale = [name for name, text in wanted.items()
             if not (folder / name).exists() or (folder / name).read_text(encoding="utf-8") != text]
    assert not stale and {path.name for path in folder.glob("*.md")} == wanted.keys(), \
        f"{stale}: not what the docstrings say (./dev docs)"


def test_every_public_name_is_on_a_page():
    """Of the modules that users import."""
    on_pages = {(entry.module, entry.name) for entry in ENTRIES}
    for module in ("meshard", "meshard.nn", "meshard.optim", "meshard.linalg", "meshard.io", "meshard.data",
                   "meshard.fft", "meshard.random", "meshard.layout", "meshard.numpy", "meshard.pipeline",
                   "meshard.tree"):
        place = importlib.import_module(module)
        for name in getattr(place, "__all__", [name for name in dir(place) if not name.startswith("_")]):
            value = getattr(place, name)
            if callable(value) and (getattr(value, "__module__", None) or "meshard").startswith("meshard"):
                assert (module, name) in on_pages, f"{module}.{name}"


@pytest.mark.parametrize("module", sorted({entry.module for entry in ENTRIES}))
def test_help_says_the_same(module):
    place = imported(module)
    for entry in ENTRIES:
        if entry.module == module:
            value = getattr(place, entry.name)
            missing = [line for line in own_text(value.__doc__) if line not in map(str.strip, entry.doc.splitlines())]
            assert not missing, f"{module}.{entry.name}: only help() says {missing}"


@pytest.mark.parametrize("module", sorted({entry.module for entry in ENTRIES}))
def test_signatures_are_those_of_the_functions(module):
    place = imported(module)
    for entry in ENTRIES:
        if entry.module == module and entry.is_function and inspect.isfunction(getattr(place, entry.name)):
            arguments = entry.nodes[-1].args
            every = (*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg)
            shown = [each.arg for each in every if each]
            assert shown == list(inspect.signature(getattr(place, entry.name)).parameters), entry.name


def test_stubs_have_the_defaults_of_the_functions():
    for entry in ENTRIES:
        if entry.is_function and entry.stubs and entry.stubs[0] is not entry.nodes[0] and \
                isinstance(entry.stubs[-1], ast.FunctionDef):
            source, stub = entry.nodes[-1].args.defaults, entry.stubs[-1].args.defaults
            for ours, theirs in zip(source, stub):
                if ast.unparse(theirs) != "...":
                    assert ast.unparse(ours) == ast.unparse(theirs), entry.name


def docstrings():
    """(name, docstring) of every name and method with an example."""
    seen = set()
    for entry in ENTRIES:
        found = [(f"{entry.module}.{entry.name}", entry.doc)]
        if entry.is_class:
            found += [(f"{entry.module}.{entry.name}.{name}", python_pages.python_entry.documentation(nodes))
                      for name, nodes in python_pages.python_entry.members_of(entry.nodes[-1], entry.bases).items()]
        for name, doc in found:
            if ">>>" in doc and doc not in seen:
                seen.add(doc)
                yield pytest.param(name, doc, id=name)


@pytest.mark.parametrize("name, doc", list(docstrings()))
def test_example(name, doc, tmp_path, monkeypatch):
    import numpy

    monkeypatch.chdir(tmp_path)
    names = {"ms": meshard, "np": numpy}
    if "mt." in doc:
        names |= {"torch": pytest.importorskip("torch"), "mt": importlib.import_module("meshard.torch")}
    example = doctest.DocTestParser().get_doctest(doc, names, name, None, 0)
    if "topology=" in doc and not (FOLDER / "bin" / "meshard-compile").exists():
        pytest.skip("this package does not contain meshard-compile")
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(example, out=said.append)
    assert not runner.failures, "".join(said)


def test_the_most_used_names_have_examples():
    with_example = {param.id for param in docstrings()}
    wanted = """jit grad value_and_grad vjp jvp vmap checkpoint scan while_loop fori_loop cond Tensor Mesh P
        Sharding mark_sharding transfer manual abstract_tensor explain plan load_program io.save io.restore io.load io.save_async
        data.loader tree.map nn.create nn.make_linear nn.make_mlp nn.make_attention optim.Adam optim.AdamW optim.Sgd
        optim.Chain"""
    assert not [name for name in wanted.split() if f"meshard.{name}" not in with_example]
