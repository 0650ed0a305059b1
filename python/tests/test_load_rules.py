"""Models of other libraries: rules beside NumPy, and dtypes that meshard lacks."""

import json

import meshard as ms
import ml_dtypes
import numpy as np
import pytest
from meshard import P, io
from meshard.io import LoadRule

MESH = ms.Mesh({"x": 2, "y": 4})
DTYPES = [None, "float32", "bfloat16", "float64", "int32"]


def random_rule(random, i):
    """A rule for tensors `a.I.*` (names with a number), the arrays of the file, and what NumPy makes of them."""
    rank, layers = int(random.integers(1, 4)), int(random.integers(1, 3))
    sources, targets = int(random.integers(1, 4)), int(random.integers(1, 4))
    transpose = tuple(int(d) for d in random.permutation(rank)) if random.integers(2) else ()
    order = transpose or tuple(range(rank))
    dimension, groups = int(random.integers(rank)), int(random.integers(1, 4))
    inner = [int(n) for n in random.integers(1, 4, sources)]  # of each source, in a group
    total = sum(inner)
    targets = min(targets, total)
    cuts = sorted(int(n) for n in random.choice(np.arange(1, total), targets - 1, replace=False))
    sizes = [int(n) for n in np.diff([0, *cuts, total])]
    shape = [int(n) for n in random.integers(1, 5, rank)]  # of the result
    dtype = random.choice(DTYPES)
    arrays, expected = {}, {}
    is_moved = sources > 1 or targets > 1
    for layer in range(layers):
        pieces = []
        for k, size in enumerate(inner):
            new = list(shape)
            new[dimension] = size * groups
            array = random.normal(scale=50, size=[new[order.index(d)] for d in range(rank)]).astype(np.float32)
            arrays[f"a.{i}.{layer}.s{k}"] = array
            array = array.transpose(order)
            pieces.append(np.split(array, groups, dimension) if is_moved else [array])
        joined = [np.concatenate(parts, dimension) for parts in zip(*pieces)]  # of each group
        cut = [np.split(group, np.cumsum(sizes)[:-1], dimension) if is_moved else [group] for group in joined]
        for k, parts in enumerate(zip(*cut)):
            value = np.concatenate(parts, dimension)
            expected[f"b{i}.{k}.{layer}"] = value if dtype is None else value.astype(np.dtype(
                ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype))
    rule = LoadRule([f"a.{i}.*.s0", *(f"a.{i}.{{1}}.s{k}" for k in range(1, sources))],
                    [f"b{i}.{k}.*" for k in range(targets)], transpose=transpose,
                    axis=dimension - rank if random.integers(2) else dimension,
                    sizes=sizes if is_moved else (), groups=groups, dtype=dtype)
    return rule, arrays, expected


def test_random_rules_are_numpys(tmp_path):
    random = np.random.default_rng(5)
    rules, arrays, expected = [], {}, {}
    for i in range(60):
        rule, more, results = random_rule(random, i)
        rules.append(rule)
        arrays.update(more)
        expected.update(results)
    names = sorted(arrays)
    # In three files with an index.
    weight_map = {}
    for part in range(3):
        io.save(tmp_path / f"p{part}.safetensors", {name: arrays[name] for name in names[part::3]})
        weight_map.update(dict.fromkeys(names[part::3], f"p{part}.safetensors"))
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    loaded = io.load(tmp_path, rules=rules)
    assert sorted(loaded) == sorted(expected)
    for name, value in expected.items():
        found = loaded[name].numpy()
        assert found.dtype == value.dtype and found.shape == value.shape, name
        np.testing.assert_array_equal(found.astype(np.float64), value.astype(np.float64), err_msg=name)
    # The same on devices: each reads the box of its shard.
    split = {name: (MESH, P(*(None,) * (value.ndim - 1), ("y", "x"))) for name, value in expected.items()}
    for name, tensor in io.load(tmp_path, split, rules=rules).items():
        assert tensor.sharding.mesh == MESH
        np.testing.assert_array_equal(tensor.numpy().astype(np.float64), expected[name].astype(np.float64))


def test_restore_by_rules(tmp_path):
    path = tmp_path / "foreign.safetensors"
    q, k = np.arange(12, dtype=np.float32).reshape(4, 3), np.arange(6, dtype=np.float32).reshape(2, 3)
    io.save(path, {"h.0.q": q, "h.0.k": k, "h.1.q": q + 100, "h.1.k": k + 100, "h.0.inv_freq": k})
    rules = [LoadRule(["h.*.q", "h.*.k"], "blocks.*.wqk", transpose=(1, 0), axis=1), LoadRule("*.inv_freq", [])]
    like = {"blocks": [{"wqk": ms.abstract_tensor((3, 6), "float32", MESH, P(None, "x"))} for _ in range(2)]}
    model = io.restore(path, like, rules=rules)
    np.testing.assert_array_equal(model["blocks"][1]["wqk"].numpy(), np.concatenate([q, k]).T + 100)
    assert model["blocks"][1]["wqk"].sharding.spec == P(None, "x")

    like["blocks"][0] = {"wqk": ms.abstract_tensor((3, 7), "float32"), "wv": ms.abstract_tensor((3,), "float32")}
    with pytest.raises(ms.NotFoundError) as error:
        io.restore(path, like, rules=rules)
    for part in [str(path), 'lacks "blocks.0.wv" (the nearest names are', '"blocks.0.wqk" is f32[3,6]', "f32[3,7]"]:
        assert part in str(error.value)
    with pytest.raises(ms.InvalidArgumentError) as error:
        io.restore(path, like, rules=[LoadRule("h.*.qq", "x"), LoadRule(["h.*.q", "h.*.kk"], "*")])
    for part in [str(path), 'pattern "h.*.qq" matches no tensor, the nearest names are "h.', 'there is no "h.1.kk"',
                 'no rule takes "h.0.inv_freq", "h.0.k", "h.1.k"']:
        assert part in str(error.value)


def test_dtypes_that_meshard_lacks_are_bytes(tmp_path):
    path = tmp_path / "w.safetensors"
    header = json.dumps({"four": {"dtype": "F4", "shape": [2, 4], "data_offsets": [0, 4]},
                         "c": {"dtype": "C64", "shape": [1], "data_offsets": [4, 12]}}).encode()
    data = bytes([1, 2, 3, 4]) + np.array([1 + 2j], np.complex64).tobytes()
    path.write_bytes(len(header).to_bytes(8, "little") + header + data)
    weights = io.Weights(str(path))
    assert weights["four"].numpy().tolist() == [[1, 2], [3, 4]] and weights["four"].dtype == np.uint8
    assert weights["c"].numpy().tolist() == [1 + 2j]
    assert weights.stored_dtype("four") == "F4" and weights.stored_dtype("c") is None
    assert weights.path == str(path)
    with pytest.raises(ms.InvalidArgumentError, match="F4, which is read as bytes"):
        io.load(path, rules=[LoadRule("four", "four", dtype="float32"), LoadRule("*", "*")])
    # Complex numbers come back from a file of meshard's.
    io.save(tmp_path / "c.safetensors", {"c": weights["c"]})
    assert io.load(tmp_path / "c.safetensors")["c"].dtype == np.complex64
