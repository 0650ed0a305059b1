"""Layers and losses beside flax and optax: values, gradients and states, on one device and on a mesh of 2 x 4."""

import numpy as np
import pytest

import meshard
from meshard import Mesh, P, nn, random, tree

jax = pytest.importorskip("jax")
linen = pytest.importorskip("flax.linen")
optax = pytest.importorskip("optax")

MESH = Mesh({"data": 2, "model": 4})
RULES = nn.AxisRules(MESH, {"batch": "data", "filters": "model", "hidden": "model"})


def varied(shape, seed=0, scale=1.0):
    return np.random.default_rng(seed).uniform(-scale, scale, shape).astype(np.float32)


def close(actual, expected, tolerance=1e-5):
    expected = np.asarray(expected)
    assert actual.shape == expected.shape
    bound = tolerance * max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(actual.numpy(), expected, rtol=0, atol=bound)


def placed(params, rules, names):
    """Each tensor of a structure marked with the sharding of its names; unmarked without rules."""
    if rules is None:
        return params
    leaves = [rules.mark(leaf, P(*spec)) for leaf, spec in zip(tree.leaves(params), names, strict=True)]
    return tree.unflatten(tree.structure(params), leaves)


def both_slopes(ours, theirs, params, their_params, x, weights):
    """Compares the result, and the gradients of a weighted sum of it, by the parameters and x."""
    ours_sum = meshard.jit(meshard.value_and_grad(
        lambda params, x: (lambda y: (meshard.sum(y * weights), y))(ours(params, x)), argnums=(0, 1), has_aux=True))
    (_, y), slopes = ours_sum(params, x)
    expected = theirs(their_params, np.asarray(x))
    close(y, expected)
    their_slopes = jax.grad(lambda p, x: (theirs(p, x) * weights).sum(), argnums=(0, 1))(their_params, np.asarray(x))
    return slopes, their_slopes


CONVOLUTIONS = [
    ((2, 9, 3), (3,), 4, {"strides": 2, "padding": "SAME"}),
    ((2, 8, 7, 4), (3, 2), 8, {"strides": (2, 1), "padding": [(1, 0), (2, 1)], "feature_groups": 2}),
    ((5, 6, 4), (3, 3), 8, {"kernel_dilation": 2, "padding": "SAME"}),
    ((2, 4, 5, 4, 2), (2, 3, 2), 4, {"padding": [(0, 1), (1, 0), (0, 0)], "input_dilation": (2, 1, 1)}),
]


@pytest.mark.parametrize("rules", [None, RULES], ids=["one", "2x4"])
@pytest.mark.parametrize("shape, window, outputs, options", CONVOLUTIONS)
def test_convolutions(shape, window, outputs, options, rules):
    inputs, groups = shape[-1], options.get("feature_groups", 1)
    kernel, bias, x = varied((*window, inputs // groups, outputs)), varied(outputs, 1), varied(shape, 2)
    theirs = linen.Conv(outputs, window, strides=options.get("strides", 1), padding=options["padding"],
                        input_dilation=options.get("input_dilation", 1),
                        kernel_dilation=options.get("kernel_dilation", 1), feature_group_count=groups)
    weights = varied(theirs.apply({"params": {"kernel": kernel, "bias": bias}}, x).shape, 3)
    params = placed(nn.Conv(kernel, bias), rules, [(*[None] * (len(window) + 1), "filters"), ("filters",)])
    given = x if rules is None or len(shape) != len(window) + 2 else rules.mark(x, P("batch"))
    slopes, expected = both_slopes(lambda p, x: p(x, **options), lambda p, x: theirs.apply({"params": p}, x), params,
                                   {"kernel": kernel, "bias": bias}, given, weights)
    close(slopes[0].kernel, expected[0]["kernel"])
    close(slopes[0].bias, expected[0]["bias"])
    close(slopes[1], expected[1])


@pytest.mark.parametrize("shape, window, options", [
    ((2, 5, 3), (3,), {"strides": 2, "padding": "SAME"}),
    ((2, 4, 5, 3), (3, 2), {"strides": (2, 3), "padding": "VALID"}),
    ((4, 5, 3), (2, 2), {"kernel_dilation": 2, "padding": [(1, 2), (0, 1)]})])
def test_transposed_convolutions(shape, window, options):
    kernel, bias, x = varied((*window, 3, 4)), varied(4, 1), varied(shape, 2)
    theirs = linen.ConvTranspose(4, window, strides=options.get("strides", (1,) * len(window)) if not isinstance(
        options.get("strides"), int) else (options["strides"],), padding=options["padding"],
        kernel_dilation=(options.get("kernel_dilation", 1),) * len(window))
    weights = varied(theirs.apply({"params": {"kernel": kernel, "bias": bias}}, x).shape, 3)
    slopes, expected = both_slopes(lambda p, x: p.transpose(x, **options),
                                   lambda p, x: theirs.apply({"params": p}, x), nn.Conv(kernel, bias),
                                   {"kernel": kernel, "bias": bias}, x, weights)
    close(slopes[0].kernel, expected[0]["kernel"])
    close(slopes[1], expected[1])


@pytest.mark.parametrize("rules", [None, RULES], ids=["one", "2x4"])
@pytest.mark.parametrize("masked", [False, True])
def test_batch_norm(masked, rules):
    """Three steps: results, gradients through the statistics, running statistics; a batch that 2 does not divide."""
    channels, momentum = 8, 0.8
    scale, bias = varied(channels, 1), varied(channels, 2)
    mask = np.random.default_rng(5).random((7, 4, 3, 1)) < 0.7 if masked else None
    theirs = linen.BatchNorm(use_running_average=False, momentum=momentum, use_fast_variance=False)
    names = [("filters",)] * 2
    norm = placed(nn.BatchNorm(scale, bias), rules, names)
    state = placed(nn.BatchStatistics(varied(channels, 3), 1 + varied(channels, 4) ** 2), rules, names)
    their_state = {"mean": np.asarray(state.mean), "var": np.asarray(state.variance)}
    weights = varied((7, 4, 3, channels), 6)

    def loss(norm, x, state):
        y, state = norm(x, state, training=True, momentum=momentum, mask=mask)
        return meshard.sum(y * weights), (y, state)

    def their_loss(p, x, state):
        y, after = theirs.apply({"params": p, "batch_stats": state}, x, mask=mask, mutable=["batch_stats"])
        return (y * weights).sum(), (y, after["batch_stats"])

    step = meshard.jit(meshard.value_and_grad(loss, argnums=(0, 1), has_aux=True))
    their_step = jax.jit(jax.value_and_grad(their_loss, argnums=(0, 1), has_aux=True))
    for i in range(3):
        x = varied((7, 4, 3, channels), 7 + i, 2) + 0.5
        given = x if rules is None else rules.mark(x, P("batch"))
        (_, (y, state)), slopes = step(norm, given, state)
        (_, (their_y, their_state)), expected = their_step({"scale": scale, "bias": bias}, x, their_state)
        close(y, their_y)
        close(state.mean, their_state["mean"])
        close(state.variance, their_state["var"])
        close(slopes[0].scale, expected[0]["scale"])
        close(slopes[0].bias, expected[0]["bias"])
        close(slopes[1], expected[1])
    y, same = norm(given, state, training=False)
    evaluated = linen.BatchNorm(use_running_average=True).apply(
        {"params": {"scale": scale, "bias": bias}, "batch_stats": their_state}, x)
    close(y, evaluated)
    assert same is state


def test_batch_statistics_are_in_checkpoints(tmp_path):
    rules = nn.AxisRules(MESH, {"filters": "model"})

    def make(make):
        return {"norm": nn.make_batch_norm(make, 8), "state": nn.make_batch_statistics(make, 8)}

    model = nn.create(rules, 1, make)
    for i in range(2):
        _, model["state"] = model["norm"](varied((6, 8), i), model["state"], training=True)
    meshard.io.save(tmp_path / "model.safetensors", model)
    restored = meshard.io.restore(tmp_path / "model.safetensors", nn.describe(rules, make))
    assert sorted(meshard.io.names(restored)) == ["norm.bias", "norm.scale", "state.mean", "state.variance"]
    np.testing.assert_array_equal(restored["state"].mean.numpy(), model["state"].mean.numpy())
    assert restored["state"].mean.sharding.spec == P("model")
    assert float(meshard.max(meshard.abs(restored["state"].mean))) > 0


def test_group_and_instance_norm():
    x, scale, bias = varied((3, 5, 4, 6), scale=2), varied(6, 1), varied(6, 2)
    params, weights = {"scale": scale, "bias": bias}, varied((3, 5, 4, 6), 3)
    for layer, theirs, options in [
            (nn.GroupNorm, linen.GroupNorm(3, epsilon=1e-5, use_fast_variance=False), {"groups": 3}),
            (nn.InstanceNorm, linen.InstanceNorm(epsilon=1e-5, use_fast_variance=False), {})]:
        for rules in (None, RULES):
            ours = placed(layer(scale, bias), rules, [(None,)] * 2)
            given = x if rules is None else rules.mark(x, P("batch"))
            slopes, expected = both_slopes(lambda p, x: p(x, **options), lambda p, x: theirs.apply({"params": p}, x),
                                           ours, params, given, weights)
            close(slopes[0].scale, expected[0]["scale"])
            close(slopes[1], expected[1])


# --- attention, embeddings, dropout -----------------------------------------------------------------------------------


def attention_of(params):
    """flax's parameters of attention, from ours."""
    table = {name: {"kernel": getattr(params, name)} for name in ("query", "key", "value", "out")}
    for name in table:
        table[name]["bias"] = getattr(params, name + "_bias")
    return table | {"query_ln": {"scale": params.query_scale}, "key_ln": {"scale": params.key_scale}}


ATTENTION_NAMES = [(None, "heads", None)] * 3 + [("heads", None, None)] + [("heads", None)] * 3 + [(None,)] * 3


@pytest.mark.parametrize("rules", [None, nn.AxisRules(MESH, {"batch": "data", "heads": "model"})], ids=["one", "2x4"])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_with_normalized_queries_and_keys(masked, rules):
    """Self-attention and cross-attention of flax with normalize_qk: results, and gradients by parameters and inputs."""
    batch, time, keys, width, heads, size = 3, 5, 4, 16, 4, 4
    x, memory, weights = varied((batch, time, width)), varied((batch, keys, width), 1), varied((batch, time, width), 2)
    arrays = [varied((width, heads, size), 3 + i) for i in range(3)] + [varied((heads, size, width), 6)]
    arrays += [varied((heads, size), 7 + i) for i in range(3)] + [varied(width, 10)]
    arrays += [1 + varied(size, 11, 0.5), 1 + varied(size, 12, 0.5)]
    theirs = linen.MultiHeadDotProductAttention(heads, normalize_qk=True)
    generator = np.random.default_rng(13)
    masks = [generator.random((batch, 1, time, count)) < 0.6 for count in (time, keys)] if masked else [None, None]
    for mask in masks:
        if mask is not None:
            mask[..., 0] = True

    def loss(params, x, memory):
        own = params(x, causal=False, mask=masks[0])
        return meshard.sum((own + params.cross(x, memory, mask=masks[1])) * weights), own

    def their_loss(arrays, x, memory):
        params = {"params": attention_of(nn.Attention(*arrays))}
        own = theirs.apply(params, x, mask=masks[0])
        return ((own + theirs.apply(params, x, memory, mask=masks[1])) * weights).sum(), own

    mark = (lambda x: x) if rules is None else (lambda x: rules.mark(x, P("batch")))
    (_, own), slopes = meshard.jit(meshard.value_and_grad(loss, argnums=(0, 1, 2), has_aux=True))(
        placed(nn.Attention(*arrays), rules, ATTENTION_NAMES), mark(x), mark(memory))
    (_, their_own), expected = jax.value_and_grad(their_loss, argnums=(0, 1, 2), has_aux=True)(arrays, x, memory)
    close(own, their_own)
    for one, other in zip(tree.leaves(slopes[0]), expected[0], strict=True):
        close(one, other, 2e-5)
    for one, other in zip(slopes[1:], expected[1:], strict=True):
        close(one, other, 2e-5)


@pytest.mark.parametrize("options", [
    {"causal": False, "left_window": 2, "right_window": 1}, {"causal": True, "scale": 0.4, "biased": True},
    {"causal": False, "soft_cap": 0.8, "masked": True}, {"causal": True, "soft_cap": 2.0, "left_window": 1}])
def test_options_of_attention(options):
    """Grouped heads with windows, bias, mask and soft cap, beside jax.nn.dot_product_attention or its formula."""
    batch, time, width, heads, key_heads, size = 2, 6, 8, 4, 2, 4
    options = dict(options)
    x = varied((batch, time, width), 1)
    params = nn.Attention(varied((width, heads, size), 2), varied((width, key_heads, size), 3),
                          varied((width, key_heads, size), 4), varied((heads, size, width), 5))
    bias = varied((batch, heads, time, time), 6) if options.pop("biased", False) else None
    mask = None
    if options.pop("masked", False):
        mask = np.random.default_rng(7).random((batch, 1, time, time)) < 0.6
        mask[..., 0] = True
    q, k, v = (np.einsum("btd,dhk->bthk", x, np.asarray(w)) for w in (params.query, params.key, params.value))
    cap, scale = options.get("soft_cap"), options.get("scale", size ** -0.5)
    if cap is None:
        window = (options.get("left_window"), options.get("right_window"))
        mixed = jax.nn.dot_product_attention(q, k, v, bias, mask, scale=scale, is_causal=options["causal"],
                                             local_window_size=None if window == (None, None) else window)
    else:
        k, v = (np.repeat(each, heads // key_heads, 2) for each in (k, v))
        scores = cap * np.tanh(np.einsum("bqhd,bkhd->bhqk", q, k) * scale / cap)
        distance = np.arange(time)[:, None] - np.arange(time)
        seen = (distance >= 0) | (not options["causal"])
        if "left_window" in options:
            seen = seen & (distance <= options["left_window"])
        seen = np.broadcast_to(seen if mask is None else mask & seen, scores.shape)
        mixed = jnp_einsum("bhqk,bkhd->bqhd", jax.nn.softmax(np.where(seen, scores, -np.inf), -1), v)
    close(params(x, mask=mask, bias=bias, **options), np.einsum("bthk,hkd->btd", mixed, np.asarray(params.out)))


def jnp_einsum(text, *operands):
    return np.einsum(text, *(np.asarray(each) for each in operands))


def test_tied_embeddings():
    table, x, tokens = varied((7, 4)), varied((2, 3, 4), 1), np.array([[0, 6, 3], [2, 2, 1]], np.int32)
    theirs = linen.Embed(7, 4)
    ours = nn.Embedding(table)
    close(ours(tokens), theirs.apply({"params": {"embedding": table}}, tokens))
    close(ours.unembed(x), theirs.apply({"params": {"embedding": table}}, x, method="attend"))


@pytest.mark.parametrize("axes", [(), (1, 2), (0,), (0, -1), 2])
def test_dropout_of_slices(axes):
    x = varied((2, 3, 4, 5))
    expected = linen.Dropout(0.4, broadcast_dims=(axes,) if isinstance(axes, int) else axes).apply(
        {}, x, deterministic=False, rng=jax.random.key(9))
    close(nn.dropout(x, 0.4, random.key(9), axes), expected, 1e-6)
    close(nn.dropout(meshard.mark_sharding(x, MESH, P("data")), 0.4, random.key(9), axes), expected, 1e-6)
    assert nn.dropout(x, 0.4, None, axes) is x


# --- recurrent cells --------------------------------------------------------------------------------------------------


def lstm_of(params):
    """flax's parameters of an LSTM, from ours."""
    result = {}
    for i, gate in enumerate("ifgo"):
        result["i" + gate] = {"kernel": params.input[:, i]}
        result["h" + gate] = {"kernel": params.recurrent[:, i], "bias": params.bias[i]}
    return result


def gru_of(params):
    result = {}
    for i, gate in enumerate("rzn"):
        result["i" + gate] = {"kernel": params.input[:, i], "bias": params.bias[i]}
        result["h" + gate] = {"kernel": params.recurrent[:, i]}
    result["hn"]["bias"] = params.new_bias
    return result


def simple_of(params):
    return {"i": {"kernel": params.input, "bias": params.bias}, "h": {"kernel": params.recurrent}}


@pytest.mark.parametrize("rules", [None, RULES], ids=["one", "2x4"])
@pytest.mark.parametrize("kind", ["lstm", "gru", "simple"])
def test_recurrent_cells(kind, rules):
    batch, time, inputs, features = 3, 5, 4, 8
    gates = {"lstm": 4, "gru": 3}.get(kind)
    shape = (gates, features) if gates else (features,)
    arrays = [varied((inputs, *shape)), varied((features, *shape), 1), varied(shape, 2)]
    names = [(*[None] * len(shape), "hidden"), (*[None] * len(shape), "hidden"), (*[None] * (len(shape) - 1), "hidden")]
    if kind == "gru":
        arrays.append(varied(features, 3))
        names.append(("hidden",))
    cell, theirs, convert = {"lstm": (nn.LstmCell, linen.LSTMCell, lstm_of), "gru": (nn.GruCell, linen.GRUCell, gru_of),
                             "simple": (nn.SimpleCell, linen.SimpleCell, simple_of)}[kind]
    params, xs, weights = cell(*arrays), varied((batch, time, inputs), 4), varied((batch, time, features), 5)
    lengths, counted = np.array([2, 5, 4], np.int32), None
    counted = (np.arange(time) < lengths[:, None])[..., None]
    start = [varied((batch, features), 6 + i) for i in range(2 if kind == "lstm" else 1)]
    initial = nn.LstmState(*start) if kind == "lstm" else start[0]
    cases = ((False, lengths), (True, lengths), (True, None)) if rules is None else ((True, lengths),)
    for reverse, lengths in cases:
        module = linen.RNN(theirs(features), reverse=reverse, keep_order=True, return_carry=True)
        weight = weights if lengths is None else weights * counted

        def their_loss(cell, xs):
            carry, ys = module.apply({"params": {"cell": convert(cell)}}, xs, seq_lengths=lengths,
                                     initial_carry=tuple(start) if kind == "lstm" else start[0])
            return (ys * weight).sum(), (carry, ys)

        def loss(cell, xs):
            ys, last = nn.rnn(cell, xs, initial, reverse=reverse, lengths=lengths)
            return meshard.sum(ys * weight), (last, ys)

        of_arrays = lambda arrays, xs: their_loss(cell(*arrays), xs)  # noqa: E731
        (_, (carry, their_ys)), expected = jax.value_and_grad(of_arrays, argnums=(0, 1), has_aux=True)(arrays, xs)
        given = xs if rules is None else rules.mark(xs, P("batch"))
        (_, (last, ys)), slopes = meshard.jit(meshard.value_and_grad(loss, argnums=(0, 1), has_aux=True))(
            placed(params, rules, names), given)
        close(ys if lengths is None else ys * counted, their_ys if lengths is None else their_ys * counted)
        for one, other in zip(tree.leaves(last), jax.tree.leaves(carry), strict=True):
            close(one, other)
        for one, other in zip(tree.leaves(slopes[0]), expected[0], strict=True):
            close(one, other)
        close(slopes[1], expected[1])


# --- losses -----------------------------------------------------------------------------------------------------------


def test_losses():
    """20 random calls of each, on one device and split over the mesh, with gradients."""
    generator = np.random.default_rng(1)
    f32 = np.float32
    run = {}

    def compare(name, ours, theirs, x, *rest):
        if name not in run:
            both = meshard.value_and_grad(
                lambda x, *rest: (lambda y: (meshard.sum(y), y))(ours(x, *rest)), has_aux=True)
            run[name] = (meshard.jit(both), jax.jit(jax.value_and_grad(
                lambda x, *rest: (lambda y: (y.sum(), y))(theirs(x, *rest)), has_aux=True)))
        (_, y), slope = run[name][0](x, *rest)
        (_, expected), their_slope = run[name][1](x.numpy() if isinstance(x, meshard.Tensor) else x, *rest)
        close(y, expected, 2e-5)
        close(slope, their_slope, 2e-5)

    for i in range(20):
        x, target = (generator.normal(size=(6, 8)).astype(f32) * 3 for _ in range(2))
        given = x if i % 2 == 0 else meshard.mark_sharding(x, MESH, P("data", "model"))
        delta = (0.5, 2.0)[i % 2]
        compare(("huber", i % 2), lambda x, t: nn.huber_loss(x, t, delta, "none"),
                lambda x, t: optax.huber_loss(x, t, delta=delta), given, target)
        share = np.array(jax.nn.softmax(target))
        share[0, :3] = 0
        compare(("kl", i % 2), lambda x, t: nn.kl_divergence(nn.log_softmax(x), t, reduction="none"),
                lambda x, t: optax.kl_divergence(jax.nn.log_softmax(x), t), given, share)
        label = generator.choice([0, 0.3, 1], (6, 8)).astype(f32)
        options = ({"gamma": 2.0}, {"gamma": 1.5, "alpha": 0.3})[i % 2]
        compare(("focal", i % 2), lambda x, t: nn.focal_loss(x, t, reduction="none", **options),
                lambda x, t: optax.sigmoid_focal_loss(x, t, **options), given, label)
        compare(("z", i % 2), lambda x: nn.z_loss(x, 0.1, reduction="none"),
                lambda x: 0.1 * jax.nn.logsumexp(x, -1) ** 2, given)


def test_ctc_loss():
    """20 random batches that the mesh does not divide."""
    generator = np.random.default_rng(2)
    batch, time, classes, length = 5, 9, 6, 4
    ours = meshard.jit(meshard.value_and_grad(lambda x, labels, times, lengths: (lambda y: (meshard.sum(y), y))(
        nn.ctc_loss(x, labels, logit_lengths=times, label_lengths=lengths, blank=5, reduction="none")), has_aux=True))

    def loss(x, labels, times, lengths):
        paddings = (np.arange(time) >= times[:, None]).astype(np.float32)
        label_paddings = (np.arange(length) >= lengths[:, None]).astype(np.float32)
        y = optax.ctc_loss(x, paddings, labels, label_paddings, blank_id=5)
        return y.sum(), y

    theirs = jax.jit(jax.value_and_grad(loss, has_aux=True))
    for i in range(20):
        x = generator.normal(size=(batch, time, classes)).astype(np.float32) * 2
        labels = generator.integers(0, 5, (batch, length)).astype(np.int32)
        times = generator.integers(8, time + 1, batch).astype(np.int32)
        lengths = generator.integers(0, length + 1, batch).astype(np.int32)
        given = x if i % 2 == 0 else meshard.mark_sharding(x, MESH, P("data"))
        (_, y), slope = ours(given, labels, times, lengths)
        (_, expected), their_slope = theirs(x, labels, times, lengths)
        close(y, expected, 2e-5)
        close(slope, their_slope, 2e-5)


# --- initial values ---------------------------------------------------------------------------------------------------


def test_initial_values():
    inits, key = jax.nn.initializers, jax.random.key(3)
    modes = {"in": "fan_in", "out": "fan_out", "average": "fan_avg", "geometric_mean": "fan_geo_avg"}
    for fan, mode in modes.items():
        for distribution in ("truncated_normal", "normal", "uniform"):
            ours = nn.init.variance_scaling(2.0, fan, distribution)(random.key(3), (3, 4, 6), (12, 18))
            close(ours, inits.variance_scaling(2.0, mode, distribution)(key, (3, 4, 6)), 2e-6)
    close(nn.init.truncated_normal(0.3, -1, 2)(random.key(3), (40,)),
          inits.truncated_normal(0.3, lower=-1.0, upper=2.0)(key, (40,)), 2e-6)
    shape = (3, 3, 4, 5)
    close(nn.init.delta_orthogonal(1.5)(random.key(3), shape), inits.delta_orthogonal(1.5)(key, shape), 1e-5)
    with pytest.raises(ValueError, match='one of in, out, .*not "fan_in"'):
        nn.init.variance_scaling(1.0, "fan_in", "normal")
    assert repr(nn.init.variance_scaling(1.0, "in", "normal")) == 'nn.init.variance_scaling(1, "in", "normal")'
