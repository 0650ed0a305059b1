"""Stateless random numbers: a number is a function of a key and a position.

The generator is Threefry-2x32 with 20 rounds (Salmon et al.: Parallel Random Numbers: As Easy as 1, 2, 3, 2011). An
element's counter is its row-major position in the whole tensor, as in JAX's partitionable scheme, and the bits are
equal to JAX's. So values do not depend on the mesh, and every device computes its own part without communication.

A key is a tensor u32[2]. Use each key only once: derive new ones with split() or fold_in().

    key = random.key(42)
    for_weight, for_mask = random.split(key)
    w = random.normal(for_weight, (256, 64))
    mask = random.bernoulli(random.fold_in(for_mask, step), 0.9, (32, 64))
"""

from ._meshard.random import (
    ball, bernoulli, beta, bits, categorical, cauchy, chisquare, choice, dirichlet, exponential, fisher_f, fold_in,
    gamma, generalized_normal, geometric, gumbel, key, laplace, loggamma, logistic, lognormal, maxwell,
    multivariate_normal, normal, orthogonal, pareto, permutation, poisson, rademacher, randint, rayleigh, shuffle,
    split, split_into, student_t, threefry, triangular, truncated_normal, uniform, wald, weibull_min)
from ._names import shown as _shown

__all__ = ["ball", "bernoulli", "beta", "bits", "categorical", "cauchy", "chisquare", "choice", "dirichlet",
           "exponential", "fisher_f", "fold_in", "gamma", "generalized_normal", "geometric", "gumbel", "key", "laplace",
           "loggamma", "logistic", "lognormal", "maxwell", "multivariate_normal", "normal", "orthogonal", "pareto",
           "permutation", "poisson", "rademacher", "randint", "rayleigh", "shuffle", "split", "split_into", "student_t",
           "threefry", "triangular", "truncated_normal", "uniform", "wald", "weibull_min"]
__getattr__, __dir__ = _shown(__name__)
