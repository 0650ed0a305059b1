"""A sample of the programs for ranks of the catalog; rank_database.py runs all of them."""

import collections

import pytest

torch = pytest.importorskip("torch")

import rank_collective_programs  # noqa: E402, F401: adds its programs
import rank_support  # noqa: E402
from rank_comparison import Comparison, by_axes  # noqa: E402
from rank_programs import PROGRAMS  # noqa: E402
from rank_support import MESH  # noqa: E402

import meshard as ms  # noqa: E402
import meshard.torch as mt  # noqa: E402

device_mesh = rank_support.device_mesh


@pytest.mark.parametrize("name", ["fully_sharded_by_collectives", "replicas_with_buckets", "vocabulary_parallel",
                                  "coalesced_parameters"])
def test_values_and_collectives(name):
    compared = Comparison(PROGRAMS[name], MESH)
    wanted, called = compared.wanted()
    assert compared.error(wanted) <= 1e-5
    assert called and compared.recorded() == called
    assert by_axes(compared.reported()) == by_axes(called)  # XLA combines all-reduces


def test_beside_marks(device_mesh):
    compared = Comparison(PROGRAMS["vocabulary_parallel"], MESH)
    program = compared.program
    difference = mt.compare_with_marks(compared.per_rank, program.whole, *program.arguments, topology="cpu:8")
    reports = [compared.explained(),
               ms.explain(mt.compile(program.whole), *marked(program), topology="cpu:8")]
    for side, report in zip(("before", "after"), reports):
        wanted = collections.Counter({(each.kind, ", ".join(f'"{axis}"' for axis in each.axes)): 0
                                      for each in report.collectives})
        for each in report.collectives:
            wanted[each.kind, ", ".join(f'"{axis}"' for axis in each.axes)] += each.bytes_out
        found = collections.Counter()
        for each in difference.collectives:
            found[each.kind, each.axes] += getattr(each, side).bytes
        assert wanted and +found == +wanted
    assert "argument" not in str(difference).partition("shardings:")[2].partition("largest buffers")[0]


def marked(program):
    return [mt.mark_sharding(each, MESH, spec) for each, spec in zip(program.arguments, program.specs)]


def test_marks_need_the_same_inputs(device_mesh):
    compared = Comparison(PROGRAMS["dtensor_mlp"], MESH)
    with pytest.raises(ValueError, match=r"up\.weight of shape \(16, 8\) is .* no such input, only args\[0\], args"):
        mt.compare_with_marks(compared.per_rank, torch.add, *compared.program.arguments, topology="cpu:8")
    with pytest.raises(TypeError, match="expected what per_rank"):
        mt.compare_with_marks(torch.add, torch.add, torch.ones(8), topology="cpu:8")
