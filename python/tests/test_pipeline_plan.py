"""explain() and plan() of pipelines, for hardware that is not here."""

import json

import meshard
import numpy as np
import pytest
from meshard import P, optim, pipeline

MESH = {"stage": 2, "x": 4}


def halves():
    mesh = meshard.Mesh(MESH)
    return mesh.submesh("x", 0), mesh.submesh("x", 4)


def two_stages(weight=None):
    left, right = halves()
    if weight is None:
        weight = meshard.abstract_tensor((256, 256), "float32")
    return [pipeline.Stage(left, weight, lambda w, x: x @ w, name="first"),
            pipeline.Stage(right, weight, lambda w, h, x: meshard.mean(h @ w))]


def batch():
    return meshard.abstract_tensor((64, 256), "float32", halves()[0], P("x", None))


def test_explain():
    # The example of docs/guides/plan-pipelines.md, whose numbers follow from the schedule and the shapes.
    times = {"forward": 1e-3, "input_gradient": 1e-3, "weight_gradient": [1e-3, 1e-3], "send_forward": 1e-3}
    report = pipeline.explain(two_stages(), pipeline.one_forward_one_backward(2, 4), batch(), topology="cpu:8",
                              optimizer=optim.Adam(), times=times, memory=16_000_000)
    assert report.times_known and report.fits
    assert report.time == pytest.approx(17e-3)  # 3 + 4 * 3 of a worker, and two transfers
    assert report.bubble == pytest.approx(1 - 12 / 17)
    assert report.formula_bubble == pytest.approx(1 / 5)
    first, second = report.stages
    assert (first.name, first.worker, second.worker) == ("first", 0, 1)
    assert first.mesh == halves()[0]
    assert first.times["forward"] == 1e-3 and first.busy == pytest.approx(12e-3)
    memory = first.memory
    assert memory.parameters == memory.gradients == 256 * 256 * 4
    assert memory.optimizer_state >= 2 * memory.parameters
    assert memory.activations == 2 * memory.activations_of_microbatch == 2 * 16 * 256 * 4
    assert memory.kept_microbatches == 2
    assert memory.spare == 16_000_000 - memory.total and memory.capacity == 16_000_000
    assert [p.work for p in first.programs] == ["forward", "backward", "update"]
    assert isinstance(first.programs[0].report, meshard.Report)
    there, back = report.transfers
    assert (there.from_stage, there.to_stage, there.bytes, there.device_bytes) == (0, 1, 64 * 256 * 4, 16 * 256 * 4)
    assert there.exposed == pytest.approx(2e-3) and back.exposed == 0
    assert report.timeline.length == pytest.approx(report.time)
    assert report.schedule == pipeline.one_forward_one_backward(2, 4)
    assert json.loads(report.to_json())["stages"][0]["name"] == "first"
    assert "bubble" in str(report) and report._repr_html_().startswith("<svg")


def test_explain_says_what_does_not_fit():
    report = pipeline.explain(two_stages(), pipeline.gpipe(2, 2), batch(), topology="cpu:8", memory=100_000)
    assert not report.fits and not report.stages[0].fits and report.stages[0].memory.spare < 0
    assert not report.times_known  # a CPU has no published figures


def test_errors_of_explain():
    schedule = pipeline.gpipe(2, 2)
    with pytest.raises(ValueError, match="unknown time 'backward' of a stage"):
        pipeline.explain(two_stages(), schedule, batch(), topology="cpu:8", times={"backward": 1})
    with pytest.raises(ValueError, match="3 times for 2 stages"):
        pipeline.explain(two_stages(), schedule, batch(), topology="cpu:8", times={"forward": [1, 2, 3]})
    with pytest.raises(TypeError, match="objects of class Stage"):
        pipeline.explain([1, 2], schedule, batch(), topology="cpu:8")
    with pytest.raises(meshard.InvalidArgumentError):  # the meshes have devices 0 to 7
        pipeline.explain(two_stages(), schedule, batch(), topology="cpu:4")
    with pytest.raises(meshard.InvalidArgumentError):
        pipeline.explain(two_stages()[:1], schedule, batch(), topology="cpu:8")


def test_an_error_in_a_stage_is_the_users():
    stages = two_stages()
    stages[1] = pipeline.Stage(halves()[1], None, lambda w, h, x: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        pipeline.explain(stages, pipeline.gpipe(2, 2), batch(), topology="cpu:8")


def model(widths, make):
    return pipeline.Layers([make(width) for width in widths], lambda x: x,
                           lambda w, h: (h @ w) @ meshard.matrix_transpose(w), lambda h, x: meshard.mean((h - x) ** 2))


def abstract_weight(width):
    return meshard.abstract_tensor((32, width), "float32")


def test_plan_divides_by_time():
    # The last layer has as much work as the others together.
    layers = model([64, 64, 64, 64, 256], abstract_weight)
    assert len(layers) == 5
    whole = meshard.abstract_tensor((64, 32), "float32", meshard.Mesh({"x": 2}), P("x", None))
    plan = pipeline.plan(layers, whole, topology="cpu:4", workers=[2], microbatches=[4], chunks=[1], schedules=["1F1B"])
    best = plan.ranking[0]
    assert plan.anything_fits and best.fits and best.candidate.layers == [4, 1]
    assert (best.candidate.schedule, best.candidate.workers, best.candidate.microbatches) == ("1F1B", 2, 4)
    assert best.candidate.axes == {"x": 2} and best.candidate.stages == 2
    assert best.report.time <= min(one.report.time for one in plan.ranking if one.report)
    assert plan.considered >= len(plan.ranking) and plan.compiled > 0
    assert best.candidate.make_schedule() == pipeline.one_forward_one_backward(2, 4)
    assert json.loads(plan.to_json())["schema"] == "meshard.pipeline_plan"
    assert plan.reason(0) and "1F1B" in str(plan)
    with pytest.raises(IndexError):
        plan.reason(len(plan.ranking))


def test_what_runs_now_is_ranked():
    given = pipeline.Candidate("GPipe", 2, {"x": 2}, [1, 3], 4)
    assert given == pipeline.Candidate("GPipe", workers=2, axes={"x": 2}, layers=[1, 3], microbatches=4, chunks=1)
    plan = pipeline.plan(model([64] * 4, abstract_weight), meshard.abstract_tensor((64, 32), "float32"), topology="cpu:4",
                         workers=[2], microbatches=[4], chunks=[1], schedules=["GPipe"], given=given)
    assert [one.candidate for one in plan.ranking if one.as_given] == [given]
    assert plan.ranking[0].candidate.layers == [2, 2] and not plan.given_is_best
    with pytest.raises(ValueError, match="no schedule \"2F2B\""):
        pipeline.Candidate("2F2B", 2, {"x": 2}, [1, 3], 4)


def test_a_candidate_runs():
    rng = np.random.default_rng(1)
    weights = [rng.standard_normal((32, 64)).astype(np.float32) * 0.05 for _ in range(4)]
    layers = model(weights, meshard.asarray)
    candidate = pipeline.Candidate("1F1B", 2, {"x": 2}, [3, 1], 2)
    run = pipeline.Pipeline(candidate.make_stages(layers, "cpu:4"), candidate.make_schedule())
    x = rng.standard_normal((8, 32)).astype(np.float32)
    loss = float(run.backward([meshard.asarray(x[:4]), meshard.asarray(x[4:])]))
    h = x
    for w in weights:
        h = h @ w @ w.T
    assert loss == pytest.approx(float(np.mean((h - x) ** 2)), rel=1e-5)
    assert [len(run.parameters(s)) for s in range(2)] == [3, 1]
