"""plan: searches for meshes and shardings."""

import json

import pytest

from report_support import needs_compiler, needs_tpu
from test_reports import MODULE

import meshard
from meshard import P, _meshard

ops = _meshard.ops


def layer(x, w):
    return ops.tanh(ops.matmul(x, w))


def abstract(shape):
    return meshard.abstract_tensor(shape, "float32")


def test_candidates():
    found, complete = meshard.plan_candidates(MODULE, topology="cpu:8", free="w")
    # Every mesh whose axes divide the fixed sharding of x, and three choices for w for each axis of several devices.
    assert complete
    meshes = {tuple(one.axes.items()) for one in found}
    assert meshes == {(("data", a), ("model", 8 // a)) for a in (1, 2, 4, 8)}
    assert len(found) == sum(9 if a in (2, 4) else 3 for a in (1, 2, 4, 8))
    assert [one.communication for one in found] == sorted(one.communication for one in found)
    assert all(set(one.specs) == {"w"} for one in found)
    pinned, _ = meshard.plan_candidates(MODULE, topology="cpu:8", free="w", pinned={"data": 2})
    assert {one.axes["data"] for one in pinned} == {2} and len(pinned) == 9


@needs_compiler
def test_a_module():
    result = meshard.plan(MODULE, topology="cpu:8", free=["w"], pinned="data=2", most_compiled=4)
    assert (result.candidates, result.compiled, result.exhaustive) == (9, 4, False) and "limit" in result.ended_by
    assert len(result.ranking) == 4 and result.anything_fits
    best = result.best
    assert best.axes == {"data": 2, "model": 4} and best.outcome == "fits"
    # The contracted dimension of x is split by "model": a w that is split alike needs one small all-reduce.
    report = meshard.explain(best.module_text(), topology="cpu:8")
    assert report.collective_bytes == best.collective_bytes == best.report.collective_bytes
    assert [one.collective_bytes for one in result.ranking] == sorted(one.collective_bytes for one in result.ranking)
    assert best.collective_bytes <= 256
    assert "9 candidates" in str(result)
    page = result._repr_html_()
    assert page.count("<tr>") == 1 + 4 and "data=2,model=4" in page and "9 candidates, 4 compiled" in page


@needs_compiler
def test_the_given_program():
    result = meshard.plan(MODULE, topology="cpu:8", free="w", pinned="data=2", most_compiled=3, jobs=1)
    given = result.given
    assert given.as_given and given.axes == {"data": 2, "model": 4} and given.specs == {"w": 'P("model", none)'}
    assert given.module_text() == MODULE
    assert given.collective_bytes == meshard.explain(MODULE, topology="cpu:8").collective_bytes
    assert given.collective_bytes >= result.best.collective_bytes
    # A sum of one device's part of the result is the least: it is given.
    assert result.given_is_best and "nothing better than the given program" in str(result)
    front = result.front
    assert front[0].axes == result.best.axes and front[0].specs == result.best.specs
    assert [one.memory for one in front] == sorted((one.memory for one in front), reverse=True)
    written = json.loads(result.to_json())
    assert written["schema"] == "meshard.plan" and written["given_is_best"] and len(written["candidates"]) == 3
    assert [one["as_given"] for one in written["candidates"]].count(True) == 1


@needs_compiler
def test_other_shardings():
    tried = meshard.try_shardings(MODULE, shardings={"w": P(None, None), 0: P("data", None)}, topology="cpu:8")
    assert len(tried.before.collectives) == 1 and not tried.after.collectives
    assert not tried.diff.same and [one.value for one in tried.diff.placements][:2] == ["argument 0 x", "argument 1 w"]
    assert 'argument 1 w' in str(tried) and "sdy.sharding<@mesh, [{}, {}]>" in tried.module_text()
    same = meshard.try_shardings(MODULE, shardings="w: P(none, none); x: P(data)", topology="cpu:8")
    assert same.module_text() == tried.module_text()
    meshes = meshard.try_shardings(MODULE, mesh={"data": 4, "model": 2}, topology="cpu:8")
    assert meshes.after.mesh_axes == {"data": 4, "model": 2}
    split = meshard.abstract_tensor((16, 32), "float32", meshard.Mesh({"data": 4}), P(None, "data"))
    function = meshard.try_shardings(layer, split, abstract((32, 8)), topology="cpu:4", shardings={"x": P("data")})
    assert [one.value for one in function.diff.placements][:1] == ["argument 0 x"]


def test_other_shardings_that_cannot_be():
    def tried(shardings, **options):
        meshard.try_shardings(MODULE, topology="cpu:8", shardings=shardings, **options)

    with pytest.raises(meshard.InvalidArgumentError, match="no argument matches `v`; the nearest names are x, w"):
        tried({"v": P("data")})
    with pytest.raises(meshard.InvalidArgumentError, match='uses axis "dta", but the mesh is data=2,model=4'):
        tried({"w": P("dta")})
    with pytest.raises(meshard.InvalidArgumentError, match="dimension 1 of size 8 cannot be split into 16 equal parts"):
        tried({"w": P(None, "model")}, mesh={"data": 1, "model": 16})
    with pytest.raises(TypeError, match="shardings"):
        tried(None)


@needs_compiler
def test_a_function():
    result = meshard.plan(layer, abstract((16, 32)), abstract((32, 8)), topology="cpu:4", axes="data", free=["x", "w"])
    assert result.exhaustive and result.candidates == 9
    assert result.best.collective_bytes == 0 and set(result.best.specs) == {"x", "w"}
    with pytest.raises(meshard.InvalidArgumentError, match="no argument matches"):
        meshard.plan(layer, abstract((16, 32)), abstract((32, 8)), topology="cpu:4", axes="data", free="nothing")
    with pytest.raises(meshard.InvalidArgumentError, match="axes"):
        meshard.plan(layer, abstract((16, 32)), abstract((32, 8)), topology="cpu:4")


@needs_compiler
def test_programs_that_a_function_makes():
    meshes = []

    def build(mesh, specs):
        meshes.append(mesh)
        x = meshard.abstract_tensor((16, 32), "float32", mesh, P("data", None))
        w = meshard.abstract_tensor((32, 8), "float32", mesh, specs[0])
        return meshard.trace_program(layer, x, w)

    value = meshard.FreeValue("w", (32, 8), "float32", P(meshard.UNCONSTRAINED, meshard.UNCONSTRAINED))
    result = meshard.plan(build, topology="cpu:4", axes=["data", "model"], pinned={"data": 2}, values=[value])
    assert {mesh.size for mesh in meshes} == {4}
    assert result.exhaustive and result.candidates == 9 and result.best.collective_bytes == 0
    assert result.best.module_text() is None
    with pytest.raises(KeyError, match="the user's own"):
        meshard.plan(raising, topology="cpu:4", axes="data", values=[value])
    with pytest.raises(TypeError, match="TracedProgram"):
        meshard.plan(lambda mesh, specs: 7, topology="cpu:4", axes="data", values=[value])


def raising(mesh, specs):
    raise KeyError("the user's own")


@needs_compiler
def test_a_journal_and_progress(tmp_path):
    options = dict(topology="cpu:8", free="w", pinned={"data": 2}, journal=tmp_path / "journal")
    lines = []
    first = meshard.plan(MODULE, most_compiled=2, progress=lines.append, **options)
    assert (first.compiled, first.resumed) == (2, 0)
    assert lines[0].startswith("0 of ") and "now data=2,model=4" in lines[0] and "best so far" in lines[-1]
    again = meshard.plan(MODULE, most_compiled=3, **options)
    assert again.resumed == 2 and again.compiled in (1, 3)

    def interrupt(line):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        meshard.plan(MODULE, progress=interrupt, **options)


def test_errors():
    with pytest.raises(TypeError, match="with `values`"):
        meshard.plan(raising, 1, topology="cpu:4", axes="data", values=[])
    with pytest.raises(meshard.InvalidArgumentError, match="axes"):
        meshard.plan_candidates("module { func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
                                "return %a : tensor<4xf32>\n} }", topology="cpu:4")
    with pytest.raises(meshard.InvalidArgumentError):
        meshard.plan_candidates(MODULE, topology="cpu:8", pinned={"data": 3})


@needs_tpu
def test_a_tpu_that_is_not_here():
    result = meshard.plan(MODULE, topology="v5e:2x4", free="w", pinned={"data": 2}, most_compiled=2)
    assert result.best.seconds == result.best.report.schedule.seconds > 0 and result.best.basis == "schedule"
    assert result.best.exposed_seconds == result.best.report.schedule.links.exposed_seconds
    assert result.best.capacity > 15 * 2**30 and result.best.memory > 0
    assert result.best.report.target.name == "v5e:2x4"
