"""Optimizer steps and learning rate schedules, compared with optax."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from calls.call import Call, operation

FAMILY = "optimizers"


def _steps(optimizer, parameter, gradients):
    """The parameter after one step for each gradient."""
    state, now = optimizer.init(parameter), parameter
    for gradient in gradients:
        updates, state = optimizer.update(gradient, state, now)
        now = optax.apply_updates(now, updates)
    return now


def _operands(d):
    d.manner = d.one_of(("plain", "plain", "ties"))
    shape = d.shape(0, 2, 8)
    return [d.values(shape, "f32") for _ in range(d.integer(2, 4))]


@operation(FAMILY)
def adam(d):
    at = {"rate": d.one_of((1e-3, 0.1)), "beta1": d.one_of((0.9, 0.5)), "beta2": d.one_of((0.999, 0.9)),
          "epsilon": d.one_of((1e-8, 1e-3)), "form": "corrected"}
    return Call(_operands(d), lambda p, *g: _steps(
        optax.adam(at["rate"], at["beta1"], at["beta2"], at["epsilon"]), p, g), at, derivative=False, mappable=False)


@operation(FAMILY)
def adamw(d):
    at = {"rate": d.one_of((1e-3, 0.1)), "beta1": d.one_of((0.9, 0.5)), "beta2": d.one_of((0.999, 0.9)),
          "epsilon": d.one_of((1e-8, 1e-3)), "weight_decay": d.one_of((0.01, 0.1))}
    return Call(_operands(d), lambda p, *g: _steps(
        optax.adamw(at["rate"], at["beta1"], at["beta2"], at["epsilon"], weight_decay=at["weight_decay"]), p, g), at,
        derivative=False, mappable=False)


@operation(FAMILY)
def sgd(d):
    at = {"rate": d.one_of((0.01, 0.5)), "momentum": d.one_of((0, 0.9, 0.5)), "weight_decay": d.one_of((0, 0.1))}
    at["nesterov"] = at["momentum"] != 0 and d.chance(0.5)
    return Call(_operands(d), lambda p, *g: _steps(
        optax.chain(optax.add_decayed_weights(at["weight_decay"]),
                    optax.sgd(at["rate"], at["momentum"] or None, at["nesterov"])), p, g), at, derivative=False,
        mappable=False)


@operation(FAMILY)
def clip_by_global_norm(d):
    limit = d.one_of((0.5, 1.0, 10.0))
    return Call(_operands(d), lambda *g: tuple(optax.clip_by_global_norm(limit).update(g, None)[0]), {"limit": limit})


@operation(FAMILY)
def global_norm(d):
    return Call(_operands(d), lambda *g: optax.global_norm(g))


@operation(FAMILY)
def schedule(d):
    """The learning rate of a step."""
    kind, first, last = d.one_of(("linear", "cosine", "piecewise", "joined")), d.one_of((1.0, 0.1)), d.one_of((0.0, 0.01))
    steps = d.integer(1, 10)
    at = {"kind": kind, "first": first, "last": last, "steps": steps}
    rates = {"linear": lambda: optax.linear_schedule(first, last, steps),
             "cosine": lambda: optax.cosine_decay_schedule(first, steps, last / first),
             "piecewise": lambda: optax.piecewise_constant_schedule(first, {steps: 0.25}),
             "joined": lambda: optax.join_schedules([optax.constant_schedule(first),
                                                     optax.linear_schedule(first, last, steps)], [steps])}
    def f(step):
        return jnp.asarray(rates[kind]()(step), jnp.float64 if jax.config.jax_enable_x64 else jnp.float32)
    return Call([np.asarray(d.integer(0, 14), np.int32)], f, at, derivative=False)
