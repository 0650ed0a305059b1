#!/usr/bin/env python3
"""Compares optimizers, chains, wrappers and schedules of random settings with optax.

usage: compare_optax.py [COUNT] [--seed SEED]

COUNT settings of each optimizer take six steps with the same gradients. The truth is optax in 64 bits. An element of a
parameter may be as far from it as four times the largest error of optax in 32 bits with this setting, plus 16 units of
rounding of the parameter's largest element. A rate may be away by 32 units of the largest one of its schedule.
"""

import argparse
import os
import sys

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true")
os.environ.setdefault("MESHARD_PROGRAM_CACHE_MB", "0")

import jax  # noqa: E402
import meshard  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
from meshard import optim  # noqa: E402

SHAPES = {"matrix": (4, 6), "tall": (7, 3), "cube": (3, 5, 4), "bias": (6,), "scale": ()}
STEPS = 6
LAST_STEP = 260  # of schedules
EPSILON = float(np.finfo(np.float32).eps)


class Draw:
    """Random options, as numbers that 32 bits hold."""

    def __init__(self, random):
        self.random = random

    def number(self, low, high):
        return float(np.float32(np.exp(self.random.uniform(np.log(low), np.log(high)))))

    def beta(self):
        return float(np.float32(1 - self.number(1e-3, 0.5)))

    def maybe(self, *values):
        return values[self.random.integers(len(values))]

    def rate(self):
        """A rate for either side."""
        first = self.number(1e-4, 1e-1)
        if self.random.integers(3):
            return first, first
        return optim.linear(first, 0.0, 10), optax.linear_schedule(first, 0.0, 10)


def adam(draw):
    mine, theirs = draw.rate()
    b1, b2, epsilon = draw.maybe(0.0, draw.beta()), draw.beta(), draw.number(1e-8, 1e-3)
    return optim.Adam(rate=mine, beta1=b1, beta2=b2, epsilon=epsilon), optax.adam(theirs, b1, b2, epsilon)


def adamw(draw):
    mine, theirs = draw.rate()
    b1, b2, epsilon, decay = draw.beta(), draw.beta(), draw.number(1e-8, 1e-3), draw.number(1e-4, 1e-1)
    rank = int(draw.maybe(0, 2))
    return (optim.AdamW(rate=mine, beta1=b1, beta2=b2, epsilon=epsilon, weight_decay=decay, decay_rank=rank),
            optax.adamw(theirs, b1, b2, epsilon, weight_decay=decay, mask=mask_of(rank)))


def mask_of(rank):
    return lambda params: jax.tree.map(lambda x: x.ndim >= rank, params)


def sgd(draw):
    mine, theirs = draw.rate()
    momentum, nesterov = draw.maybe(None, draw.beta()), bool(draw.maybe(False, True))
    return (optim.Sgd(rate=mine, momentum=momentum or 0.0, nesterov=nesterov and momentum is not None),
            optax.sgd(theirs, momentum, nesterov))


def lion(draw):
    mine, theirs = draw.rate()
    b1, b2, decay, rank = draw.beta(), draw.beta(), draw.number(1e-4, 1e-1), int(draw.maybe(0, 2))
    return (optim.Lion(rate=mine, beta1=b1, beta2=b2, weight_decay=decay, decay_rank=rank),
            optax.lion(theirs, b1, b2, weight_decay=decay, mask=mask_of(rank)))


def lamb(draw):
    mine, theirs = draw.rate()
    b1, b2, epsilon, decay = draw.beta(), draw.beta(), draw.number(1e-8, 1e-3), draw.maybe(0.0, draw.number(1e-4, 1e-1))
    root, rank = draw.maybe(0.0, draw.number(1e-8, 1e-3)), int(draw.maybe(0, 2))
    return (optim.Lamb(rate=mine, beta1=b1, beta2=b2, epsilon=epsilon, epsilon_root=root, weight_decay=decay,
                       decay_rank=rank),
            optax.lamb(theirs, b1, b2, epsilon, root, decay, mask_of(rank)))


def rms_prop(draw):
    mine, theirs = draw.rate()
    decay, inside, first = draw.beta(), bool(draw.maybe(True, False)), draw.maybe(0.0, draw.number(0.1, 2))
    centered, corrected = bool(draw.maybe(True, False)), bool(draw.maybe(True, False))
    # A centered mean of squares is zero after one corrected step: rounding decides unless epsilon is large.
    epsilon = draw.number(1e-3, 1e-2) if centered else draw.number(1e-8, 1e-3)
    inside = inside or centered
    momentum, nesterov = draw.maybe(None, draw.beta()), bool(draw.maybe(True, False))
    return (optim.RmsProp(rate=mine, decay=decay, epsilon=epsilon, epsilon_inside=inside, first=first,
                          centered=centered, corrected=corrected, momentum=momentum or 0.0, nesterov=nesterov),
            optax.rmsprop(theirs, decay, epsilon, first, inside, centered, momentum, nesterov, corrected))


def adagrad(draw):
    mine, theirs = draw.rate()
    first, epsilon = draw.maybe(0.0, draw.number(1e-3, 1)), draw.number(1e-8, 1e-3)
    return optim.Adagrad(rate=mine, first=first, epsilon=epsilon), optax.adagrad(theirs, first, epsilon)


def adafactor(draw):
    mine, theirs = draw.rate()
    decay, smallest, relative = draw.number(0.5, 0.95), int(draw.maybe(1, 4, 128)), bool(draw.maybe(True, False))
    clip, momentum = draw.maybe(None, draw.number(0.5, 2)), draw.maybe(None, draw.beta())
    weight_decay, rank = draw.maybe(None, draw.number(1e-4, 1e-2)), int(draw.maybe(0, 2))
    epsilon, factored = draw.number(1e-30, 1e-6), bool(draw.maybe(True, True, False))
    return (optim.Adafactor(rate=mine, decay=decay, smallest_factored=smallest, relative=relative, clip=clip or 0.0,
                            momentum=momentum or 0.0, weight_decay=weight_decay or 0.0, decay_rank=rank,
                            epsilon=epsilon, factored=factored),
            optax.adafactor(theirs, smallest, decay, 0, relative, clip, momentum, np.float32, weight_decay, epsilon,
                            factored, mask_of(rank)))


def muon(draw):
    mine, theirs = draw.rate()
    beta, nesterov, steps = draw.beta(), bool(draw.maybe(True, False)), int(draw.maybe(1, 3, 5))
    epsilon, decay = draw.number(1e-8, 1e-3), draw.maybe(0.0, draw.number(1e-4, 1e-1))
    adaptive = draw.maybe(True, False)
    rms, b1, b2, adam_decay = draw.maybe(None, 0.25), draw.beta(), draw.beta(), draw.maybe(0.0, draw.number(1e-4, 1e-1))
    adam_rate = draw.maybe(None, draw.number(1e-4, 1e-1))
    return (optim.Muon(rate=mine, momentum=beta, nesterov=nesterov, iterations=steps, epsilon=epsilon,
                       weight_decay=decay, adaptive=bool(adaptive), rms=rms or 0.0, adam_rate=adam_rate, adam_beta1=b1,
                       adam_beta2=b2, adam_weight_decay=adam_decay),
            optax.contrib.muon(theirs, ns_steps=steps, beta=beta, eps=epsilon, weight_decay=decay, nesterov=nesterov,
                               adaptive=bool(adaptive), adam_b1=b1, adam_b2=b2, adam_weight_decay=adam_decay,
                               adam_learning_rate=adam_rate, consistent_rms=rms))


BASES = [adam, adamw, sgd, lamb, rms_prop, adagrad]


def chain(draw):
    limit, value = draw.number(0.1, 10), draw.number(0.1, 3)
    clipping = draw.maybe(
        (optim.ClipByGlobalNorm(limit), optax.clip_by_global_norm(limit)),
        (optim.ClipByValue(value), optax.clip(value)),
        (optim.ClipByBlock(value), optax.clip_by_block_rms(value)))
    decay, momentum, nesterov = draw.number(1e-3, 0.1), draw.beta(), bool(draw.maybe(True, False))
    mine, theirs = draw.maybe(*BASES)(draw)
    scale = draw.number(0.1, 2)
    return (optim.Chain(clipping[0], optim.Decay(decay), optim.Momentum(momentum=momentum, nesterov=nesterov), mine,
                        optim.Scale(scale)),
            optax.chain(clipping[1], optax.add_decayed_weights(decay), optax.trace(momentum, nesterov), theirs,
                        optax.scale(scale)))


def groups(draw):
    first, second = draw.maybe(*BASES)(draw), draw.maybe(*BASES)(draw)
    labels = {"matrix": "m", "tall": "m", "cube": "o", "bias": "z", "scale": "o"}
    return (optim.Groups([("b*", optim.Freeze()), ("cube", second[0]), ("s*e", second[0]), ("*", first[0])]),
            optax.partition({"m": first[1], "o": second[1], "z": optax.set_to_zero()}, labels))


def multi_steps(draw):
    mine, theirs = draw.maybe(*BASES)(draw)
    every, mean = int(draw.maybe(1, 2, 3)), bool(draw.maybe(True, False))
    return (optim.MultiSteps(mine, every, mean),
            lambda dtype: optax.MultiSteps(theirs, every, use_grad_mean=mean,
                                           accumulator_dtype=dtype).gradient_transformation())


def apply_if_finite(draw):
    mine, theirs = draw.maybe(*BASES)(draw)
    most = int(draw.maybe(2, 5))
    return optim.ApplyIfFinite(mine, most), optax.apply_if_finite(theirs, most)


OPTIMIZERS = {each.__name__: each for each in (
    adam, adamw, sgd, lion, lamb, rms_prop, adagrad, adafactor, muon, chain, groups, multi_steps, apply_if_finite)}


def gradients_of(random, name):
    """The gradients of all steps."""
    size = np.exp(random.uniform(-3, 3))
    steps = [{key: (size * random.normal(size=shape)).astype(np.float32) for key, shape in SHAPES.items()}
             for _ in range(STEPS)]
    if name == "apply_if_finite":
        steps[random.integers(STEPS)]["cube"].flat[3] = random.choice([np.nan, np.inf, -np.inf])
    return steps


def trained_by_optax(optimizer, params, gradients, dtype, is_jitted):
    optimizer = optimizer(dtype) if callable(optimizer) else optimizer
    params = {key: jax.numpy.asarray(value, dtype) for key, value in params.items()}
    state = optimizer.init(params)
    update = jax.jit(optimizer.update) if is_jitted else optimizer.update
    for each in gradients:
        each = {key: jax.numpy.asarray(value, dtype) for key, value in each.items()}
        updates, state = update(each, state, params)
        params = optax.apply_updates(params, updates)
    return {key: np.asarray(value, np.float64) for key, value in params.items()}


def trained(optimizer, params, gradients):
    state = optimizer.init(params)
    step = meshard.jit(lambda params, gradients, state: optimizer.update(params, gradients, state))
    for each in gradients:
        params, state = step(params, each, state)
    return {key: value.numpy().astype(np.float64) for key, value in params.items()}


def difference(name, seed, figures):
    """The difference of one setting as a text, or None. Adds the largest error in units to `figures`."""
    random = np.random.default_rng(seed)
    mine, theirs = OPTIMIZERS[name](Draw(random))
    params = {key: random.normal(size=shape).astype(np.float32) for key, shape in SHAPES.items()}
    gradients = gradients_of(random, name)
    found = trained(mine, params, gradients)
    is_jitted = name in ("muon", "multi_steps", "apply_if_finite")  # their loops and branches compile in each step
    narrow, truth = (trained_by_optax(theirs, params, gradients, dtype, is_jitted)
                     for dtype in (np.float32, np.float64))
    noise = max(float(np.max(np.abs(narrow[key] - expected))) for key, expected in truth.items())
    for key, expected in truth.items():
        unit = EPSILON * np.max(np.abs(expected))
        allowed = 4 * noise + 16 * unit
        error = np.max(np.abs(found[key] - expected))
        figures.append(float(error / unit))
        if not error <= allowed:
            return f"{name} {seed}: {key} is away by {error:.3g}, allowed {allowed:.3g}: {mine!r}"
    return None


def schedules(draw):
    first, last, n = draw.number(1e-3, 1), draw.number(1e-4, 1e-3), int(draw.random.integers(2, 60))
    power = draw.number(0.5, 3)
    factor, stairs, ends = draw.number(0.1, 0.99), bool(draw.maybe(True, False)), draw.maybe(None, 0.25 * first)
    warm, longer, lower = int(draw.random.integers(1, 20)), int(draw.maybe(1, 2, 3)), draw.number(0.3, 1)
    a, b = sorted(int(x) for x in draw.random.choice(np.arange(1, 200), 2, replace=False))
    f, g = draw.number(0.1, 2), draw.number(0.1, 2)
    period, periods = n + 20, []
    while sum(each["decay_steps"] for each in periods) <= LAST_STEP:
        peak = first * lower**len(periods)
        periods.append({"init_value": peak, "peak_value": peak, "warmup_steps": 0,
                        "decay_steps": period * longer**len(periods), "end_value": last})
    cosine = optax.cosine_decay_schedule
    return {
        "linear": (optim.linear(first, last, n), optax.linear_schedule(first, last, n)),
        "cosine": (optim.cosine(first, n, last), cosine(first, n, last / first)),
        "exponential": (optim.exponential(first, n, factor, staircase=stairs, last=ends),
                        optax.exponential_decay(first, n, factor, staircase=stairs, end_value=ends)),
        "polynomial": (optim.polynomial(first, last, power, n), optax.polynomial_schedule(first, last, power, n)),
        "joined": (optim.joined(optim.linear(last, first, warm), warm, optim.cosine(first, n)),
                   optax.warmup_cosine_decay_schedule(last, first, warm, warm + n)),
        "piecewise": (optim.piecewise([(0, first), (a, first * f), (b, first * f * g)]),
                      optax.piecewise_constant_schedule(first, {a: f, b: g})),
        "interpolated": (optim.interpolated([(0, first), (a, first * f), (b, first * f * g)]),
                         optax.piecewise_interpolate_schedule("linear", first, {a: f, b: g})),
        "interpolated by cosine": (optim.interpolated([(0, first), (a, first * f), (b, first * f * g)], by="cosine"),
                                   optax.piecewise_interpolate_schedule("cosine", first, {a: f, b: g})),
        "one cycle": (optim.one_cycle(first, n + 10), optax.cosine_onecycle_schedule(n + 10, first)),
        "restarts": (optim.cosine_restarts(first, period, longer=longer, lower=lower, last=last),
                     optax.sgdr_schedule(periods)),
    }


def schedule_differences(seed, figures):
    random = np.random.default_rng(seed)
    pairs = schedules(Draw(random))
    steps = np.unique(np.concatenate([np.arange(40), random.integers(0, LAST_STEP, 60)])).astype(np.int32)
    rates = meshard.jit(lambda step: [mine(step) for mine, _ in pairs.values()])
    found = np.array([[float(rate) for rate in rates(step)] for step in steps], np.float64).T
    texts = []
    for (name, (_, theirs)), values in zip(pairs.items(), found, strict=True):
        expected = np.asarray(jax.vmap(theirs)(steps.astype(np.float64)), np.float64)
        errors = np.abs(values - expected) / (EPSILON * max(abs(expected[0]), np.max(np.abs(expected))))
        figures.append(float(np.max(errors)))
        if not np.max(errors) <= 32:
            step = steps[np.argmax(errors)]
            texts.append(f"schedule {name} {seed}: step {step} is {values[np.argmax(errors)]!r}, "
                         f"expected {expected[np.argmax(errors)]!r}")
    return texts


def compare(count, seed, report=None, figures=None):
    """Compares `count` settings of each, the same for the same seed. Returns the differences.

    `figures`, a dict, gets the largest errors by name, in units of rounding of the largest element.
    """
    found, figures = [], {} if figures is None else figures
    for i in range(count):
        with jax.enable_x64(True):
            texts = [difference(name, [seed, i, k], figures.setdefault(name, [])) for k, name in enumerate(OPTIMIZERS)]
            texts += schedule_differences([seed, i, len(OPTIMIZERS)], figures.setdefault("schedules", []))
        for text in filter(None, texts):
            if report:
                report(text)
            found.append(text)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=50, help="settings of each optimizer (default: 50)")
    parser.add_argument("--seed", type=int, help="of the settings (default: a new one, which is printed)")
    given = parser.parse_args()
    seed = int(np.random.SeedSequence().entropy % 2**31) if given.seed is None else given.seed
    print(f"{given.count} settings of {len(OPTIMIZERS)} optimizers and of the schedules, seed {seed}")
    figures = {}
    found = compare(given.count, seed, report=lambda text: print(text, flush=True), figures=figures)
    for name, errors in figures.items():
        print(f"{name}: {len(errors)} compared, largest error {max(errors):.3g} units, median {np.median(errors):.3g}")
    print(f"{len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
