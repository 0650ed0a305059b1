"""Special functions, composed of elementary ones."""

import math

import torch

import meshard as ms

from .._dtypes import Promotion, to_meshard, to_torch
from .._table import lowers
from . import _coefficients as tables
from ._helpers import array, as_dtype, cast, elementwise, wide

FLOAT = Promotion.INT_TO_FLOAT


def _register(*names):
    """Registers a function of float tensors; integers become floats."""

    def register(function):
        computed = wide(function)
        lowers(*names)(lambda *operands: elementwise(computed, *operands, promotion=FLOAT))
        return function

    return register


def _polynomial(x, coefficients):
    """A polynomial with the highest degree first."""
    made = ms.full(x.shape, coefficients[0], dtype=x.dtype)
    for each in coefficients[1:]:
        made = made * x + each
    return made


def _monic(x, coefficients):
    """A polynomial whose coefficient of the highest degree, 1, is not listed."""
    return _polynomial(x, (1.0, *coefficients))


def _chebyshev(x, coefficients):
    """A Chebyshev series by Clenshaw's recurrence, highest degree first; x is twice its argument."""
    a, p, q = ms.full(x.shape, coefficients[0], dtype=x.dtype), 0.0, ms.zeros_like(x)
    for each in coefficients[1:]:
        p, q, a = q, a, x * a - q + each
    return 0.5 * (a - p)


def _where(condition, a, b):
    like = a if isinstance(a, ms.Tensor) else b
    return ms.where(condition, as_dtype(a, to_torch(like.dtype)), as_dtype(b, to_torch(like.dtype)))


def _bessel_i_scaled(x, table):
    """exp(-|x|) I(|x|), without the factor |x| of the first series of I1."""
    size = ms.abs(x)
    small = _chebyshev(ms.minimum(size, as_dtype(8.0, to_torch(x.dtype))) / 2 - 2, table[0])
    safe = ms.maximum(size, as_dtype(8.0, to_torch(x.dtype)))
    return size, small, _chebyshev(32 / safe - 2, table[1]) / ms.sqrt(safe)


@_register("prims.bessel_i0e", "aten.special_i0e")
def bessel_i0e(x):
    size, small, large = _bessel_i_scaled(x, tables.I0)
    return _where(size <= 8, small, large)


@_register("prims.bessel_i1e", "aten.special_i1e")
def bessel_i1e(x):
    size, small, large = _bessel_i_scaled(x, tables.I1)
    made = _where(size <= 8, small * size, large)
    return _where(x < 0, -made, made)


@_register("prims.bessel_i0", "aten.i0", "aten.special_modified_bessel_i0")
def bessel_i0(x):
    return ms.exp(ms.abs(x)) * bessel_i0e(x)


@_register("prims.bessel_i1", "aten.special_i1", "aten.special_modified_bessel_i1")
def bessel_i1(x):
    return ms.exp(ms.abs(x)) * bessel_i1e(x)


def _bessel_k(x, table, small_of, scaled):
    two = as_dtype(2.0, to_torch(x.dtype))
    below, above = ms.minimum(x, two), ms.maximum(x, two)
    small = small_of(below, _chebyshev(below * below - 2, table[0]))
    large = _chebyshev(8 / above - 2, table[1]) / ms.sqrt(above)
    small, large = (small * ms.exp(below), large) if scaled else (small, large * ms.exp(-above))
    made = _where(x <= 2, small, large)
    return _where(ms.equal(x, ms.zeros_like(x)), math.inf, _where(x < 0, math.nan, made))


def _small_k0(x, series):
    return series - ms.log(0.5 * x) * bessel_i0(x)


def _small_k1(x, series):
    return ms.log(0.5 * x) * bessel_i1(x) + series / x


_register("aten.special_modified_bessel_k0")(lambda x: _bessel_k(x, tables.K0, _small_k0, False))
_register("aten.special_scaled_modified_bessel_k0")(lambda x: _bessel_k(x, tables.K0, _small_k0, True))
_register("aten.special_modified_bessel_k1")(lambda x: _bessel_k(x, tables.K1, _small_k1, False))
_register("aten.special_scaled_modified_bessel_k1")(lambda x: _bessel_k(x, tables.K1, _small_k1, True))


def _amplitudes(x, tables_of_order, phase):
    """The parts of J and Y for x of at least 5: (a, b, shifted x, factor)."""
    z = 25 / (x * x)
    pp, pq, qp, qq = (_polynomial(z, each) for each in tables_of_order)
    return pp / pq, 5 / x * (qp / qq), x - phase, math.sqrt(2 / math.pi) / ms.sqrt(x)


def _bessel_large(x, table, phase, second):
    a, b, shifted, factor = _amplitudes(ms.maximum(x, as_dtype(5.0, to_torch(x.dtype))), table, phase)
    if second:
        return (a * ms.sin(shifted) + b * ms.cos(shifted)) * factor
    return (a * ms.cos(shifted) - b * ms.sin(shifted)) * factor


@_register("prims.bessel_j0", "aten.special_bessel_j0")
def bessel_j0(x):
    x = ms.abs(x)
    z = ms.minimum(x * x, as_dtype(25.0, to_torch(x.dtype)))
    small = (z - 5.78318596294678452118) * (z - 30.4712623436620863991) * _polynomial(z, tables.J0[0]) \
        / _polynomial(z, tables.J0[1])
    small = _where(x < 1e-5, 1 - z / 4, small)
    return _where(x <= 5, small, _bessel_large(x, tables.PHASE0, math.pi / 4, False))


@_register("prims.bessel_j1", "aten.special_bessel_j1")
def bessel_j1(signed):
    x = ms.abs(signed)
    z = ms.minimum(x * x, as_dtype(25.0, to_torch(x.dtype)))
    small = _polynomial(z, tables.J1[0]) / _polynomial(z, tables.J1[1]) * x * (z - 14.6819706421238932572) \
        * (z - 49.2184563216946036703)
    made = _where(x <= 5, small, _bessel_large(x, tables.PHASE1, 3 * math.pi / 4, False))
    return _where(signed < 0, -made, made)


def _bessel_y(x, small, large):
    made = _where(x <= 5, small, large)
    return _where(ms.equal(x, ms.zeros_like(x)), -math.inf, _where(x < 0, math.nan, made))


@_register("aten.special_bessel_y0")
def bessel_y0(x):
    z = ms.minimum(x * x, as_dtype(25.0, to_torch(x.dtype)))
    small = _polynomial(z, tables.Y0[0]) / _polynomial(z, tables.Y0[1]) + 2 / math.pi * ms.log(x) * bessel_j0(x)
    return _bessel_y(x, small, _bessel_large(x, tables.PHASE0, math.pi / 4, True))


@_register("aten.special_bessel_y1")
def bessel_y1(x):
    z = ms.minimum(x * x, as_dtype(25.0, to_torch(x.dtype)))
    small = x * (_polynomial(z, tables.Y1[0]) / _polynomial(z, tables.Y1[1])) \
        + 2 / math.pi * (bessel_j1(x) * ms.log(x) - 1 / x)
    return _bessel_y(x, small, _bessel_large(x, tables.PHASE1, 3 * math.pi / 4, True))


@_register("prims.spherical_bessel_j0", "aten.special_spherical_bessel_j0")
def spherical_bessel_j0(x):
    z = x * x
    series = _polynomial(z, [(-1) ** k / math.factorial(2 * k + 1) for k in range(6, -1, -1)])
    return _where(ms.isinf(x), 0.0, _where(ms.abs(x) < 0.5, series, ms.sin(x) / x))


@_register("aten.special_airy_ai")
def airy_ai(x):
    dtype = to_torch(x.dtype)
    an, ad, afn, afd, agn, agd = tables.AIRY
    negative = ms.maximum(-x, as_dtype(2.09, dtype))
    root = ms.sqrt(negative)
    zeta = 2 / 3 * negative * root
    z = 1 / zeta
    f, g = _polynomial(z * z, afn) / _polynomial(z * z, afd), _polynomial(z * z, agn) / _polynomial(z * z, agd)
    angle = zeta + math.pi / 4
    below = 1 / math.sqrt(math.pi) / ms.sqrt(root) * (ms.sin(angle) * (1 + z * z * f) - ms.cos(angle) * (z * g))
    positive = ms.maximum(x, as_dtype(2.09, dtype))
    root = ms.sqrt(positive)
    zeta = 2 / 3 * positive * root
    above = 1 / math.sqrt(math.pi) * (_polynomial(1 / zeta, an) / _polynomial(1 / zeta, ad)) \
        / (2 * ms.sqrt(root) * ms.exp(zeta))
    middle = ms.maximum(ms.minimum(x, as_dtype(2.09, dtype)), as_dtype(-2.09, dtype))
    cube = middle * middle * middle
    # The two power series of Airy's equation; 16 terms reach float64's precision where |x| is up to 2.09.
    m, n = ms.ones_like(x), middle
    f, g = m, n
    for k in range(1, 17):
        m, n = m * cube / ((3 * k - 1) * (3 * k)), n * cube / ((3 * k) * (3 * k + 1))
        f, g = f + m, g + n
    made = 0.355028053887817239260 * f - 0.258819403792806798405 * g
    made = _where(x >= 2.09, above, _where(x < -2.09, below, made))
    return _where(ms.isinf(x), math.nan, _where(x > 103.892, 0.0, made))


@_register("prims.erfcx", "aten.special_erfcx")
def erfcx(x):
    """exp(x^2) erfc(x)."""
    size = ms.abs(x)
    # In this form, infinity becomes 1 and not a quotient of infinities.
    made = _chebyshev(2 - 8 / (size + 2), _ERFCX) / (1 + 2 * size)
    return _where(x < 0, 2 * ms.exp(x * x) - made, made)


_ERFCX = (*tables.ERFCX[:0:-1], 2 * tables.ERFCX[0])


@_register("prims.ndtri", "aten.special_ndtri")
def ndtri(p):
    """The quantile of the normal distribution."""
    dtype = to_torch(p.dtype)
    edge = math.exp(-2)
    upper = p > 1 - edge
    y = _where(upper, 1 - p, p)
    p0, q0, p1, q1, p2, q2 = tables.NDTRI
    centered = p - 0.5
    square = centered * centered
    middle = math.sqrt(2 * math.pi) * (
        centered + centered * (square * _polynomial(square, p0) / _polynomial(square, q0)))
    x = ms.sqrt(-2 * ms.log(ms.minimum(y, as_dtype(edge, dtype))))
    z = 1 / x
    near, far = (z * _polynomial(z, n) / _polynomial(z, d) for n, d in ((p1, q1), (p2, q2)))
    tail = x - ms.log(x) / x - _where(x < 8, near, far)
    made = _where(y > edge, middle, _where(upper, tail, -tail))
    made = _where(ms.equal(p, ms.zeros_like(p)), -math.inf, _where(ms.equal(p, ms.ones_like(p)), math.inf, made))
    return _where(ms.logical_or(p < 0, p > 1), math.nan, made)


@_register("prims.zeta", "aten.special_zeta", "aten.special_zeta.self_scalar", "aten.special_zeta.other_scalar")
def zeta(x, q):
    """Hurwitz's zeta function: terms up to one beyond 9, and the formula of Euler and Maclaurin for the others."""
    x, q = ms.broadcast_arrays(x, q)
    whole = ms.equal(q, ms.floor(q))
    pole = ms.logical_and(q <= 0, whole)
    undefined = ms.logical_and(ms.logical_and(q <= 0, ms.logical_not(whole)), ms.not_equal(x, ms.floor(x)))
    one = ms.ones_like(x)
    outside = ms.logical_or(ms.logical_or(pole, undefined), ms.logical_or(ms.isnan(q), x <= 1))
    s, a = ms.where(outside, one + one, x), ms.where(outside, one, q)

    def more(carry):
        i, a, *_ = carry
        return ms.logical_or(i < 9, ms.any(a <= 9))

    def step(carry):
        i, a, term, total = carry
        going = ms.logical_or(i < 9, a <= 9)
        following = a + 1
        next_term = ms.pow(following, -s)
        return (i + 1, ms.where(going, following, a), ms.where(going, next_term, term),
                ms.where(going, total + next_term, total))

    first = ms.pow(a, -s)
    _, a, term, total = ms.while_loop(more, step, (array(0), a, first, first))
    total = total + term * a / (s - 1) - 0.5 * term
    factor, power = one, term
    for k, divisor in enumerate(_EULER_MACLAURIN):
        factor, power = factor * (s + 2 * k), power / a
        total = total + power * factor / divisor
        factor, power = factor * (s + 2 * k + 1), power / a
    made = ms.where(outside, one, total)
    made = _where(pole, math.inf, _where(undefined, math.nan, made))
    made = _where(ms.equal(x, one), math.inf, _where(x < 1, math.nan, made))
    return _where(ms.logical_or(ms.isnan(x), ms.isnan(q)), math.nan, made)


_EULER_MACLAURIN = (12.0, -720.0, 30240.0, -1209600.0, 47900160.0, -1.8924375803183791606e9, 7.47242496e10,
                    -2.950130727918164224e12, 1.1646782814350067249e14, -4.5979787224074726105e15,
                    1.8152105401943546773e17, -7.1661652561756670113e18)
"""(2 k)! divided by the Bernoulli number of 2 k, for k from 1."""


@_register("aten.digamma", "prims.digamma")
def digamma(x):
    # The pole at zero has the sign of -x.
    return _where(ms.equal(x, ms.zeros_like(x)), -1 / x, ms.digamma(x))


def _trigamma(x):
    reflected = x < 0.5
    y = _where(reflected, 1 - x, x)
    made = ms.zeros_like(x)
    for _ in range(6):
        made = made + 1 / (y * y)
        y = y + 1
    z = 1 / (y * y)
    made = made + (1 + 1 / (2 * y) + z * (1 / 6 - z * (1 / 30 - z / 42))) / y
    sine = ms.sin(math.pi * x)
    return _where(reflected, math.pi ** 2 / (sine * sine) - made, made)


@lowers("aten.polygamma")
def polygamma(order, x):
    def computed(x):
        if order == 0:
            return digamma(x)
        if order == 1:
            return _trigamma(x)
        factor = math.exp(math.lgamma(order + 1)) * (1 if order % 2 else -1)
        return zeta(as_dtype(order + 1.0, to_torch(x.dtype)), x) * factor

    return elementwise(wide(computed), x, promotion=FLOAT)


def _incomplete_gamma(a, x):
    """The regularized lower and upper incomplete gamma functions, in float64."""
    inside = ms.logical_and(ms.logical_and(a > 0, x > 0), ms.logical_and(ms.isfinite(a), ms.isfinite(x)))
    one = ms.ones_like(a)
    a_in, x_in = ms.where(inside, a, one), ms.where(inside, x, one)
    upper = ms.logical_and(x_in > 1, x_in > a_in)
    factor = ms.exp(a_in * ms.log(x_in) - x_in - ms.lgamma(a_in))
    lower = _lower_series(ms.where(upper, one, a_in), ms.where(upper, one, x_in)) * factor
    fraction = _upper_fraction(ms.where(upper, a_in, one), ms.where(upper, x_in, one + one)) * factor
    lower, above = ms.where(upper, 1 - fraction, lower), ms.where(upper, fraction, 1 - lower)
    # At the edges of the domain: all of the mass is on one side.
    zero = ms.zeros_like(a)
    full = ms.logical_or(ms.logical_and(ms.equal(a, zero), x > 0), ms.logical_and(ms.isinf(x), ms.isfinite(a)))
    none = ms.logical_or(ms.logical_and(ms.equal(x, zero), a > 0), ms.logical_and(ms.isinf(a), ms.isfinite(x)))
    bad = ms.logical_or(ms.logical_or(a < 0, x < 0), ms.logical_not(ms.logical_or(inside, ms.logical_or(full, none))))
    lower = _where(full, 1.0, _where(none, 0.0, lower))
    above = _where(full, 0.0, _where(none, 1.0, above))
    return _where(bad, math.nan, lower), _where(bad, math.nan, above)


_ITERATIONS = 20000
"""At most so many terms are computed; as many as sqrt(a) times ten are needed where x is near a large a."""


def _lower_series(a, x):
    """The series of DLMF 8.11.4, without its factor x^a exp(-x) / gamma(a)."""

    def more(carry):
        i, _, term, total = carry
        return ms.logical_and(i < _ITERATIONS, ms.any(term > 1e-17 * total))

    def step(carry):
        i, r, term, total = carry
        r = r + 1
        term = term * (x / r)
        return i + 1, r, term, total + term

    one = ms.ones_like(x)
    return ms.while_loop(more, step, (array(0), a + 0 * x, one, one))[3] / a


def _upper_fraction(a, x):
    """The continued fraction of DLMF 8.9.2 by Lentz's method, without the same factor."""
    tiny = 1e-300

    def more(carry):
        i, *_, change = carry
        return ms.logical_and(i < _ITERATIONS, ms.any(ms.abs(change - 1) > 1e-16))

    def step(carry):
        i, n, b, c, d, total, _ = carry
        an = -n * (n - a)
        b = b + 2
        d = an * d + b
        d = 1 / _where(ms.abs(d) < tiny, tiny, d)
        c = b + an / c
        c = _where(ms.abs(c) < tiny, tiny, c)
        change = d * c
        return i + 1, n + 1, b, c, d, total * change, change

    one = ms.ones_like(x)
    b = x + 1 - a
    b = _where(ms.abs(b) < tiny, tiny, b)
    start = (array(0), one, b, one / tiny, 1 / b, 1 / b, one + one)
    return ms.while_loop(more, step, start)[5]


def _gamma_of(which):
    def computed(a, x):
        a, x = ms.broadcast_arrays(cast(a, torch.float64), cast(x, torch.float64))
        return _incomplete_gamma(a, x)[which]

    return lambda a, x: elementwise(lambda a, x: cast(computed(a, x), to_torch(a.dtype)), a, x, promotion=FLOAT)


lowers("prims.igamma", "aten.igamma", "aten.special_gammainc")(_gamma_of(0))
lowers("prims.igammac", "aten.igammac", "aten.special_gammaincc")(_gamma_of(1))


def _recurrence(x, n, start, step):
    """The polynomial of degree n, an integer of each element, by the recurrence of its family; 0 for a negative n.

    `start(x)` is the polynomial of degree 1 (degree 0 is 1), and `step(k, x, q, p)` the one of degree k + 1.
    """
    n = _where(ms.isfinite(n), n, -1.0)
    degree = cast(ms.trunc(n), torch.int64)
    x, degree = ms.broadcast_arrays(x, degree)
    dtype = to_torch(x.dtype)

    def more(carry):
        return ms.less(carry[0], ms.max(degree)) if degree.size else array(False)

    def advance(carry):
        k, p, q = carry
        made = step(cast(k, dtype), x, q, p)
        going = ms.less(k, degree)
        return k + 1, ms.where(going, q, p), ms.where(going, made, q)

    one = ms.ones_like(x)
    _, _, q = ms.while_loop(more, advance, (array(1, dtype=ms.int64), one, start(x) + 0 * x))
    zero = ms.zeros_like(degree)
    return ms.where(ms.less(degree, zero), ms.zeros_like(x), ms.where(ms.equal(degree, zero), one, q))


def _register_polynomial(name, start, step, fixed=None):
    def computed(x, n):
        made = _recurrence(x, n, start, step)
        return made if fixed is None else fixed(x, n, made)

    _register(*(f"aten.special_{name}.{overload}" for overload in ("default", "x_scalar", "n_scalar")))(computed)


def _chebyshev_step(k, x, q, p):
    return (x + x) * q - p


def _shifted(function):
    return lambda x: function(x + x - 1)


def _shifted_step(k, x, q, p):
    return _chebyshev_step(k, x + x - 1, q, p)


for _kind, _start in {"t": lambda x: x, "u": lambda x: x + x, "v": lambda x: x + x - 1,
                      "w": lambda x: x + x + 1}.items():
    _register_polynomial(f"chebyshev_polynomial_{_kind}", _start, _chebyshev_step)
    _register_polynomial(f"shifted_chebyshev_polynomial_{_kind}", _shifted(_start), _shifted_step)


def _limited(x, n, made):
    """NaN for degrees for which PyTorch does not compute Hermite polynomials."""
    limit = {torch.float32: 128, torch.float64: 512}.get(to_torch(x.dtype), 1024)
    return _where(ms.logical_and(ms.isfinite(n), ms.trunc(n) > limit), math.nan, made)


_register_polynomial("hermite_polynomial_h", lambda x: x + x, lambda k, x, q, p: (x + x) * q - 2 * k * p, _limited)
_register_polynomial("hermite_polynomial_he", lambda x: x, lambda k, x, q, p: x * q - k * p, _limited)
_register_polynomial("laguerre_polynomial_l", lambda x: 1 - x,
                     lambda k, x, q, p: ((k + k + (1 - x)) * q - k * p) / (k + 1))
_register_polynomial("legendre_polynomial_p", lambda x: x,
                     lambda k, x, q, p: ((k + k + 1) * x * q - k * p) / (k + 1))
