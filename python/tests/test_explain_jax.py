"""Programs of JAX, explained from what JAX lowered, and compared with the text that JAX's own compile gives."""

import json
import os
import subprocess
import sys

import pytest

from jax_programs import run
from report_support import libtpu, needs_compiler, needs_tpu

import meshard
from meshard import _foreign

pytest.importorskip("jax")

FOLDER = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = run.program_names()
EXPLICIT = {"all-to-all": "all_to_all", "collective-permute": "ppermute", "all-reduce": "psum",
            "all-gather": "all_gather", "reduce-scatter": "psum_scatter"}


def run_programs(platform, **variables):
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", **variables}
    path = [FOLDER, os.path.dirname(os.path.dirname(meshard.__file__)), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(path)
    done = subprocess.run([sys.executable, os.path.join(FOLDER, "jax_programs", "run.py"), platform], env=environment,
                          capture_output=True, text=True, timeout=500, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULTS ")]
    assert lines, done.stderr[-3000:]
    return json.loads(lines[0].removeprefix("RESULTS "))


def results_of(script):
    """What a script prints after RESULTS, as JSON, in a process of its own with 8 CPU devices of JAX."""
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    environment["PYTHONPATH"] = os.path.dirname(os.path.dirname(meshard.__file__))
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=300,
                          check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULTS ")]
    assert lines, done.stderr[-3000:]
    return json.loads(lines[0].removeprefix("RESULTS "))


@pytest.fixture(scope="module")
def on_cpu():
    return run_programs("cpu", JAX_PLATFORMS="cpu")


@pytest.fixture(scope="module")
def on_tpu():
    environment = {"TPU_LIBRARY_PATH": libtpu(), "TPU_SKIP_MDS_QUERY": "1", "JAX_PLATFORMS": ""}
    return run_programs("tpu", **environment)


def test_there_are_programs_of_each_kind(on_cpu):
    assert len(PROGRAMS) >= 12
    kinds = {one[0] for result in on_cpu.values() for one in result["jax"]}
    assert kinds == set(EXPLICIT)


@needs_compiler
@pytest.mark.parametrize("name", PROGRAMS)
def test_collectives_are_those_of_jax_on_a_cpu(on_cpu, name):
    result = on_cpu[name]
    assert result["jax"], "a program without collectives compares nothing"
    # Kind, bytes, executions and the devices of each group; compared as they are.
    assert result["meshard"] == result["jax"]
    assert result["target"] == "cpu:8"


@needs_compiler
@pytest.mark.parametrize("name", PROGRAMS)
def test_memory_is_that_of_jax_on_a_cpu(on_cpu, name):
    assert on_cpu[name]["memory"] == on_cpu[name]["jax_memory"]


@needs_compiler
@pytest.mark.parametrize("name", PROGRAMS)
def test_lines_are_those_of_the_program(on_cpu, name):
    with open(os.path.join(FOLDER, "jax_programs", f"{name}.py"), encoding="utf-8") as file:
        source = file.read().splitlines()
    explicit = any("shard_map" in line for line in source)
    for kind, certainty, places in on_cpu[name]["lines"]:
        assert certainty in ("exact", "merged"), (kind, certainty, places)
        for place in places:
            file, _, line = place.rpartition(":")
            assert file == f"{name}.py"
            code = source[int(line) - 1]
            if explicit:
                assert EXPLICIT[kind] in code
            else:
                assert "jax" in code or "@" in code or "(" in code, code


@needs_compiler
def test_arguments_have_their_names(on_cpu):
    assert on_cpu["data_parallel"]["arguments"] == ["params['b1']", "params['w1']", "params['w2']", "x", "y"]
    assert on_cpu["matmul_2d"]["arguments"] == ["a", "b"]


@needs_tpu
@pytest.mark.parametrize("name", PROGRAMS)
def test_collectives_are_those_of_jax_on_a_tpu(on_tpu, name):
    result = on_tpu[name]
    assert result["target"] == "v5e:2x4"
    assert result["meshard"] == result["jax"]


# --- the forms in which JAX gives programs ------------------------------------------------------------

@pytest.fixture(scope="module")
def forms():
    """The reports of one program in every form, from one process with 8 devices."""
    script = """
import json, os, sys, tempfile
import jax, jax.numpy as jnp, numpy as np
from jax import export
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P
import meshard

mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
def step(params, x):
    return {"new": params["w"] * 2, "out": jnp.tanh(x @ params["w"])}
w = jax.ShapeDtypeStruct((32, 64), jnp.float32, sharding=NamedSharding(mesh, P("model")))
x = jax.ShapeDtypeStruct((16, 32), jnp.float32, sharding=NamedSharding(mesh, P("data", "model")))
args = ({"w": w}, x)
jitted = jax.jit(step, donate_argnums=0)
lowered = jitted.lower(*args)
exported = export.export(jitted)(*args)
text = lowered.as_text(debug_info=True)
folder = tempfile.mkdtemp()
path = os.path.join(folder, "step.mlir")
open(path, "w").write(text)
reports = {
    "lowered": meshard.explain(lowered),
    "traced": meshard.explain(jitted.trace(*args)),
    "jitted": meshard.explain(jitted, *args),
    "function": meshard.explain(step, *args, donate=0),
    "arrays": meshard.explain(jitted, {"w": jnp.zeros((32, 64), device=w.sharding)},
                              jnp.zeros((16, 32), device=x.sharding)),
    "text": meshard.explain(text, topology="cpu:8"),
    "path": meshard.explain(path, topology="cpu:8"),
    "bytes": meshard.explain(text.encode(), topology="cpu:8"),
    "exported": meshard.explain(exported, topology="cpu:8"),
    "artifact": meshard.explain(exported.mlir_module_serialized, topology="cpu:8"),
    "ir": meshard.explain(lowered.compiler_ir("stablehlo"), topology="cpu:8"),
}
several = export.export(jitted, platforms=["tpu", "cpu"])(*args)
reports["several platforms"] = meshard.explain(several, topology="cpu:8")
try:
    reports["serialized"] = meshard.explain(exported.serialize(), topology="cpu:8")
except ImportError:
    pass
backwards = Mesh(np.array(jax.devices())[::-1].reshape(2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
def moved(one):
    return jax.ShapeDtypeStruct(one.shape, one.dtype, sharding=NamedSharding(backwards, one.sharding.spec))
reports["backwards"] = meshard.explain(jitted.lower({"w": moved(w)}, moved(x)))
half = Mesh(np.array(jax.devices()[4:]).reshape(2, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
def on_half(one):
    return jax.ShapeDtypeStruct(one.shape, one.dtype, sharding=NamedSharding(half, one.sharding.spec))
reports["half"] = meshard.explain(jitted.lower({"w": on_half(w)}, on_half(x)))
errors = {}
def failing(name, call):
    try:
        call()
        errors[name] = "no error"
    except Exception as error:
        errors[name] = f"{type(error).__name__}: {error}"
failing("compiled", lambda: meshard.explain(lowered.compile()))
failing("arguments", lambda: meshard.explain(lowered, 1))
failing("no topology", lambda: meshard.explain(text))
failing("too few", lambda: meshard.explain(lowered, topology="cpu:16"))
failing("symbolic", lambda: meshard.explain(export.export(jax.jit(jnp.sin))(
    jax.ShapeDtypeStruct(export.symbolic_shape("n"), jnp.float32)), topology="cpu:1"))
failing("platform", lambda: meshard.explain(several, topology="h100:8"))
failing("donated", lambda: meshard.explain(jitted, *args, donate=(1,)))
def facts_of(report):
    return {"dict": report.to_dict(), "text": str(report)}
print("RESULTS " + json.dumps({"reports": {k: facts_of(r) for k, r in reports.items()}, "errors": errors,
                               "module": meshard.module_text(jitted, *args) == text}))
"""
    return results_of(script)


FORMS = ["lowered", "traced", "jitted", "function", "arrays", "text", "path", "bytes", "exported", "artifact", "ir",
         "several platforms", "serialized"]


@needs_compiler
@pytest.mark.parametrize("form", FORMS)
def test_forms(forms, form):
    if form == "serialized" and form not in forms["reports"]:
        pytest.skip("no flatbuffers, which JAX needs to serialize")
    report = forms["reports"][form]["dict"]
    (one,) = report["collectives"]
    assert (one["kind"], one["axes"], one["bytes_in"]) == ("all-reduce", ["model"], 8 * 64 * 4)
    assert [value["name"] for value in report["arguments"]] == ["params['w']", "x"]
    assert [value["donated"] for value in report["arguments"]] == [True, False]
    assert [value["sharding"]["spec"] for value in report["arguments"]] == ['P("model", none)', 'P("data", "model")']


@needs_compiler
def test_devices_of_the_program(forms):
    def ids(name):
        report = forms["reports"][name]["dict"]
        return report["meshes"][report["mesh"]]["device_ids"]

    assert ids("lowered") == list(range(8))
    assert ids("backwards") == list(range(8))[::-1]
    assert ids("half") == [4, 5, 6, 7]
    assert forms["reports"]["half"]["dict"]["collectives"][0]["axes"] == ["model"]
    (one,) = forms["reports"]["backwards"]["dict"]["collectives"]
    assert (one["axes"], one["bytes_in"]) == (["model"], 8 * 64 * 4)


@needs_compiler
def test_errors(forms):
    errors = forms["errors"]
    assert errors["compiled"].startswith("TypeError") and "Lowered" in errors["compiled"]
    assert errors["arguments"].startswith("TypeError")
    assert errors["no topology"].startswith("TypeError") and 'topology="v5e:4x4"' in errors["no topology"]
    assert errors["too few"].startswith("InvalidArgumentError") and "part_of_target=True" in errors["too few"]
    assert errors["symbolic"].startswith("ValueError") and "symbolic" in errors["symbolic"]
    assert errors["platform"].endswith("the program was exported for tpu, cpu, not for cuda")
    assert errors["donated"].startswith("ValueError") and "jax.jit" in errors["donated"]


@needs_compiler
def test_module_text_of_jax(forms):
    assert forms["module"]


# --- what the program contains ------------------------------------------------------------------------

@pytest.fixture(scope="module")
def contents():
    """Reports on programs with collectives, callbacks and LAPACK of their own, beside JAX's own compiled text."""
    script = """
import json, re
import jax, jax.numpy as jnp, numpy as np
from jax import export
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
import meshard

def counts(names):
    return sorted([name, names.count(name)] for name in set(names))
def of_jax(lowered):
    return counts(re.findall(r" (all-gather|all-reduce|all-to-all|collective-permute)\\(", lowered.compile().as_text()))
def of_report(report):
    return counts([one.kind for one in report.collectives])
mesh = jax.make_mesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
def value(shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))
x, batch = value((16, 32), "data", "model"), value((16, 4, 4), "data")
def inside(x):
    y = jax.lax.psum(x, "model")
    return jax.lax.all_gather(jax.lax.ppermute(y, "data", [(0, 1), (1, 0)]), "data"), x @ x.T
def own(x):
    gathered, product = jax.shard_map(inside, mesh=mesh, in_specs=P("data", "model"), out_specs=(P(), P("data")),
                                      check_vma=False)(x)
    return gathered, x.sum(0)
lowered = jax.jit(own).lower(x)
forms = {"lowered": lowered, "text": lowered.as_text(debug_info=True), "no locations": lowered.as_text()}
causes = {}
for name, form in forms.items():
    report = meshard.explain(form, topology="cpu:8")
    causes[name] = sorted([one.kind, one.cause] for one in report.collectives)
def printing(x):
    jax.debug.print("{}", x.sum())
    return x * 2
calls = {
    "callback": (lambda x: jax.pure_callback(lambda a: np.asarray(a) * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x), batch),
    "print": (printing, batch),
    "solve": (lambda x: jnp.linalg.solve(x, x), batch),
    "eigh": (lambda x: jnp.linalg.eigh(x)[0], batch),
    "cholesky": (jnp.linalg.cholesky, batch),
    "svd": (lambda x: jnp.linalg.svd(x)[1], batch),
    "qr": (lambda x: jnp.linalg.qr(x)[0], batch),
    "eig": (lambda x: jnp.linalg.eig(x)[0], batch),
    "columns are split": (lambda x: jnp.linalg.cholesky(x), value((16, 4, 4), "data", None, "model")),
    "one matrix": (lambda x: jnp.linalg.svd(x)[1], value((8, 8), "data", "model")),
}
found = {}
for name, (function, argument) in calls.items():
    lowered = jax.jit(function).lower(argument)
    report = meshard.explain(lowered)
    found[name] = [of_report(report), of_jax(lowered), any("no handler here" in note for note in report.notes)]
given = {"w": P("model", None)}
layer = jax.jit(lambda x, w: jnp.tanh(x) @ w).lower(value((16, 32), "data"), value((32, 8)))
tried = [str(meshard.try_shardings(layer, shardings={"w": spec}, topology="cpu:8").diff)
         for spec in (P("model", None), meshard.P("model", None))]
candidates = [str(one) for one in meshard.plan_candidates(layer, topology="cpu:8", free="*", pinned={"data": 2})[0]]
several = None
try:
    exported = export.export(jax.jit(lambda x: jax.lax.platform_dependent(
        x, cpu=lambda x: x.sum(1), tpu=lambda x: x[:, 0] * x.sum())), platforms=["tpu", "cpu"])(x)
    several = [of_report(meshard.explain(form, topology="cpu:8")) for form in (exported, exported.serialize())]
except ImportError:
    pass
print("RESULTS " + json.dumps({"causes": causes, "calls": found, "tried": tried, "candidates": candidates,
                               "several": several}))
"""
    return results_of(script)


@needs_compiler
def test_what_is_asked_for_stays_so_without_locations(contents):
    asked = [["all-gather", "asked for"], ["all-reduce", "asked for"], ["all-reduce", "inserted"],
             ["collective-permute", "asked for"]]
    assert contents["causes"] == {name: asked for name in ("lowered", "text", "no locations")}


@needs_compiler
@pytest.mark.parametrize("name", ["callback", "print", "solve", "eigh", "cholesky", "svd", "qr", "eig",
                                  "columns are split", "one matrix"])
def test_calls_without_a_handler_have_the_collectives_of_jax(contents, name):
    ours, of_jax, is_noted = contents["calls"][name]
    assert ours == of_jax
    assert is_noted


@needs_compiler
def test_specs_of_jax_and_names_of_arguments(contents):
    assert contents["tried"][0] == contents["tried"][1]
    assert 'data=2,model=4; x: P("data", none); w: P("model", none)' in contents["candidates"]


@needs_compiler
def test_only_the_code_of_one_platform(contents):
    if contents["several"] is None:
        pytest.skip("no flatbuffers, which JAX needs to serialize")
    assert contents["several"] == [[["all-reduce", 1]]] * 2


# --- lines of libraries -------------------------------------------------------------------------------

STACK = """module {
  func.func @main(%arg0: tensor<4xf32> loc("x")) -> tensor<4xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<4xf32> loc(#loc9)
    return %0 : tensor<4xf32> loc(#loc8)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc1 = loc("/env/lib/python3.12/site-packages/layers/linear.py":7:3 to :9)
#loc2 = loc("/env/lib/python3.12/site-packages/layers/stack.py":70:3 to :9)
#loc3 = loc("/home/user/model.py":12:3 to :9)
#loc4 = loc("apply"(#loc1))
#loc5 = loc("stack"(#loc2))
#loc6 = loc("model"(#loc3))
#loc7 = loc(callsite(#loc5 at #loc6))
#loc8 = loc(callsite(#loc4 at #loc7))
#loc9 = loc("jit(model)/tanh"(#loc8))
"""


def test_the_innermost_line_outside_of_packages():
    lines = dict(line.split(" = ", 1) for line in _foreign.user_lines(STACK).splitlines() if line.startswith("#loc"))
    assert lines["#loc8"] == 'loc("model"(#loc3))'
    assert lines["#loc7"] == 'loc("model"(#loc3))'
    assert lines["#loc9"] == 'loc("jit(model)/tanh"(#loc8))'
    assert lines["#loc4"] == 'loc("apply"(#loc1))'


def test_a_stack_in_packages_alone_stays():
    alone = STACK.replace("/home/user/", "/env/lib/python3.12/site-packages/app/")
    assert _foreign.user_lines(alone) == alone


def test_a_stack_without_packages_stays():
    own = STACK.replace("/env/lib/python3.12/site-packages/", "/home/user/")
    assert _foreign.user_lines(own) == own


@needs_compiler
def test_the_report_has_the_line_outside_of_packages():
    report = meshard.explain(STACK, topology="cpu:1")
    places = {step.place for step in report.timeline}
    assert "model.py:12" in places and not any("linear.py" in place for place in places)


# --- the hardware that is here ------------------------------------------------------------------------

@pytest.mark.parametrize("module, name", [
    (dict(device_ids=[0, 1, 2, 3], platform="cpu"), "cpu:4"),
    (dict(device_ids=[4, 5], platform="cpu"), "cpu:6"),
    (dict(device_ids=[0, 1, 2, 3], platform="tpu", device_kind="TPU v5 lite",
          coords=[(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]), "v5e:2x2"),
    (dict(device_ids=[0, 1], platform="tpu", device_kind="TPU v4", coords=[(0, 0, 0), (0, 0, 1)]), "v4:1x1x2"),
    (dict(device_ids=list(range(8)), platform="gpu", device_kind="NVIDIA H100 80GB HBM3"), "h100:8"),
    (dict(device_ids=[0], platform="gpu", device_kind="some other"), None),
    (dict(), None),
])
def test_the_target_of_devices(module, name):
    assert _foreign.topology_of(_foreign.Module(b"", **module)) == name
    if name:
        assert meshard.Target.parse(name).size >= len(module["device_ids"])


# What the collectives are for that JAX's own compile for a TPU has, read from its text: the operands of gathers were
# followed back to the arguments by hand, the results of sums to the results. Only those that have to do with an argument,
# and those that the program calls itself.
PURPOSES = {
    "conjugate_gradient": [],
    "data_parallel": [["all-reduce", "gradient", ["params['b1']", "params['w1']", "params['w2']"], "backward", "inserted"]],
    # The table is used twice: its gradient is summed as a product and with what is scattered into it.
    "embedding": [["all-reduce", "gradient", ["table"], "backward", "inserted"]] * 2,
    "expert_einsum": [["all-gather", "argument", ["x"], "", "inserted"]],
    "fsdp_scan_remat": [["all-gather", "weight", ["params['down']"], "forward", "inserted"],
                        ["all-gather", "weight", ["params['up']"], "backward", "inserted"],
                        ["all-gather", "weight", ["params['up']"], "forward", "inserted"],
                        ["all-reduce", "gradient", ["params['down']"], "backward", "inserted"],
                        ["all-reduce", "gradient", ["params['up']"], "backward", "inserted"]],
    "halo_convolution": [["collective-permute", "argument", ["x"], "", "inserted"]] * 2,
    "matmul_2d": [["all-gather", "argument", ["a"], "", "inserted"], ["all-gather", "argument", ["b"], "", "inserted"]],
    "moe_all_to_all": [["all-to-all", "user", [], "", "asked for"]] * 2,
    "pipeline": [["all-reduce", "user", [], "", "asked for"], ["collective-permute", "user", [], "", "asked for"]],
    "ring_attention": [["collective-permute", "argument", ["k"], "", "asked for"],
                       ["collective-permute", "argument", ["v"], "", "asked for"]],
    "sequence_parallel": [],
    "sharded_optimizer": [["all-gather", "update", ["params['down']"], "optimizer", "inserted"],
                          ["all-gather", "update", ["params['up']"], "optimizer", "inserted"],
                          ["all-reduce", "gradient", ["params['down']"], "backward", "inserted"],
                          ["all-reduce", "gradient", ["params['up']"], "backward", "inserted"]],
    "tensor_parallel": [],
}


@needs_tpu
@pytest.mark.parametrize("name", sorted(PURPOSES))
def test_purposes_are_those_read_from_the_text_of_jax(on_tpu, name):
    named = [one for one in on_tpu[name]["purposes"] if one[1] not in ("unknown", "activations", "reshard")]
    assert sorted(named) == sorted(PURPOSES[name])


_FOR_THE_TARGET = """
import json
import jax
import jax.numpy as jnp
import meshard as ms
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

mesh = AbstractMesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
x = jax.ShapeDtypeStruct((16, 32), jnp.float32, sharding=NamedSharding(mesh, P("data", "model")))

@jax.jit
def f(x):
    chosen = jax.lax.platform_dependent(x, tpu=lambda x: jnp.sin(x), default=lambda x: jnp.cos(x))
    return chosen.sum(axis=1)

reports = [ms.explain(f, x, topology="cpu:8"), ms.explain(f.trace(x), topology="cpu:8")]
shown = [[(each.kind, list(each.axes)) for each in report.collectives] for report in reports]
from meshard import _foreign
here = jnp.ones((16, 32))
texts = [_foreign.module_of(_foreign.lowered_of_call(f, (here,), {}, platform=platform)).data.decode() for platform in ("tpu", "cpu")]
print("RESULTS " + json.dumps([shown, [["stablehlo.sine" in text, "stablehlo.cosine" in text] for text in texts]]))
"""


@needs_compiler
def test_a_function_is_lowered_for_the_platform_of_the_target():
    collectives, ops = results_of(_FOR_THE_TARGET)
    assert collectives == [[["all-reduce", ["model"]]]] * 2
    assert ops == [[True, False], [False, True]]
