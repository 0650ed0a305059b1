"""Programs that JAX exported, as functions of tensors: the results are those that JAX computed."""

import pathlib

import numpy as np
import pytest

import meshard as ms
from meshard import P

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "exported" / "run"
NAMES = sorted(path.stem for path in FOLDER.glob("*.bin") if path.stem != "lapack")
SHUFFLED = [5, 2, 7, 0, 3, 6, 1, 4]


def values_of(name, prefix):
    with np.load(FOLDER / f"{name}.npz") as arrays:
        return [arrays[f"{prefix}{i}"] for i in range(sum(key.startswith(prefix) for key in arrays))]


def load(name):
    return ms.load_program(FOLDER / f"{name}.bin")


def check(results, name):
    expected = values_of(name, "out")
    assert len(results) == len(expected)
    for got, want in zip(results, expected):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_flat_calls_compute_what_jax_computed(name):
    program = load(name)
    check(program.flat(values_of(name, "in")), name)
    ids = SHUFFLED if program.num_devices == 8 else [3]
    results = program.flat(values_of(name, "in"), devices=ids)
    check(results, name)
    if program.num_devices == 8:
        assert list(results[0].sharding.mesh.device_ids) == ids


def params_of(values):
    return {"w": values[2:4], "b": values[:2]}


def test_structures_are_those_of_the_export():
    step, values = load("train_one_device"), values_of("train_one_device", "in")
    updated, report = step(params_of(values), values[4])
    assert isinstance(updated, dict) and isinstance(updated["w"], list) and list(report) == ["loss"]
    check([*updated["b"], *updated["w"], report["loss"]], "train_one_device")

    unused, values = load("unused"), values_of("unused", "in")
    result = unused(*values)
    assert isinstance(result["sum"], tuple) and result["sum"][1] is None
    check([result["sum"][0], result["twice"]], "unused")

    by_name, values = load("by_name"), values_of("by_name", "in")
    result = by_name(values[0], scale={"t": values[4], "s": values[3]}, bias=(values[1], values[2]))
    check([result], "by_name")


def test_a_mesh_with_the_axes_of_the_export_is_that_of_the_results():
    mesh = ms.Mesh({"x": 2, "y": 4}, SHUFFLED)
    ring, values = load("ring"), values_of("ring", "in")
    assert ring.arguments[0].sharding.spec == P("x", "y")
    result = ring(ms.mark_sharding(ms.asarray(values[0]), mesh, P("x")), mesh=mesh)
    assert result.sharding == ms.Sharding(mesh, P("x", "y"))
    check([result], "ring")
    check([ring.on(mesh)(values[0])], "ring")


def test_an_exported_derivative():
    product = load("derivative")
    x, y = np.full(8, 2, np.float32), np.full(8, 3, np.float32)
    mesh = ms.Mesh({"x": 2, "y": 4}, SHUFFLED)
    of_x, of_y = product.vjp()(x, y, np.full(8, 10, np.float32), mesh=mesh)
    np.testing.assert_array_equal(np.asarray(of_x), 2 * x * y * 10)
    np.testing.assert_array_equal(np.asarray(of_y), x * x * 10)
    with pytest.raises(ms.InvalidArgumentError, match="vjp_order=1"):
        load("ring").vjp()


def test_as_a_part_of_a_compiled_program():
    product = load("derivative")
    x, y = ms.full((8,), 2.0), ms.full((8,), 3.0)
    np.testing.assert_array_equal(np.asarray(ms.jit(lambda a, b: product(product(a, b), b) + 1)(x, y)), 433)
    gradient = ms.grad(lambda a: ms.sum(product(a * a, y)))
    np.testing.assert_array_equal(np.asarray(ms.jit(gradient)(x)), 4 * 8 * 3)  # of a^4 b
    np.testing.assert_array_equal(np.asarray(gradient(x)), 96)
    with pytest.raises(ms.UnimplementedError, match='"step" has no derivative.*vjp_order=1'):
        step, values = load("train_one_device"), values_of("train_one_device", "in")
        ms.grad(lambda v: ms.sum(step.flat([*values[:4], v])[0]))(ms.asarray(values[4]))
    with pytest.raises(ms.UnimplementedError, match="vmap of"):
        ms.vmap(lambda a: product(a, y))(ms.ones((3, 8)))


def test_the_partitioned_program_is_compared_with_one_device():
    for name, not_compared in (("scan_open", 0), ("ring", 1)):
        program = load(name)
        check = program.check(values_of(name, "in"), devices=SHUFFLED)
        assert check and check.ok and check.results == len(program.results) and check.difference is None
        assert len(check.not_compared) <= not_compared and "agree" in str(check)
    # Its result counts as the same on all devices, but each has its own.
    wrong = ms.load_program(b"""
        module @wrong attributes {mhlo.num_partitions = 2 : i32} {
          sdy.mesh @mesh = <["x"=2]>
          func.func public @main(%arg0: tensor<4xi32>) -> (tensor<4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
            %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{}]>] out_shardings=[<@mesh, [{}]>] manual_axes={"x"} (%arg1: tensor<4xi32>) {
              %1 = stablehlo.partition_id : tensor<ui32>
              %2 = stablehlo.convert %1 : (tensor<ui32>) -> tensor<i32>
              %3 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<i32>) -> tensor<4xi32>
              %4 = stablehlo.add %arg1, %3 : tensor<4xi32>
              sdy.return %4 : tensor<4xi32>
            } : (tensor<4xi32>) -> tensor<4xi32>
            return %0 : tensor<4xi32>
          }
        }""").check([np.arange(4, dtype=np.int32)])
    assert not wrong and wrong.difference.op == "sdy.manual_computation"
    assert (wrong.difference.partitioned, wrong.difference.expected) == (1, 0)


def test_other_shardings_for_its_arguments():
    ring, values = load("ring"), values_of("ring", "in")
    mesh = ms.Mesh({"x": 2, "y": 4}, SHUFFLED)
    other = ms.Sharding(mesh, P("y", "x"))
    with pytest.raises(ms.InvalidArgumentError, match="written for the sharding.*insist"):
        ring.with_shardings([other])
    check([ring.with_shardings({ring.arguments[0].path: other}, insist=True)(values[0])], "ring")
    with pytest.raises(KeyError, match="no argument 'z'"):
        ring.with_shardings({"z": other})


def test_numbers_take_the_dtype_of_their_argument():
    scan, values = load("scan_open"), values_of("scan_open", "in")
    check(ms.tree.flatten(scan(values[0], 0.5))[0], "scan_open")
    check(ms.tree.flatten(scan(values[0], values[1]))[0], "scan_open")


def test_what_a_program_says():
    step = load("train_donated")
    assert repr(step) == "<ImportedProgram step on 8 devices: 5 arguments, 5 results>"
    assert step.platforms == ["cpu"]
    argument = step.arguments[2]
    assert (argument.path, argument.name, argument.shape, argument.donated, argument.used) == \
        ("[0]['w'][0]", "params['w'][0]", (16, 16), True, True)
    assert argument.dtype == ms.float32
    assert step.results[4].path == "[1]['loss']"
    assert ms.load_program((FOLDER / "unused.bin").read_bytes()).arguments[1].used is False


def test_wrong_arguments_are_named():
    step, values = load("train_one_device"), values_of("train_one_device", "in")
    with pytest.raises(ms.InvalidArgumentError, match=r"missing: \[0\]\[0\]\['w'\]\[1\]"):
        step({"w": values[2:3], "b": values[:2]}, values[4])
    with pytest.raises(ms.InvalidArgumentError, match=r"\[0\]\['w'\]\[1\] \(params\['w'\]\[1\]\).*f32\[16\].*f32\[16,16\]"):
        step({"w": [values[2], values[0]], "b": values[:2]}, values[4])
    with pytest.raises(ms.InvalidArgumentError, match="takes 5 arguments, but 1 is given"):
        step.flat(values[:1])
    with pytest.raises(ms.InvalidArgumentError, match="for 1 device"):
        step.flat(values, devices=[1, 2])


def test_lapack_comes_from_the_system():
    try:
        results = load("lapack").flat(values_of("lapack", "in"))
    except ms.NotFoundError as error:
        assert "lapack_sgetrf_ffi" in str(error) and "record_run.py:" in str(error)
        pytest.skip(str(error))
    check(results, "lapack")


def test_donated_arguments_are_gone():
    step, values = load("train_donated"), values_of("train_donated", "in")
    mesh = ms.Mesh({"x": 2, "y": 4})
    tensors = [ms.mark_sharding(ms.asarray(value), mesh, argument.sharding.spec)
               for value, argument in zip(values, step.arguments)]
    ms.block_until_ready(tensors)
    check(step.flat(tensors, mesh=mesh), "train_donated")
    with pytest.raises(ms.FailedPreconditionError, match="donated"):
        np.asarray(tensors[2])
    np.testing.assert_array_equal(np.asarray(tensors[4]), values[4])
