"""expect, and the pytest plugin with its baselines."""

import os

import pytest

from report_support import needs_compiler, needs_tpu
from test_reports import MODULE

import meshard
from meshard import pytest_plugin

pytest_plugins = ["pytester"]
CACHE = os.environ.get("MESHARD_CACHE") or os.path.expanduser("~/.cache/meshard")


@pytest.fixture(scope="module")
def report():
    return meshard.explain(MODULE, topology="cpu:8")


@needs_compiler
def test_what_holds(report):
    assert meshard.expect(report, "1 all-reduce over model, at most 256 B") is report
    assert meshard.expect(MODULE, "1 all-reduce over model", topology="cpu:8").name == "product"
    checked = meshard.check_expectations(report, "at most 2 all-reduces; no all-gathers")
    assert checked and checked.ok and "at most 2 all-reduces" in checked.met and checked.broken == []
    meshard.expect_no_full_replication(report)


@needs_compiler
@pytest.mark.parametrize("text, said", [
    ("no collectives", "model.py:12"),
    ("1 all-gather over model", "model.py:12"),
    ("1 all-reduce over data", "model.py:12"),
    ("1 all-reduce over model, at most 255 B", "256 B"),
    ("2 all-reduces over model", "found 1"),
])
def test_what_does_not_hold(report, text, said):
    with pytest.raises(meshard.ExpectationError, match=said) as caught:
        meshard.expect(report, text)
    assert isinstance(caught.value, AssertionError) and isinstance(caught.value, meshard.FailedPreconditionError)
    assert caught.value.report is report and caught.value.broken
    assert not meshard.check_expectations(report, text)


@needs_compiler
def test_replication_and_memory(report):
    whole = MODULE.replace('[{"model"}, {}]', "[{}, {}]")
    with pytest.raises(meshard.ExpectationError, match="argument 1 w|w "):
        meshard.expect_no_full_replication(whole, topology="cpu:8", least_bytes=1024)
    meshard.expect_no_full_replication(whole, topology="cpu:8", least_bytes=1024, except_names=["w"])
    meshard.expect_fits(report)  # virtual CPU devices share the machine's memory


def test_texts():
    with pytest.raises(meshard.InvalidArgumentError):
        meshard.expect(None, "some all-gathers")  # before anything is compiled
    parsed = meshard.Expectations.parse("1 all-reduce over model  # the product\nfits with 10% spare")
    assert parsed == meshard.Expectations.parse(str(parsed)) != meshard.Expectations.parse("fits")
    assert meshard.Expectations.parse("").empty and not parsed.empty


# --- the plugin ---------------------------------------------------------------------------------------

TEST = """
import meshard
MODULE = open("product.mlir").read()
def test_product(expect):
    expect.baseline(MODULE, topology="cpu:8")
"""
GATHERED = MODULE.replace("return %0", "%1 = sdy.sharding_constraint %0 <@mesh, [{}, {}]> : tensor<16x8xf32> "
                          'loc("mark"("model.py":15:3))\n    return %1')


def run(pytester, *words):
    return pytester.runpytest_subprocess("-p", "meshard.pytest_plugin", "-p", "no:cacheprovider", *words)


@pytest.fixture
def tests(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(os.path.dirname(meshard.__file__)))
    monkeypatch.setenv("MESHARD_CACHE", CACHE)  # pytester has a home of its own
    pytester.makefile(".mlir", product=MODULE)
    pytester.makepyfile(test_step=TEST)
    return pytester


@needs_compiler
def test_a_baseline(tests):
    missing = run(tests)
    missing.assert_outcomes(failed=1)
    missing.stdout.fnmatch_lines(["*there is no baseline*baselines/test_step-test_product.json*--meshard-update*"])
    written = run(tests, "--meshard-update")
    written.assert_outcomes(passed=1)
    written.stdout.fnmatch_lines(["*written: baselines/test_step-test_product.json*"])
    run(tests).assert_outcomes(passed=1)

    # A change adds an all-gather: the test fails, and names the line.
    tests.makefile(".mlir", product=GATHERED)
    failed = run(tests)
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*all-gather over data: 512 bytes:*", "*all-gather*on axis \"data\"*model.py:12*",
                                  "*because*model.py:12 needs all of dimension 0*",
                                  "*--meshard-update*"])
    run(tests, "--meshard-update").assert_outcomes(passed=1)
    run(tests).assert_outcomes(passed=1)

    # A change removes it: the test passes, and the end of the run says so.
    tests.makefile(".mlir", product=MODULE)
    better = run(tests)
    better.assert_outcomes(passed=1)
    better.stdout.fnmatch_lines(["*less than expected*all-gather over data: 0 bytes, were 512*"])


@needs_compiler
def test_more_bytes(tests):
    run(tests, "--meshard-update").assert_outcomes(passed=1)
    tests.makefile(".mlir", product=MODULE.replace("16x", "32x"))
    failed = run(tests)
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*all-reduce over model: 512 bytes, expected 256 (from model.py:12):*",
                                  "*memory per device*"])
    tests.makepyfile(test_step=TEST.replace('topology="cpu:8"', 'topology="cpu:8", margin=1.5, memory_margin=1.5'))
    run(tests).assert_outcomes(passed=1)


@needs_compiler
def test_the_fixture_checks_texts(tests):
    tests.makepyfile(test_step=TEST.replace("expect.baseline(MODULE, ", 'expect(MODULE, "no collectives", '))
    failed = run(tests)
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*expected no collectives, found 1:*", "*model.py:12*"])
    tests.makepyfile(test_step=TEST.replace("expect.baseline(MODULE, ", 'expect(MODULE, "1 all-reduce over model", '))
    run(tests).assert_outcomes(passed=1)


@needs_compiler
def test_several_baselines_have_names(tests):
    tests.makepyfile(test_step=TEST + '    expect.baseline(MODULE, topology="cpu:8")\n')
    run(tests, "--meshard-update").assert_outcomes(failed=1)
    tests.makepyfile(test_step=TEST + '    expect.baseline(MODULE, name="again", topology="cpu:8")\n')
    run(tests, "--meshard-update").assert_outcomes(passed=1)
    assert sorted(os.listdir(tests.path / "baselines")) == ["test_step-test_product-again.json",
                                                            "test_step-test_product.json"]


@needs_compiler
def test_another_target_is_another_program(tests):
    run(tests, "--meshard-update").assert_outcomes(passed=1)
    tests.makepyfile(test_step=TEST.replace('topology="cpu:8"', 'topology="cpu:16", part_of_target=True'))
    failed = run(tests)
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*the baseline is for cpu:8, and this program for cpu:16*"])


# Four layers, whose gradients are summed over "data": a compiler may sum them in one collective.
LAYERS = 4
LAYERED = """
module @step attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=8]>
  func.func @main(%x: tensor<64x128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> (RESULTS) {
BODY    return VALUES : TYPES
  }
}
"""


def layered():
    """x_i = tanh(x_(i-1)); the sum over rows of each is a result that all devices have."""
    body, value = "", "%x"
    for i in range(LAYERS):
        body += f"""    %t{i} = stablehlo.tanh {value} : tensor<64x128xf32>
    %z{i} = stablehlo.constant dense<0.0> : tensor<f32>
    %s{i} = stablehlo.reduce(%t{i} init: %z{i}) applies stablehlo.add across dimensions = [0] : (tensor<64x128xf32>, tensor<f32>) -> tensor<128xf32>
"""
        value = f"%t{i}"
    whole = "tensor<128xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}"
    return (LAYERED.replace("BODY", body).replace("RESULTS", ", ".join([whole] * LAYERS))
            .replace("VALUES", ", ".join(f"%s{i}" for i in range(LAYERS)))
            .replace("TYPES", ", ".join(["tensor<128xf32>"] * LAYERS)))


@needs_tpu
def test_a_baseline_does_not_depend_on_what_the_compiler_combines():
    apart = {"xla_jf_crs_combiner_threshold_in_bytes": 0}
    combined = meshard.explain(layered(), topology="v5e:2x4")
    separate = meshard.explain(layered(), topology="v5e:2x4", overrides=apart)
    counts = [len(one.logical_collectives) for one in (combined, separate)]
    assert counts[0] < counts[1] == LAYERS, counts
    for first, second in ((combined, separate), (separate, combined)):
        assert pytest_plugin.compare(pytest_plugin.summary(first), second) == ([], [])
    (group,) = pytest_plugin.summary(combined)["collectives"]
    assert group["bytes"] == LAYERS * 128 * 4  # each device's sums of one row of 128 floats for each layer
