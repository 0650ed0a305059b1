"""The model of examples/gpt in JAX: training with AdamW, and greedy decoding with a key-value cache."""

import functools
import math
import time

import jax_setup
import weights as weight_files

LIMIT, RATE, BETA1, BETA2, EPSILON, DECAY = 1.0, 2e-3, 0.9, 0.98, 1e-8, 0.1


def rms_norm(params, x):
    import jax
    return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * params["scale"]


def rotated(x, positions):
    """x [batch, time, heads, size], positions [batch or 1, time]."""
    import jax.numpy as jnp
    half = x.shape[-1] // 2
    angle = positions[..., None].astype(jnp.float32) * 10000.0 ** (-jnp.arange(half, dtype=jnp.float32) / half)
    cosine, sine = jnp.cos(angle)[:, :, None, :], jnp.sin(angle)[:, :, None, :]
    first, second = x[..., :half], x[..., half:]
    return jnp.concatenate([first * cosine - second * sine, first * sine + second * cosine], -1)


def heads_of(params, x, positions):
    import jax.numpy as jnp
    query, key, value = (jnp.einsum("btd,dhk->bthk", x, params[name]) for name in ("query", "key", "value"))
    return rotated(query, positions), rotated(key, positions), value


def gated_mlp(params, x):
    import jax
    return (jax.nn.silu(x @ params["gate"]["weight"]) * (x @ params["up"]["weight"])) @ params["down"]["weight"]


def block_of(block, x, spread):
    import jax
    import jax.numpy as jnp
    positions = jnp.arange(x.shape[1])[None]
    attention = block["attention"]
    heads = jax.nn.dot_product_attention(*heads_of(attention, rms_norm(block["attention_norm"], x), positions), is_causal=True)
    x = spread(x + jnp.einsum("bthk,hkd->btd", heads, attention["out"]))
    return spread(x + gated_mlp(block["mlp"], rms_norm(block["mlp_norm"], x)))


def loss_of(model, windows, spread, form):
    import jax
    import jax.numpy as jnp
    inputs, targets = windows[:, :-1], windows[:, 1:]
    x = spread(model["bytes"]["table"][inputs])
    if form == "loop":
        for block in model["blocks"]:
            x = block_of(block, x, spread)
    else:
        layer = lambda x, block: (block_of(block, x, spread), None)  # noqa: E731
        x, _ = jax.lax.scan(jax.checkpoint(layer) if form == "remat" else layer, x, model["blocks"])
    logits = rms_norm(model["norm"], x) @ model["head"]["weight"]
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1).mean()


def stacked(model):
    import jax
    import numpy as np
    return {**model, "blocks": jax.tree.map(lambda *all: np.stack(all), *model["blocks"])}


def shardings_of(model, mesh, form):
    """Heads and hidden values are split over the axis "model"."""
    import jax
    specs = {"query": (None, "model", None), "key": (None, "model", None), "value": (None, "model", None),
             "out": ("model", None, None), "gate": (None, "model"), "up": (None, "model"), "down": ("model", None)}

    def spec_of(path, array):
        names = [entry.key for entry in path if hasattr(entry, "key")]
        spec = next((specs[name] for name in names if name in specs), ())
        if form != "loop" and "blocks" in names:
            spec = (None, *spec)
        return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))

    return jax.tree_util.tree_map_with_path(spec_of, model)


def train_step(spread, form, state, windows):
    import jax
    import jax.numpy as jnp
    model, means, squares, steps = state
    loss, gradients = jax.value_and_grad(functools.partial(loss_of, windows=windows, spread=spread, form=form))(model)
    norm = jnp.sqrt(sum((each * each).sum() for each in jax.tree.leaves(gradients)))
    gradients = jax.tree.map(lambda each: each * (LIMIT / jnp.maximum(norm, LIMIT)), gradients)
    steps = steps + 1
    first = -jnp.expm1(steps.astype(jnp.float32) * math.log(BETA1))
    second = jnp.sqrt(-jnp.expm1(steps.astype(jnp.float32) * math.log(BETA2)))
    means = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, means, gradients)
    squares = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, squares, gradients)

    def stepped(path, weight, m, v):
        change = RATE * (m / first) / (jnp.sqrt(v) / second + EPSILON)
        rank = weight.ndim - (form != "loop" and any(getattr(entry, "key", "") == "blocks" for entry in path))
        return weight - (change + RATE * DECAY * weight if rank >= 2 else change)

    model = jax.tree_util.tree_map_with_path(stepped, model, means, squares)
    return (model, means, squares, steps), loss, norm


def training(weights, data, model, batch, context, form, steps, program=""):
    """Training from the saved parameters; a run is one step. The facts have the losses of the first steps."""
    jax = jax_setup.jax()
    import numpy as np
    mesh = jax_setup.mesh(data=data, model=model)
    named = lambda *spec: jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))  # noqa: E731
    values = weight_files.nested(weight_files.read(weights))
    values = values if form == "loop" else stacked(values)
    places = shardings_of(values, mesh, form)
    zeros = lambda: jax.device_put(jax.tree.map(np.zeros_like, values), places)  # noqa: E731
    state = [(jax.device_put(values, places), zeros(), zeros(), jax.device_put(np.int32(0), named()))]
    windows = jax.device_put((np.arange(batch * (context + 1), dtype=np.int32) * 7 % 251).reshape(batch, context + 1),
                             named("data", None))
    spread = lambda x: jax.lax.with_sharding_constraint(x, named("data", None, None))  # noqa: E731
    step = jax.jit(functools.partial(train_step, spread, form), donate_argnums=(0,),
                   out_shardings=((places, places, places, named()), named(), named()))
    begin = time.perf_counter()
    lowered = step.lower(state[0], windows)
    middle = time.perf_counter()
    compiled = lowered.compile()
    end = time.perf_counter()

    def run():
        begin = time.perf_counter()
        state[0], loss, _ = compiled(state[0], windows)
        jax.block_until_ready((state[0], loss))
        losses.append(float(loss))
        return time.perf_counter() - begin

    losses = []
    for _ in range(steps):
        run()
    jax_setup.keep(compiled, program)
    return {"trace": middle - begin, "compile": end - middle, "losses": losses[:steps], **jax_setup.memory_of(compiled)}, run


def decode(weights, batch, context, steps):
    """Greedy decoding of the last `steps` positions of the context; a run is all of them."""
    jax = jax_setup.jax()
    import jax.numpy as jnp
    import numpy as np
    model = jax.device_put(weight_files.nested(weight_files.read(weights)))
    _, heads, size = model["blocks"][0]["attention"]["key"].shape
    # jax.nn.dot_product_attention takes [batch, context, heads, size], which is slower to read on CPUs.
    shape = (batch, heads, context, size)

    @functools.partial(jax.jit, donate_argnums=(1,))
    def step(model, caches, tokens, start):
        x = model["bytes"]["table"][tokens][:, None]
        rows, seen = jnp.arange(batch), jnp.arange(context)[None] <= start[:, None]
        following = []
        for block, (keys, values) in zip(model["blocks"], caches):
            query, key, value = heads_of(block["attention"], rms_norm(block["attention_norm"], x), start[:, None])
            keys, values = keys.at[rows, :, start].set(key[:, 0]), values.at[rows, :, start].set(value[:, 0])
            following.append((keys, values))
            scores = jnp.einsum("bthk,bhsk->bhts", query, keys) * size ** -0.5
            probabilities = jax.nn.softmax(jnp.where(seen[:, None, None], scores, -1e30))
            mixed = jnp.einsum("bhts,bhsk->bthk", probabilities, values)
            x = x + jnp.einsum("bthk,hkd->btd", mixed, block["attention"]["out"])
            x = x + gated_mlp(block["mlp"], rms_norm(block["mlp_norm"], x))
        logits = rms_norm(model["norm"], x[:, 0]) @ model["head"]["weight"]
        return following, logits.argmax(-1).astype(jnp.int32), start + 1

    caches = [[(jnp.zeros(shape), jnp.zeros(shape)) for _ in model["blocks"]]]
    first, start = jnp.asarray(np.arange(batch, dtype=np.int32) % 256), jnp.full((batch,), context - steps, jnp.int32)

    def generate():
        tokens, at, all_tokens = first, start, []
        for _ in range(steps):
            caches[0], tokens, at = step(model, caches[0], tokens, at)
            all_tokens.append(tokens)
        tokens.block_until_ready()
        return all_tokens

    tokens = [int(each[0]) for each in generate()]

    def run():
        begin = time.perf_counter()
        generate()
        return time.perf_counter() - begin

    return {"tokens": tokens}, run
