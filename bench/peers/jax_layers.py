"""The 12 equal layers of bench/gpt_model.h in JAX: a plain loop, lax.scan, and lax.scan with jax.checkpoint."""

import functools
import time

import jax_setup
import weights as weight_files

RATE, BETA1, BETA2, EPSILON = 1e-3, 0.9, 0.999, 1e-8
SPLIT = {"query": (None, "tp", None), "key": (None, "tp", None), "value": (None, "tp", None), "out": ("tp", None, None),
         "up": (None, "tp"), "up_bias": ("tp",), "down": ("tp", None), "head": (None, "tp")}


def normalized(x, scale, shift):
    import jax
    center = x.mean(-1, keepdims=True)
    variance = ((x - center) ** 2).mean(-1, keepdims=True)
    return (x - center) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def layer_of(spread, x, block):
    import jax
    import jax.numpy as jnp
    h = normalized(x, block["norm1_scale"], block["norm1_shift"])
    q, k, v = (jnp.einsum("btd,dhk->bhtk", h, block[name]) for name in ("query", "key", "value"))
    scores = jnp.einsum("bhtk,bhsk->bhts", q, k) * (q.shape[-1] ** -0.5)
    length = x.shape[1]
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e30)
    scores = jnp.exp(scores - jax.lax.stop_gradient(scores.max(-1, keepdims=True)))
    heads = jnp.einsum("bhts,bhsk->bthk", scores / scores.sum(-1, keepdims=True), v)
    x = spread(x + jnp.einsum("bthk,hkd->btd", heads, block["out"]))
    h = normalized(x, block["norm2_scale"], block["norm2_shift"]) @ block["up"] + block["up_bias"]
    h = 0.5 * h * (1 + jnp.tanh(0.7978845608028654 * (h + 0.044715 * h ** 3)))
    return spread(x + h @ block["down"] + block["down_bias"])


def loss_of(model, tokens, targets, spread, form):
    import jax
    import jax.numpy as jnp
    x = spread(model["words"][tokens] + model["positions"])
    if form == "loop":
        for block in model["blocks"]:
            x = layer_of(spread, x, block)
    else:
        layer = lambda x, block: (layer_of(spread, x, block), None)  # noqa: E731
        x, _ = jax.lax.scan(jax.checkpoint(layer) if form == "remat" else layer, x, model["blocks"])
    logits = normalized(x, model["norm_scale"], model["norm_shift"]) @ model["head"]
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1).mean()


def adam_step(spread, form, model, means, squares, steps, tokens, targets):
    import jax
    import jax.numpy as jnp
    loss, gradients = jax.value_and_grad(loss_of)(model, tokens, targets, spread, form)
    steps = steps + 1
    count = steps.astype(jnp.float32)
    rate = RATE * jnp.sqrt(1 - BETA2 ** count) / (1 - BETA1 ** count)
    means = jax.tree.map(lambda m, g: BETA1 * m + (1 - BETA1) * g, means, gradients)
    squares = jax.tree.map(lambda v, g: BETA2 * v + (1 - BETA2) * g * g, squares, gradients)
    model = jax.tree.map(lambda w, m, v: w - rate * m / (jnp.sqrt(v) + EPSILON), model, means, squares)
    return model, means, squares, steps, loss


class Step:
    """The jitted step on a mesh of 2 x 4 devices, and its arguments."""

    def __init__(self, model, form, batch, length):
        jax = jax_setup.jax()
        import numpy as np
        mesh = jax_setup.mesh(dp=2, tp=4)
        named = lambda *spec: jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))  # noqa: E731
        if form != "loop":
            model = {**model, "blocks": jax.tree.map(lambda *all: np.stack(all), *model["blocks"])}

        def place_of(path, _):
            names = [entry.key for entry in path if hasattr(entry, "key")]
            spec = SPLIT.get(names[-1], ())
            return named(*((None, *spec) if form != "loop" and names[0] == "blocks" else spec))

        places = jax.tree_util.tree_map_with_path(place_of, model)
        zeros = lambda: jax.device_put(jax.tree.map(np.zeros_like, model), places)  # noqa: E731
        self.state = (jax.device_put(model, places), zeros(), zeros(), jax.device_put(np.int32(0), named()))
        tokens = (np.arange(batch * length, dtype=np.int32) * 7 % model["words"].shape[0]).reshape(batch, length)
        self.tokens = jax.device_put(tokens, named("dp", None))
        spread = lambda x: jax.lax.with_sharding_constraint(x, named("dp", None, None))  # noqa: E731
        self.step = jax.jit(functools.partial(adam_step, spread, form), donate_argnums=(0, 1, 2, 3),
                            out_shardings=(places, places, places, named(), named()))

    def arguments(self):
        return (*self.state, self.tokens, self.tokens)

    def run(self, step):
        """One step; the loss before it."""
        import jax
        *self.state, loss = step(*self.arguments())
        jax.block_until_ready((self.state, loss))
        return float(loss)


def layers(weights, form, batch, length, steps, program=""):
    """Steps from the saved parameters; a run is one of them."""
    work = Step(weight_files.nested(weight_files.read(weights)), form, batch, length)
    begin = time.perf_counter()
    lowered = work.step.lower(*work.arguments())
    middle = time.perf_counter()
    compiled = lowered.compile()
    end = time.perf_counter()
    losses = [work.run(compiled) for _ in range(steps)]

    def run():
        work.run(compiled)

    jax_setup.keep(compiled, program)
    return {"trace": middle - begin, "compile": end - middle, "losses": losses, **jax_setup.memory_of(compiled)}, run


def start(cache, form, batch, length, sizes, began):
    """From the process's start to the first loss, with compiled programs kept in the folder `cache`."""
    jax = jax_setup.jax()
    import numpy as np
    for name, value in {"jax_compilation_cache_dir": cache, "jax_persistent_cache_min_compile_time_secs": 0,
                        "jax_persistent_cache_min_entry_size_bytes": -1}.items():
        jax.config.update(name, value)
    block = {name: np.full(shape, 0.01, np.float32) for name, shape in sizes["block"].items()}
    model = {name: np.full(shape, 0.01, np.float32) for name, shape in sizes["model"].items()}
    model["blocks"] = [dict(block) for _ in range(sizes["layers"])]
    work = Step(model, form, batch, length)
    loss = work.run(work.step)
    return {"since_start": time.monotonic() - began, "loss": loss}, lambda: None


def trace_layers(layers, batch, length):
    """Traces and lowers the step of a plain loop of layers anew in each run."""
    jax = jax_setup.jax()
    import numpy as np
    import python_layers
    shapes = python_layers.shapes(layers, length)
    filled = lambda shape: np.full(shape, 0.01, np.float32)  # noqa: E731
    model = {name: [{key: filled(shape) for key, shape in block.items()} for block in value] if name == "blocks"
             else filled(value) for name, value in shapes.items()}
    work = Step(model, "loop", batch, length)
    arguments = work.arguments()

    def run():
        jax.clear_caches()
        begin = time.perf_counter()
        work.step.lower(*arguments)
        return time.perf_counter() - begin

    return {}, run
