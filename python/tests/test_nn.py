"""Layers, against their definitions in NumPy; parameters, against the rules by which C++ makes them."""

import copy
import dataclasses
import inspect
import pickle

import numpy as np
import pytest

import meshard
from meshard import Mesh, P, nn, random, tree

MESH = Mesh({"data": 2, "model": 4})


def varied(shape, seed=0, scale=1.0):
    return (np.random.default_rng(seed).uniform(-scale, scale, shape)).astype(np.float32)


def close(actual, expected, tolerance=2e-6):
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual.numpy(), expected, rtol=tolerance, atol=tolerance)


def same(one, other):
    """Equal structures of equal tensors."""
    assert tree.structure(one) == tree.structure(other)
    for a, b in zip(tree.leaves(one), tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def silu(x):
    return x / (1 + np.exp(-x))


# --- functions --------------------------------------------------------------------------------------------------------

JAX_FUNCTIONS = {
    "celu": "celu", "elu": "elu", "gelu": "gelu", "glu": "glu", "hard_sigmoid": "hard_sigmoid",
    "hard_silu": "hard_silu", "hard_tanh": "hard_tanh", "leaky_relu": "leaky_relu", "log_sigmoid": "log_sigmoid",
    "log_softmax": "log_softmax", "logistic": "sigmoid", "mish": "mish", "relu": "relu", "relu6": "relu6",
    "selu": "selu", "silu": "silu", "soft_sign": "soft_sign", "softmax": "softmax", "softplus": "softplus",
}


@pytest.mark.parametrize("name", JAX_FUNCTIONS)
def test_function_is_that_of_jax(name):
    jax = pytest.importorskip("jax")
    x = varied((4, 6), scale=5)
    along = {"axis": -1} if name in ("glu", "log_softmax", "softmax") else {}
    expected = getattr(jax.nn, JAX_FUNCTIONS[name])(x, **along)
    close(getattr(nn, name)(x, *along.values()), np.asarray(expected), 1e-5)


def test_every_name_has_a_page():
    for name in nn.__all__:
        if name != "init":
            assert len(inspect.getdoc(getattr(nn, name)) or "") > 20, name
            if isinstance(getattr(nn, name), type):
                assert getattr(nn, name).__module__ == "meshard.nn", name
    for name in nn.init.__all__:
        assert inspect.getdoc(getattr(nn.init, name)), name


def test_convolutions_and_pools_are_those_of_jax():
    jax = pytest.importorskip("jax")
    x, kernel = varied((2, 9, 8, 3)), varied((3, 3, 3, 5), 1)
    expected = jax.lax.conv_general_dilated(x, kernel, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    close(nn.conv2d(x, kernel, strides=(2, 1), padding="same"), np.asarray(expected), 1e-5)
    pooled = jax.lax.reduce_window(x, -np.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    close(nn.max_pool(x, (2, 2), strides=(2, 2)), np.asarray(pooled))


@pytest.mark.parametrize("strides, padding", [((1, 1), "same"), ((2, 2), "valid"), ((2, 3), "same")])
def test_transposed_convolution_is_that_of_jax(strides, padding):
    jax = pytest.importorskip("jax")
    x, kernel = varied((2, 5, 4, 3)), varied((3, 3, 3, 6), 1)
    expected = jax.lax.conv_transpose(x, kernel, strides, padding.upper())
    close(nn.conv_transpose(x, kernel, strides=strides, padding=padding), np.asarray(expected), 1e-5)


def test_convolution_with_groups_and_a_layout():
    jax = pytest.importorskip("jax")
    x, kernel = varied((2, 6, 9)), varied((4, 3, 5), 1)
    expected = jax.lax.conv_general_dilated(x, kernel, (1,), [(1, 2)], rhs_dilation=(2,), feature_group_count=2,
                                            dimension_numbers=("NCW", "OIW", "NCW"))
    made = nn.convolution(x, kernel, padding=[(1, 2)], kernel_dilation=2, feature_groups=2,
                          layout=("NC0", "OI0", "NC0"))
    close(made, np.asarray(expected), 1e-5)
    pooled = nn.avg_pool(np.arange(8, dtype=np.float32).reshape(1, 8, 1), 2, strides=2)
    assert pooled.numpy().ravel().tolist() == [0.5, 2.5, 4.5, 6.5]


def test_norms_over_batches_and_groups():
    x, scale, bias = varied((4, 5, 6), scale=3), varied(6, 1), varied(6, 2)
    mean, variance = x.mean((0, 1)), x.var((0, 1))
    expected = (x - mean) / np.sqrt(variance + 1e-5) * scale + bias
    made = nn.batch_norm(x, scale, bias)
    close(made.result, expected, 1e-5)
    close(made.mean, mean, 1e-5)
    close(made.variance, variance, 1e-5)
    close(nn.batch_norm(x, scale, bias, mean, variance), expected, 1e-5)
    groups = x.reshape(4, 5, 2, 3)
    normal = (groups - groups.mean((1, 3), keepdims=True)) / np.sqrt(groups.var((1, 3), keepdims=True) + 1e-5)
    close(nn.group_norm(x, scale, bias, groups=2, channel_axis=2), normal.reshape(x.shape) * scale + bias, 1e-5)


def test_gates_and_binary_cross_entropy():
    x, gate = varied((3, 4), scale=2), varied((3, 4), 1, 2)
    close(nn.swiglu(gate, x), silu(gate) * x)
    close(nn.geglu(gate, x), gelu(gate) * x, 1e-5)
    targets = (x > 0).astype(np.float32)
    p = 1 / (1 + np.exp(-gate))
    expected = -(targets * np.log(p) + (1 - targets) * np.log(1 - p))
    close(nn.binary_cross_entropy(gate, targets), np.float32(expected.mean()))
    close(nn.binary_cross_entropy(gate, targets, reduction="none"), expected, 1e-5)


def test_dot_product_attention_with_a_window_and_a_mask():
    q, k, v = varied((2, 5, 2, 4)), varied((2, 5, 2, 4), 1), varied((2, 5, 2, 4), 2)
    mask = np.random.default_rng(4).random((2, 1, 5, 5)) < 0.7
    distance = np.arange(5)[:, None] - np.arange(5)
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) * 0.3
    scores = np.where(mask & (distance >= 0) & (distance <= 2), scores, -1e30)
    expected = np.einsum("bhqk,bkhd->bqhd", softmax(scores), v)
    made = nn.dot_product_attention(q, k, v, scale=0.3, causal=True, left_window=2, mask=mask).numpy()
    seen = (scores > -1e30).any(-1).transpose(0, 2, 1)  # a query without keys gets a mean of all
    np.testing.assert_allclose(made[seen], expected[seen], rtol=1e-5, atol=2e-6)


def test_cross_entropy_and_one_hot():
    logits, labels = varied((5, 4), scale=3), np.array([0, 3, 1, 2, 2], np.int32)
    expected = -np.log(softmax(logits))[np.arange(5), labels].mean()
    close(nn.cross_entropy(logits, labels), np.float32(expected))
    np.testing.assert_array_equal(nn.one_hot(labels, 4).numpy(), np.eye(4, dtype=np.float32)[labels])


def test_dropout():
    x = np.ones((50, 40), np.float32)
    dropped = nn.dropout(x, 0.25, random.key(3)).numpy()
    assert set(np.unique(dropped)) == {np.float32(0), np.float32(1 / 0.75)}
    assert 0.2 < (dropped == 0).mean() < 0.3
    np.testing.assert_array_equal(dropped, nn.dropout(x, 0.25, random.key(3)).numpy())
    assert nn.dropout(x, 0.25, None) is x
    with pytest.raises(meshard.InvalidArgumentError):
        nn.dropout(x, 1.5, random.key(3))


# --- layers -----------------------------------------------------------------------------------------------------------


def test_linear():
    weight, bias, x = varied((3, 4)), varied(4, 1), varied((2, 5, 3), 2)
    close(nn.Linear(weight, bias)(x), x @ weight + bias)
    close(nn.Linear(weight)(x), x @ weight)
    half = nn.Linear(weight, bias)(meshard.astype(x, "bfloat16"))
    assert half.dtype == meshard.bfloat16


def test_embedding():
    table, tokens = varied((7, 4)), np.array([[0, 6, 3], [2, 2, 1]], np.int32)
    embedding = nn.Embedding(table)
    close(embedding(tokens), table[tokens])
    x = varied((2, 3, 4), 1)
    close(embedding.unembed(x), x @ table.T)


def test_norms():
    x, scale, bias = varied((3, 6), scale=4), varied(6, 1), varied(6, 2)
    normal = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-3)
    close(nn.LayerNorm(scale, bias)(x, epsilon=1e-3), normal * scale + bias, 1e-5)
    close(nn.RmsNorm(scale)(x), x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * scale, 1e-5)


def test_mlps():
    up, gate, down, x = varied((3, 8)), varied((3, 8), 1), varied((8, 3), 2), varied((2, 3), 3)
    close(nn.Mlp(nn.Linear(up), nn.Linear(down))(x), gelu(x @ up) @ down, 1e-5)
    close(nn.Mlp(nn.Linear(up), nn.Linear(down))(x, activation=nn.relu), np.maximum(x @ up, 0) @ down, 1e-5)
    gated = nn.GatedMlp(gate=nn.Linear(gate), up=nn.Linear(up), down=nn.Linear(down))
    close(gated(x), (silu(x @ gate) * (x @ up)) @ down, 1e-5)


def attention_of(p, x, causal):
    """By its definition; key heads are shared by groups of heads."""
    heads, key_heads, size = p.query.shape[1], p.key.shape[1], p.query.shape[2]
    q = np.einsum("btd,dhk->bhtk", x, p.query)
    k, v = (np.repeat(np.einsum("btd,dhk->bhtk", x, w), heads // key_heads, axis=1) for w in (p.key, p.value))
    scores = np.einsum("bhtk,bhsk->bhts", q, k) / np.sqrt(size)
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    return np.einsum("bhtk,hkd->btd", np.einsum("bhts,bhsk->bhtk", softmax(scores), v), p.out)


def varied_attention(heads=4, key_heads=2, width=6, size=4):
    return nn.Attention(varied((width, heads, size)), varied((width, key_heads, size), 1),
                        varied((width, key_heads, size), 2), varied((heads, size, width), 3))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("key_heads", [4, 2, 1])
def test_attention(causal, key_heads):
    p, x = varied_attention(key_heads=key_heads), varied((2, 5, 6), 4)
    close(p(x, causal=causal), attention_of(p, x, causal), 1e-5)


def test_attention_with_cache_continues():
    made = nn.create(None, 3, lambda make: nn.make_attention(make, 8, heads=2, bias=True))
    x, rotary = varied((2, 7, 8)), nn.Rotary(theta=500)
    whole = made(x, rotary=rotary).numpy()
    cache = nn.make_cache(None, made, 2, 16)
    assert cache.key.shape == (2, 2, 16, 4)
    parts = []
    for first, last in [(0, 3), (3, 4), (4, 7)]:
        part, cache = made.with_cache(x[:, first:last], cache, np.full(2, first, np.int32), rotary=rotary, read=8)
        parts.append(part.numpy())
    np.testing.assert_allclose(np.concatenate(parts, 1), whole, rtol=2e-5, atol=2e-6)
    with pytest.raises(meshard.InvalidArgumentError, match="test_nn.py.*read is 17"):
        made.with_cache(x, cache, np.zeros(2, np.int32), read=17)


def test_rotary():
    x, positions, theta = varied((1, 3, 2, 4)), np.array([0, 1, 5], np.int32), 100.0
    angle = positions[:, None] * theta ** (-2 * np.arange(2) / 4)
    cos, sin = np.cos(angle)[None, :, None], np.sin(angle)[None, :, None]
    first, second = x[..., :2], x[..., 2:]
    expected = np.concatenate([first * cos - second * sin, second * cos + first * sin], -1).astype(np.float32)
    close(nn.Rotary(theta)(x, positions), expected)


def test_mixture_sends_tokens_to_their_experts():
    experts, width, hidden = 4, 3, 5
    p = nn.Mixture(varied((width, experts), 0, 2), varied((experts, width, hidden), 1),
                   varied((experts, hidden, width), 2))
    x = varied((2, 6, width), 3)
    result = p(x, used=2, capacity=4.0, activation=nn.relu)  # no expert is full
    chances = softmax(x @ p.router)
    each = np.einsum("bteh,ehd->bted", np.maximum(np.einsum("btd,edh->bteh", x, p.up), 0), p.down)
    best = np.argsort(-chances, -1)[..., :2]
    weights = np.take_along_axis(chances, best, -1)
    weights /= weights.sum(-1, keepdims=True)
    expected = (np.take_along_axis(each, best[..., None], 2) * weights[..., None]).sum(2)
    close(result.value, expected, 1e-5)
    share = np.eye(experts)[best[..., 0]].mean((0, 1))
    close(result.balance_loss, np.float32((share * chances.mean((0, 1))).sum() * experts), 1e-5)


def test_mixture_moves_tokens_to_the_devices_of_the_experts():
    rules = nn.AxisRules(MESH, {"batch": "data", "expert": "model"})
    make = lambda make: nn.make_mixture(make, 8, 16, 4)  # noqa: E731
    split, whole, x = nn.create(rules, 1, make), nn.create(None, 1, make), varied((4, 6, 8))
    assert split.up.sharding.spec == P("model", None, None)
    run = meshard.jit(lambda mixture, x: mixture(x, used=1, rules=rules))
    result = run(split, meshard.mark_sharding(x, MESH, P("data")))
    expected = whole(x, used=1)
    close(result.value, expected.value.numpy(), 1e-5)
    close(result.balance_loss, expected.balance_loss.numpy(), 1e-5)


def test_sequential():
    weight = varied((3, 3))
    model = nn.Sequential([nn.Linear(weight), nn.relu, nn.Linear(weight)])
    x = varied((2, 3), 1)
    close(meshard.jit(lambda model, x: model(x))(model, x), np.maximum(x @ weight, 0) @ weight)
    assert tree.structure(model).paths == [".layers[0].weight", ".layers[2].weight"]


# --- parameters -------------------------------------------------------------------------------------------------------


def test_parameter_i_uses_key_i():
    made = nn.create(None, 7, lambda make: nn.make_mlp(make, 4, 6, up=nn.init.normal(0.5), down=nn.init.uniform(2)))
    key = random.key(7)
    close(made.up.weight, random.normal(random.fold_in(key, 0), (4, 6)).numpy() * np.float32(0.5))
    close(made.down.weight, random.uniform(random.fold_in(key, 2), (6, 4), low=-2, high=2).numpy())
    np.testing.assert_array_equal(made.up.bias.numpy(), np.zeros(6, np.float32))
    assert tree.structure(made).paths == [".up.weight", ".up.bias", ".down.weight", ".down.bias"]


def test_names_of_parameters():

    def paths(make_layer):
        return tree.structure(nn.describe(None, make_layer)).paths

    assert paths(lambda make: nn.make_attention(make, 4, heads=2, bias=True)) == [
        ".query", ".key", ".value", ".out", ".query_bias", ".key_bias", ".value_bias", ".out_bias"]
    assert paths(lambda make: nn.make_gated_mlp(make, 4, 8)) == [".gate.weight", ".up.weight", ".down.weight"]
    assert paths(lambda make: nn.make_mixture(make, 4, 8, 2)) == [".router", ".up", ".down"]
    assert paths(lambda make: nn.make_layer_norm(make, 4)) == [".scale", ".bias"]
    assert paths(lambda make: {"a": nn.make_rms_norm(make, 4), "b": nn.make_embedding(make, 5, 4)}) == [
        '["a"].scale', '["b"].table']


@pytest.mark.parametrize("name, arguments, low, high, deviation", [
    ("constant", (1.5,), 1.5, 1.5, 0), ("normal", (0.5,), -3, 3, 0.5), ("uniform", (2.0,), -2, 2, 2 / 3**0.5),
    ("truncated_normal", (1.0,), -2, 2, 0.88), ("glorot_uniform", (), -0.25, 0.25, 0.25 / 3**0.5),
    ("glorot_normal", (), -1, 1, (2 / 96)**0.5), ("he_uniform", (), -0.31, 0.31, (2 / 64)**0.5),
    ("he_normal", (), -1, 1, (2 / 64)**0.5), ("lecun_uniform", (), -0.22, 0.22, 1 / 8),
    ("lecun_normal", (), -1, 1, 1 / 8), ("zeros", (), 0, 0, 0), ("ones", (), 1, 1, 0)])
def test_initializers(name, arguments, low, high, deviation):
    values = getattr(nn.init, name)(*arguments)(random.key(1), (64, 32), (64, 32)).numpy()
    assert values.dtype == np.float32
    assert low <= values.min() and values.max() <= high
    assert values.std() == pytest.approx(deviation, rel=0.05)


def test_orthogonal_initializer():
    q = nn.init.orthogonal(scale=2)(random.key(1), (8, 3)).numpy()
    np.testing.assert_allclose(q.T @ q, 4 * np.eye(3), atol=1e-5)
    with pytest.raises(meshard.InvalidArgumentError):
        nn.init.orthogonal()(random.key(1), (8,))


def test_own_initializer():
    seen = []

    def ramp(key, shape, fans, dtype):
        seen.append((key.shape, shape, fans, dtype))
        return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)

    made = nn.create(None, 1, lambda make: nn.make_linear(make, 2, 3, bias=False, weight=ramp))
    np.testing.assert_array_equal(made.weight.numpy(), [[0, 1, 2], [3, 4, 5]])
    assert seen == [((2,), (2, 3), (2, 3), np.dtype("float32"))]
    with pytest.raises(TypeError, match="must be a function"):
        nn.create(None, 1, lambda make: nn.make_linear(make, 2, 3, weight=3))
    with pytest.raises(TypeError, match="must return a tensor"):
        nn.create(None, 1, lambda make: nn.make_linear(make, 2, 3, weight=lambda *_: "x"))


def test_rules_give_shardings_and_not_values():
    rules = nn.AxisRules(MESH, {"hidden": "model", "embed": ("data",), "vocabulary": None})

    def make_model(make):
        return nn.make_mlp(make, 8, 16), nn.make_embedding(make, 10, 8)

    mlp, embedding = nn.create(rules, 1, make_model)
    assert mlp.up.weight.sharding.spec == P("data", "model")
    assert mlp.down.weight.sharding.spec == P("model", "data")
    assert mlp.up.bias.sharding.spec == P("model")
    assert embedding.table.sharding.spec == P(None, "data")
    same((mlp, embedding), nn.create(None, 1, make_model))
    described = nn.describe(rules, make_model)
    assert described[0].up.weight.sharding == mlp.up.weight.sharding
    assert described[0].up.weight.shape == (8, 16)


def test_axis_rules():
    rules = nn.AxisRules(MESH, {"heads": "model", "hidden": "model"})
    assert rules.mesh == MESH and rules.rules == {"heads": "model", "hidden": "model"}
    assert rules.spec(P("embed", "heads", "hidden", "data")) == P(None, "model", None, "data")
    assert rules.sharding(("data", None)).spec == P("data", None)
    x = varied((4, 8))
    assert rules.mark(x, ("data", "heads")).sharding.spec == P("data", "model")
    assert nn.AxisRules().spec(P("data")) == P(None) and nn.AxisRules().sharding(P("data")) is None
    assert rules == nn.AxisRules(MESH, {"heads": "model", "hidden": "model"}) != nn.AxisRules(MESH)
    assert hash(rules) == hash(pickle.loads(pickle.dumps(rules))) and rules == copy.deepcopy(rules)
    assert repr(rules) == f"nn.AxisRules({MESH!r}, {{'heads': 'model', 'hidden': 'model'}})"
    with pytest.raises(meshard.NotFoundError, match="test_nn.py"):
        nn.AxisRules(MESH, {"heads": "nowhere"})
    with pytest.raises(ValueError, match="need a mesh"):
        nn.AxisRules(None, {"heads": "model"})
    with pytest.raises(TypeError, match="heads"):
        nn.AxisRules(MESH, {"heads": 1.5})


def test_errors_name_the_line():
    with pytest.raises(meshard.InvalidArgumentError, match="cannot be divided into 3 equal heads"):
        nn.create(None, 1, lambda make: nn.make_attention(make, 8, heads=3))
    with pytest.raises(meshard.InvalidArgumentError, match="test_nn.py"):
        nn.Linear(varied((3, 4)))(varied((2, 5)))
    with pytest.raises(meshard.InvalidArgumentError, match=r"^test_nn.py:\d+, in nn.linear: ") as caught:
        nn.Linear(varied((3, 4)))(varied((2, 5)))
    assert caught.value.filename == __file__ and caught.value.lineno == caught.tb.tb_lineno
    with pytest.raises(TypeError):
        nn.Linear(varied((3, 4)))(3.0)
    with pytest.raises(TypeError):
        nn.Linear("weight")(varied((2, 3)))


def test_errors_of_functions_pass_through():
    def fails(*_):
        raise KeyError("mine")

    def make_failing(make):
        return nn.make_linear(make, 2, 3, weight=fails)

    for call in (lambda: nn.create(None, 1, make_failing),
                 lambda: nn.create(None, 1, lambda make: nn.make_layers(make, 2, make_failing)),
                 lambda: nn.Mlp(nn.Linear(varied((2, 3))), nn.Linear(varied((3, 2))))(varied((1, 2)), activation=fails)):
        with pytest.raises(KeyError, match="mine"):
            call()


# --- stacked layers ---------------------------------------------------------------------------------------------------


def make_block(make):
    return {"linear": nn.make_linear(make, 4, 4), "norm": nn.make_rms_norm(make, 4)}


def apply_block(block, x):
    return nn.gelu(block["linear"](block["norm"](x))) + x


def make_blocks(make, count=3):
    return nn.make_layers(make, count, make_block)


def test_made_layers_have_the_values_of_layers_made_one_by_one():
    stacked = nn.create(None, 5, make_blocks)
    separate = nn.create(None, 5, lambda make: [make_block(make) for _ in range(3)])
    assert len(stacked) == 3
    same(stacked.unstacked(), separate)
    same(stacked[1], separate[1])
    same(stacked[-1], separate[2])
    same(list(reversed(stacked)), separate[::-1])
    same(nn.stack_layers(separate), stacked)


def test_layers_of_layers():
    stacked = nn.create(None, 5, lambda maker: (
        nn.make_rms_norm(maker, 4), nn.make_layers(maker, 2, make_blocks)))[1]
    assert stacked.stacked.stacked["linear"].weight.shape == (2, 3, 4, 4)
    assert tree.structure({"blocks": stacked}).paths[0] == '["blocks"][:][:]["linear"].weight'
    separate = nn.create(None, 5, lambda maker: (nn.make_rms_norm(maker, 4), [
        [make_block(maker) for _ in range(3)] for _ in range(2)]))[1]
    same([each.unstacked() for each in stacked], separate)


def test_layers_on_a_mesh():
    rules = nn.AxisRules(MESH, {"hidden": "model"})
    made = nn.create(rules, 5, make_blocks)
    assert made.stacked["linear"].weight.sharding.spec == P(None, None, "model")
    assert nn.describe(rules, make_blocks).stacked["linear"].weight.sharding == made.stacked["linear"].weight.sharding


def test_a_loop_over_layers_is_one_loop():
    layers, x = nn.create(None, 5, lambda make: make_blocks(make, 6)), varied((2, 4))

    def loss(layers, x):
        for block in layers:
            x = apply_block(block, x)
        return meshard.sum(x)

    def loss_one_by_one(layers, x):
        for block in layers.unstacked():
            x = apply_block(block, x)
        return meshard.sum(x)

    def loss_by_scan(layers, x):
        return meshard.sum(layers.scan(apply_block, x))

    rolled = meshard.jit(meshard.value_and_grad(loss))
    value, gradient = rolled(layers, x)
    assert isinstance(gradient, nn.Layers) and rolled.stats.unrolled == [] and rolled.stats.rolling == []
    for other in (loss_one_by_one, loss_by_scan):
        other_value, other_gradient = meshard.value_and_grad(other)(layers, x)
        close(value, other_value.numpy(), 1e-5)
        for a, b in zip(tree.leaves(gradient), tree.leaves(other_gradient), strict=True):
            close(a, b.numpy(), 1e-5)


def test_layers_whose_values_are_recomputed():
    layers, x = nn.create(None, 5, lambda make: make_blocks(make, 4)), varied((2, 4))

    def loss(layers, x, apply):
        for block in layers:
            x = apply(block, x)
        return meshard.sum(x)

    recomputed = meshard.jit(lambda layers, x: meshard.grad(loss)(layers, x, meshard.checkpoint(apply_block)))
    expected = meshard.grad(loss)(layers, x, apply_block)
    for one, other in zip(tree.leaves(recomputed(layers, x)), tree.leaves(expected), strict=True):
        close(one, other.numpy(), 1e-5)
    assert recomputed.stats.unrolled == []


def test_parameters_made_by_a_jitted_function():
    made = meshard.jit(lambda: nn.create(None, 5, make_blocks))()
    expected = nn.create(None, 5, make_blocks)
    for one, other in zip(tree.leaves(made), tree.leaves(expected), strict=True):
        close(one, other.numpy())


def test_unequal_layers_are_reported():
    layers = nn.create(None, 5, lambda make: make_blocks(make, 4))

    @meshard.jit
    def f(layers, x):
        for i, block in enumerate(layers):
            x = apply_block(block, x) if i != 2 else nn.relu(apply_block(block, x))
        return x

    f(layers, varied((2, 4)))
    assert len(f.stats.unrolled) == 1 and "test_nn.py" in f.stats.unrolled[0]


def test_errors_of_layers():
    layers = nn.Layers(nn.Linear(varied((2, 3, 3)), varied((2, 3))))
    with pytest.raises(IndexError, match="test_nn.py.*no layer 2"):
        layers[2]
    with pytest.raises(IndexError):
        layers[-3]
    with pytest.raises(meshard.InvalidArgumentError, match="has 3"):
        len(nn.Layers(nn.Linear(varied((2, 3, 3)), varied((3, 3)))))
    with pytest.raises(meshard.InvalidArgumentError, match="no tensors"):
        len(nn.Layers(()))
    with pytest.raises(meshard.InvalidArgumentError, match="positive, not 0"):
        nn.describe(None, lambda make: make_blocks(make, 0))
    with pytest.raises(ValueError, match="same structure"):
        nn.stack_layers([nn.Linear(varied((2, 2))), nn.Linear(varied((2, 2)), varied(2))])


def test_checkpoints_of_layers_are_those_of_a_list(tmp_path):
    path = tmp_path / "layers.safetensors"
    rules = nn.AxisRules(MESH, {"hidden": "model"})
    stacked = nn.create(rules, 5, lambda make: {"blocks": make_blocks(make)})
    separate = {"blocks": stacked["blocks"].unstacked()}
    assert meshard.io.names(stacked)[:3] == [f"blocks.{i}.linear.weight" for i in range(3)]
    assert sorted(meshard.io.names(stacked)) == sorted(meshard.io.names(separate))
    meshard.io.save(path, stacked)
    same(meshard.io.restore(path, separate), separate)
    meshard.io.save(path, separate)
    restored = meshard.io.restore(path, stacked)
    same(restored, stacked)
    assert restored["blocks"].stacked["linear"].weight.sharding.spec == P(None, None, "model")
    more = nn.describe(rules, lambda make: {"blocks": make_blocks(make, 4)})
    with pytest.raises(meshard.NotFoundError, match="blocks.3"):
        meshard.io.restore(path, more)


def test_a_maker_may_outlive_the_call():
    kept = []
    nn.create(None, 1, lambda make: nn.make_layers(make, 2, lambda one: (kept.append(one), make_block(one))[1]))
    assert kept[0].num_made == 3  # of the structure that is only counted
    assert kept[1].num_made == 6
    assert kept[1]((2,), P(None), nn.init.ones()).shape == (2,)


def test_layers_are_dataclasses():
    linear = nn.Linear(varied((2, 2)))
    assert [field.name for field in dataclasses.fields(linear)] == ["weight", "bias"]
    assert dataclasses.replace(linear, bias=varied(2))(varied((1, 2))).shape == (1, 2)
    assert linear == linear != nn.Linear(linear.weight) and len({linear, linear}) == 1  # by identity


def test_integers_hold_for_all_spatial_dimensions():
    x, k = meshard.ones((1, 8, 8, 2)), meshard.ones((3, 3, 2, 4))
    same(nn.conv2d(x, k, strides=2), nn.conv2d(x, k, strides=(2, 2)))
    same(nn.conv2d(x, k, kernel_dilation=2, padding="SAME"), nn.conv2d(x, k, kernel_dilation=(2, 2), padding="same"))
    same(nn.conv2d(x, k, input_dilation=2), nn.conv2d(x, k, input_dilation=(2, 2)))
    same(nn.conv2d(x, k, padding=1), nn.conv2d(x, k, padding=[(1, 1), (1, 1)]))
    same(nn.conv2d(x, k, padding=(1, 2)), nn.conv2d(x, k, padding=[(1, 1), (2, 2)]))
    same(nn.conv2d(x, k, padding=(1, (0, 2))), nn.conv2d(x, k, padding=[(1, 1), (0, 2)]))
    same(nn.conv_transpose(x, k, strides=2, padding="Valid"), nn.conv_transpose(x, k, strides=(2, 2), padding="valid"))
    for pool in (nn.max_pool, nn.avg_pool):
        same(pool(x, 2), pool(x, (2, 2)))
        same(pool(x, 3, strides=1, padding="SAME"), pool(x, (3, 3), strides=(1, 1), padding="same"))
        same(pool(x, 2, padding=1, dilation=2), pool(x, (2, 2), padding=[(1, 1), (1, 1)], dilation=(2, 2)))
    assert nn.conv1d(meshard.ones((1, 8, 2)), meshard.ones((3, 2, 4)), padding=2).shape == (1, 10, 4)
    volume, cube = meshard.ones((1, 4, 4, 4, 1)), meshard.ones((2, 2, 2, 1, 1))
    assert nn.conv3d(volume, cube, strides=2).shape == (1, 2, 2, 2, 1)


@pytest.mark.parametrize("options, message", [
    ({"padding": "SOME"}, 'no padding has the name "SOME"'), ({"strides": (1, 2, 3)}, "3 entries for 2 window dimensions"),
    ({"padding": (1, 2, 3)}, "padding has 3 pairs for 2"), ({"strides": 0}, "strides of dimension 0 is 0")])
def test_wrong_windows_are_readable_errors(options, message):
    with pytest.raises(ValueError, match=message):
        nn.conv2d(meshard.ones((1, 8, 8, 2)), meshard.ones((3, 3, 2, 4)), **options)


def test_a_rule_for_a_name_that_nothing_has_is_an_error():
    rules = nn.AxisRules(MESH, {"hiden": "model"})
    with pytest.raises(meshard.NotFoundError, match='"hiden".*nearest.*"hidden".*strict=False'):
        nn.create(rules, 1, lambda make: nn.make_mlp(make, 8, 16))
    with pytest.raises(meshard.NotFoundError):
        nn.describe(rules, lambda make: nn.make_mlp(make, 8, 16))
    assert nn.create(rules, 1, lambda make: nn.make_mlp(make, 8, 16), strict=False).up.weight.shape == (8, 16)
