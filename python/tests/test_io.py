"""Checkpoints, safetensors, npy, pickle and copies."""

import copy
import dataclasses
import json
import pickle
import subprocess
import sys
import time

import ml_dtypes
import numpy as np
import pytest

import meshard as ms
from meshard import P, io

MESH = ms.Mesh({"x": 4})
DATA = np.arange(32, dtype=np.float32).reshape(8, 4)


@dataclasses.dataclass
class Layer:
    w: object
    b: object
    kind: str = dataclasses.field(default="dense", metadata={"static": True})


def state():
    x = ms.from_dlpack(DATA.copy())
    return {"params": {"blocks": [Layer(ms.mark_sharding(x, MESH, P("x")), x[0]), Layer(x * 2, x[1])]},
            "step": 7, "rate": 0.5, "on": True, "none": None}


# --- checkpoints ---------------------------------------------------------------------------------


def test_names_are_paths():
    assert io.names(state()) == ["on", "params.blocks.0.w", "params.blocks.0.b", "params.blocks.1.w",
                                 "params.blocks.1.b", "rate", "step"]
    assert io.names({"model.layers.0.weight": DATA}) == ["model.layers.0.weight"]
    assert io.names(DATA) == ["value"]


@pytest.mark.parametrize("write", ["save", "save_async"])
def test_save_and_restore(tmp_path, write):
    before = state()
    path = tmp_path / "step.safetensors"
    if write == "save":
        io.save(path, before)
    else:
        saving = io.save_async(path, before)
        saving.wait()
        assert saving.done()
    like = state()
    like["step"], like["rate"], like["on"] = 0, 0.0, False
    after = io.restore(path, like)
    assert (after["step"], after["rate"], after["on"], after["none"]) == (7, 0.5, True, None)
    assert [type(after[key]) for key in ("step", "rate", "on")] == [int, float, bool]
    for one, other in zip(before["params"]["blocks"], after["params"]["blocks"]):
        assert isinstance(other, Layer) and other.kind == "dense"
        np.testing.assert_array_equal(other.w.numpy(), one.w.numpy())
        np.testing.assert_array_equal(other.b.numpy(), one.b.numpy())
    assert after["params"]["blocks"][0].w.sharding == ms.Sharding(MESH, P("x", None))
    assert after["params"]["blocks"][1].w.placement == "host"


def test_restore_onto_another_mesh_reads_each_part_once(tmp_path):
    io.save(tmp_path / "a.safetensors", {"w": ms.mark_sharding(DATA, MESH, P("x"))})
    other = ms.Mesh({"a": 2, "b": 2})
    like = {"w": ms.abstract_tensor((8, 4), np.float32, other, P("b", "a"))}
    before = ms.runtime_counters()
    w = io.restore(tmp_path / "a.safetensors", like)["w"]
    assert w.sharding == ms.Sharding(other, P("b", "a"))
    assert (ms.runtime_counters() - before).bytes_sent == DATA.nbytes
    np.testing.assert_array_equal(w.numpy(), DATA)


def test_a_saved_tensor_may_be_donated(tmp_path):
    x = ms.mark_sharding(np.zeros((1024, 64), np.float32), MESH, P("x"))
    saving = io.save_async(tmp_path / "a.safetensors", {"x": x})
    y = ms.jit(lambda v: v + 1, donate_argnums=0)(x)
    y.block_until_ready()
    saving.wait()
    assert io.load(tmp_path / "a.safetensors")["x"].numpy().max() == 0


def test_errors(tmp_path):
    path = tmp_path / "a.safetensors"
    io.save(path, {"x": DATA})
    with pytest.raises(ms.InvalidArgumentError, match=r'"x" is f32\[8,4\] in the checkpoint'):
        io.restore(path, {"x": ms.abstract_tensor((8, 4), np.float64)})
    with pytest.raises(ms.NotFoundError, match="y"):
        io.restore(path, {"y": DATA})
    with pytest.raises(ms.NotFoundError):
        io.restore(tmp_path / "nothing", {"x": DATA})
    with pytest.raises(ValueError, match="both have the name 'a.b'"):
        io.save(path, {"a": {"b": DATA}, "a.b": DATA})
    with pytest.raises(ms.Error):
        io.save_async(tmp_path / "no folder" / "a.safetensors", {"x": DATA}).wait()
    (tmp_path / "bad.safetensors").write_bytes(b"12345678 not a header")
    with pytest.raises(ms.InvalidArgumentError):
        io.Weights(str(tmp_path / "bad.safetensors"))
    np.testing.assert_array_equal(io.load(path)["x"].numpy(), DATA)  # the failed saves left it alone


def test_folders_and_metadata(tmp_path):
    io.save(f"{tmp_path}/model/", {"x": DATA}, metadata={"epoch": "3"})
    assert (tmp_path / "model" / "model.safetensors").exists()
    weights = io.Weights(str(tmp_path / "model"))
    assert weights.metadata == {"format": "meshard", "epoch": "3"}


# --- weights -------------------------------------------------------------------------------------


def test_weights_are_read_on_use(tmp_path):
    path = str(tmp_path / "a.safetensors")
    io.save(path, {"b": DATA, "a": np.arange(3, dtype=np.int64)})
    weights = io.Weights(path)
    assert weights.names() == ["a", "b"] == list(weights) and len(weights) == 2
    assert "a" in weights and "c" not in weights
    assert weights.type("b") == ((8, 4), np.dtype("float32"))
    assert weights.parts("b") == [(path, "b", (slice(0, 8), slice(0, 4)))]
    np.testing.assert_array_equal(weights["a"].numpy(), [0, 1, 2])
    placed = weights.tensor("b", ms.Sharding(MESH, P("x")))
    assert placed.sharding == ms.Sharding(MESH, P("x", None))
    for wrong in (weights.type, weights.tensor, weights.parts, weights.__getitem__):
        with pytest.raises(ms.NotFoundError):
            wrong("c")


def hugging_face_names():
    return {f"model.layers.{i}.self_attn.{kind}_proj.weight": DATA + i for i in range(2) for kind in "qk"}


def test_load_places_by_patterns(tmp_path):
    io.save(tmp_path / "a.safetensors", {**hugging_face_names(), "lm_head.weight": DATA})
    loaded = io.load(tmp_path / "a.safetensors", {
        "*.q_proj.weight": (MESH, P("x")), "model.layers.1.*": ms.Sharding(MESH, P(None, "x"))})
    assert loaded["model.layers.1.self_attn.q_proj.weight"].sharding == ms.Sharding(MESH, P("x", None))
    assert loaded["model.layers.1.self_attn.k_proj.weight"].sharding == ms.Sharding(MESH, P(None, "x"))
    assert loaded["model.layers.0.self_attn.k_proj.weight"].sharding is None
    np.testing.assert_array_equal(loaded["model.layers.1.self_attn.k_proj.weight"].numpy(), DATA + 1)
    assert set(loaded) == {*hugging_face_names(), "lm_head.weight"}


def test_files_of_the_safetensors_package(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    arrays = {**hugging_face_names(), "half": DATA.astype(np.float16), "flags": DATA > 3, "empty": np.zeros((0, 3))}
    safetensors.save_file(arrays, tmp_path / "theirs.safetensors", metadata={"format": "pt"})
    loaded = io.load(tmp_path / "theirs.safetensors")
    assert set(loaded) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(loaded[name].numpy(), array)
    io.save(tmp_path / "ours.safetensors", arrays)
    for name, array in safetensors.load_file(tmp_path / "ours.safetensors").items():
        np.testing.assert_array_equal(array, arrays[name])


def test_an_index_of_several_files(tmp_path):
    names = sorted(hugging_face_names())
    io.save(tmp_path / "model-00001.safetensors", {name: hugging_face_names()[name] for name in names[:2]})
    io.save(tmp_path / "model-00002.safetensors", {name: hugging_face_names()[name] for name in names[2:]})
    files = {name: f"model-0000{1 + i // 2}.safetensors" for i, name in enumerate(names)}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))
    loaded = io.load(tmp_path)
    assert sorted(loaded) == names
    np.testing.assert_array_equal(loaded[names[3]].numpy(), hugging_face_names()[names[3]])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float64", ml_dtypes.bfloat16,
                                   ml_dtypes.float8_e4m3fn])
def test_dtypes(tmp_path, dtype):
    array = (np.arange(6) % 2).astype(dtype)
    io.save(tmp_path / "a.safetensors", {"x": array})
    x = io.load(tmp_path / "a.safetensors")["x"]
    assert x.dtype == array.dtype
    np.testing.assert_array_equal(x.numpy(), array)


def test_npy_both_ways(tmp_path):
    for i, array in enumerate([DATA, DATA.T.copy(order="F"), np.array(3, np.int16), np.zeros((0, 2), bool),
                               np.array([1 + 2j, -3j], np.complex64)]):
        np.save(tmp_path / f"{i}.npy", array)
        np.testing.assert_array_equal(io.load_npy(tmp_path / f"{i}.npy").numpy(), array)
        io.save_npy(tmp_path / "ours.npy", ms.from_dlpack(array) if array.size else ms.asarray(array))
        read = np.load(tmp_path / "ours.npy")
        np.testing.assert_array_equal(read, array)
        assert read.dtype == array.dtype
    io.save_npy(tmp_path / "sharded.npy", ms.mark_sharding(DATA, MESH, P("x")))
    np.testing.assert_array_equal(np.load(tmp_path / "sharded.npy"), DATA)
    with pytest.raises(ms.UnimplementedError):
        io.save_npy(tmp_path / "bf16.npy", ms.zeros(2, dtype=ms.bfloat16))


# --- pickle and copies ---------------------------------------------------------------------------


def test_pickle_keeps_values_and_shardings():
    before = state()
    after = pickle.loads(pickle.dumps(before))
    w = after["params"]["blocks"][0].w
    assert w.placement == "host" and w.sharding is None
    assert w.saved_sharding == ms.Sharding(MESH, P("x", None))
    assert ms.mark_sharding(w, w.saved_sharding).sharding == before["params"]["blocks"][0].w.sharding
    np.testing.assert_array_equal(after["params"]["blocks"][1].w.numpy(), DATA * 2)
    assert not hasattr(after["params"]["blocks"][1].w, "saved_sharding")
    assert after["step"] == 7 and after["params"]["blocks"][0].kind == "dense"


@pytest.mark.parametrize("array", [np.zeros((0, 2), np.float32), np.array(2.5), np.ones(3, ml_dtypes.bfloat16),
                                   np.ones(3, ml_dtypes.float8_e5m2), np.array([1 + 2j])])
@pytest.mark.parametrize("protocol", [2, 5])
def test_pickle_of_each_kind(array, protocol):
    x = pickle.loads(pickle.dumps(ms.asarray(array), protocol))
    assert x.dtype == array.dtype
    np.testing.assert_array_equal(x.numpy(), array)


def test_pickle_in_another_process(tmp_path):
    (tmp_path / "x.pickle").write_bytes(pickle.dumps({"x": ms.mark_sharding(DATA, MESH, P("x"))}))
    program = ("import pickle, sys; x = pickle.load(open(sys.argv[1], 'rb'))['x']; "
               "print(x.numpy().sum(), x.placement, x.saved_sharding)")
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path / "x.pickle")], capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0 and done.stdout.startswith("496.0 host Sharding(")


def test_traced_tensors_are_not_pickled():
    with pytest.raises(ms.FailedPreconditionError):
        ms.jit(lambda x: (pickle.dumps(x), x)[1])(DATA)


def test_copies():
    for make in (lambda: ms.mark_sharding(DATA, MESH, P("x")), lambda: ms.mark_sharding(DATA, MESH, P()),
                 lambda: ms.from_dlpack(DATA) + 0, lambda: ms.mark_sharding(DATA[:7], MESH, P("x"))):
        x = make()
        same, deep = copy.copy({"x": x}), copy.deepcopy({"x": x})["x"]
        assert same["x"] is x and copy.copy(x) is not x
        assert deep.sharding == x.sharding
        expected = x.numpy().copy()
        ms.sync(ms.jit(lambda v: v * 0, donate_argnums=0)(x))
        np.testing.assert_array_equal(deep.numpy(), expected)
    assert ms.jit(lambda v: copy.deepcopy(v) + copy.copy(v))(np.float32(2)).item() == 4


def test_patterns_that_match_nothing_are_errors(tmp_path):
    path, mesh = tmp_path / "a.safetensors", ms.Mesh({"d": 8})
    io.save(path, {"layers": {"w": ms.ones((8, 4))}, "q_proj": ms.ones((8,))})
    for pattern, part in (("layer.*", "layers.w"), ("[qk]_proj", "Only `\\*`"), ("Layers.w", "layers.w")):
        with pytest.raises(ms.NotFoundError, match=part) as error:
            io.load(path, {pattern: (mesh, ms.P("d"))})
        assert "strict=False" in error.value.message and error.value.filename == __file__
        assert io.load(path, {pattern: (mesh, ms.P("d"))}, strict=False)["layers.w"].sharding is None
    assert io.load(path, {"layers.*": (mesh, ms.P("d"))})["layers.w"].sharding.spec == ms.P("d", None)


def test_restored_names_are_those_of_the_checkpoint(tmp_path):
    path = tmp_path / "a.safetensors"
    io.save(path, {"w": ms.ones(2), "b": ms.ones(1), "step": 3})
    with pytest.raises(ms.NotFoundError, match=r'lacks "weight" \(the nearest.*has "w"'):
        io.restore(path, {"weight": ms.zeros(2), "b": ms.zeros(1), "step": 0})
    with pytest.raises(ms.NotFoundError, match='has "b", "step", for which.*strict=False'):
        io.restore(path, {"w": ms.zeros(2)})
    assert io.restore(path, {"w": ms.zeros(2)}, strict=False)["w"].tolist() == [1, 1]
    with pytest.raises(ms.NotFoundError, match="lacks"):
        io.restore(path, {"v": ms.zeros(2)}, strict=False)


# --- publishing ----------------------------------------------------------------------------------

SECRET = "0123456789abcdef"


def test_publish_and_receive():
    before = state()
    with io.Publisher("127.0.0.1:0", secret=SECRET) as publisher:
        assert publisher.publish(before) == 0
        like = state()
        like["step"], like["rate"], like["on"] = 0, 0.0, False
        like["params"]["blocks"][0].w = ms.abstract_tensor((8, 4), "float32", ms.Mesh({"a": 2, "b": 2}), P("b", "a"))
        after, version = io.receive(publisher.address, like, secret=SECRET)
        assert version == 0
        assert (after["step"], after["rate"], after["on"]) == (7, 0.5, True)
        assert after["params"]["blocks"][0].w.sharding.spec == P("b", "a")
        np.testing.assert_array_equal(np.asarray(after["params"]["blocks"][0].w), DATA)
        np.testing.assert_array_equal(np.asarray(after["params"]["blocks"][1].w), DATA * 2)
        with pytest.raises(ms.DeadlineExceededError, match="no version newer than 0"):
            io.receive(publisher.address, like, secret=SECRET, newer_than=0, seconds=0.01)
        assert publisher.publish({"w": DATA}, version=5) == 5
        with pytest.raises(ms.NotFoundError, match='the publisher lacks "v"'):
            io.receive(publisher.address, {"v": DATA}, secret=SECRET, newer_than=0)
        with pytest.raises(ms.InvalidArgumentError, match="greater than the last published version, which is 5"):
            publisher.publish({"w": DATA}, version=5)
        with pytest.raises(TypeError, match="which is 'text'"):
            publisher.publish({"a": DATA, "b": "text"})
        while publisher.num_receivers > 0:
            time.sleep(0.001)
        with pytest.raises(ms.Error, match="secret"):
            io.receive(publisher.address, like, secret="another secret..")
    with pytest.raises(ValueError, match="closed"):
        publisher.publish(before)
    with pytest.raises(ms.UnavailableError):
        io.receive(publisher.address, like, secret=SECRET, seconds=0.01)
