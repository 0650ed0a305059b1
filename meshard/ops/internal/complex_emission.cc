// Tested in tests/conformance/complex_test.cc.
#include "meshard/ops/internal/complex_emission.h"

#include <cmath>
#include <numbers>

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/internal/element_writer.h"

namespace meshard::internal {
namespace {

using Typed = OpEmission::Typed;

// A complex number, and the writer of operations on its parts.
class Parts : public ElementWriter {
 public:
  Parts(const OpCall& call, OpEmission& out)
      : ElementWriter(call.result(), out),
        z(out.operands[0]),
        re(real(z)),
        im(imag(z)),
        zero(number(0)),
        one(number(1)) {}

  Typed add(Typed a, Typed b) { return binary("stablehlo.add", a, b); }
  Typed subtract(Typed a, Typed b) { return binary("stablehlo.subtract", a, b); }
  Typed multiply(Typed a, Typed b) { return binary("stablehlo.multiply", a, b); }
  Typed divide(Typed a, Typed b) { return binary("stablehlo.divide", a, b); }
  Typed atan2(Typed a, Typed b) { return binary("stablehlo.atan2", a, b); }
  Typed both(Typed a, Typed b) { return binary("stablehlo.and", a, b); }
  Typed either(Typed a, Typed b) { return binary("stablehlo.or", a, b); }
  Typed negative(Typed x) { return unary("stablehlo.negate", x); }
  Typed abs(Typed x) { return unary("stablehlo.abs", x); }
  Typed times(double factor, Typed x) { return multiply(number(factor), x); }
  Typed is_zero(Typed x) { return compare("EQ", x, zero); }
  Typed is_nan(Typed x) { return compare("NE", x, x); }
  Typed is_infinite(Typed x) {
    Typed size = abs(x);
    Typed infinity = number(INFINITY);
    return compare("EQ", size, infinity);
  }
  // True for angles without a direction: infinities and NaN.
  Typed is_unbounded(Typed x) {
    Typed finite = is_finite(x);
    return unary("stablehlo.not", finite);
  }
  // Also of zeros; the sign of a NaN counts as positive.
  Typed is_negative(Typed x) {
    Typed below = compare("LT", x, zero);
    Typed inverse = divide(one, x);
    Typed inverse_below = compare("LT", inverse, zero);
    return either(below, inverse_below);
  }
  Typed copysign(Typed size, Typed sign) {
    Typed without = abs(size);
    Typed with = negative(without);
    Typed below = is_negative(sign);
    return select(below, with, without);
  }

  Typed z, re, im, zero, one;
};

struct Pair {
  Typed re, im;
};

Typed is_any_infinite(Parts& w, Typed re, Typed im) {
  Typed re_infinite = w.is_infinite(re);
  Typed im_infinite = w.is_infinite(im);
  return w.either(re_infinite, im_infinite);
}

// Real where the operand is, with a zero of the same sign. `end` where the real part is infinite
// and the angle has no direction: exponentials of re < 0 tend to `least` there.
void finish_exponential(Parts& w, Typed given, Typed least) {
  Typed given_re = w.real(given);
  Typed given_im = w.imag(given);
  Typed is_real = w.is_zero(w.im);
  Typed height = w.select(is_real, w.im, given_im);
  Typed result = w.complex(given_re, height);
  Typed is_left = w.compare("LT", w.re, w.zero);
  Typed nan = w.number(NAN);
  Typed end_re = w.select(is_left, least, w.re);
  Typed end_im = w.select(is_left, w.zero, nan);
  Typed end = w.complex(end_re, end_im);
  Typed infinite = w.is_infinite(w.re);
  Typed unbounded = w.is_unbounded(w.im);
  Typed is_end = w.both(infinite, unbounded);
  w.finish_with_select(is_end, end, result);
}

void finish_logarithm(Parts& w, Typed result) {
  Typed size = w.real(result);
  Typed angle = w.imag(result);
  Typed infinite = is_any_infinite(w, w.re, w.im);
  Typed infinity = w.number(INFINITY);
  Typed mended = w.select(infinite, infinity, size);
  w.finish_with_complex(mended, angle);
}

// The square root of re + i im.
Pair sqrt_parts(Parts& w, Typed re, Typed im) {
  Typed number = w.complex(re, im);
  Typed magnitude = w.abs_of_complex(number);
  Typed size = w.abs(re);
  // Half of the operands, so that the sum does not overflow; the larger part first, so that nothing
  // cancels.
  Typed half_magnitude = w.times(0.5, magnitude);
  Typed half_size = w.times(0.5, size);
  Typed sum = w.add(half_magnitude, half_size);
  Typed larger = w.unary("stablehlo.sqrt", sum);
  Typed none = w.is_zero(larger);
  Typed height = w.abs(im);
  Typed half_height = w.times(0.5, height);
  Typed quotient = w.divide(half_height, larger);
  Typed smaller = w.select(none, w.zero, quotient);
  Typed is_right = w.compare("GE", re, w.zero);
  Typed root = w.select(is_right, larger, smaller);
  Typed other = w.select(is_right, smaller, larger);
  return {root, w.copysign(other, im)};
}

// 1 for an infinite number, otherwise 0; NaN stays NaN.
Typed one_if_infinite(Parts& w, Typed x) {
  Typed infinite = w.is_infinite(x);
  Typed number = w.select(infinite, w.one, w.zero);
  Typed nan = w.is_nan(x);
  return w.select(nan, x, number);
}

Pair acos_parts(Parts& w) {
  Typed left = w.subtract(w.one, w.re);
  Typed below = w.negative(w.im);
  auto [a, b] = sqrt_parts(w, left, below);
  Typed right = w.add(w.one, w.re);
  auto [c, d] = sqrt_parts(w, right, w.im);
  Typed half = w.atan2(a, c);
  Typed angle = w.add(half, half);
  Typed cb = w.multiply(c, b);
  Typed da = w.multiply(d, a);
  Typed difference = w.subtract(cb, da);
  Typed height = w.unary("chlo.asinh", difference);
  // The angle of a point at infinity.
  Typed far_re = one_if_infinite(w, w.re);
  Typed far_im = one_if_infinite(w, w.im);
  Typed signed_re = w.copysign(far_re, w.re);
  Typed far = w.atan2(far_im, signed_re);
  Typed infinite = is_any_infinite(w, w.re, w.im);
  Typed on_axis = w.is_zero(w.re);
  Typed no_height = w.is_nan(w.im);
  Typed is_right_angle = w.both(on_axis, no_height);
  Typed right_angle = w.number(std::numbers::pi / 2);
  Typed near = w.select(is_right_angle, right_angle, angle);
  Typed infinity = w.number(INFINITY);
  Typed far_height = w.copysign(infinity, below);
  Typed result = w.select(infinite, far, near);
  return {result, w.select(infinite, far_height, height)};
}

Pair asinh_parts(Parts& w, Typed re, Typed im) {
  Typed above = w.add(w.one, im);
  Typed left = w.negative(re);
  auto [a, b] = sqrt_parts(w, above, left);  // of 1 - i x
  Typed below = w.subtract(w.one, im);
  auto [c, d] = sqrt_parts(w, below, re);  // of 1 + i x
  Typed ad = w.multiply(a, d);
  Typed bc = w.multiply(b, c);
  Typed difference = w.subtract(ad, bc);
  Typed size = w.unary("chlo.asinh", difference);
  Typed ac = w.multiply(a, c);
  Typed bd = w.multiply(b, d);
  Typed product = w.subtract(ac, bd);
  Typed near = w.atan2(im, product);
  Typed far_im = one_if_infinite(w, im);
  Typed signed_im = w.copysign(far_im, im);
  Typed far_re = one_if_infinite(w, re);
  Typed far = w.atan2(signed_im, far_re);
  Typed infinite = is_any_infinite(w, re, im);
  Typed on_axis = w.is_zero(im);
  Typed angle = w.select(on_axis, im, near);
  Typed infinity = w.number(INFINITY);
  Typed far_size = w.copysign(infinity, re);
  Typed result = w.select(infinite, far_size, size);
  return {result, w.select(infinite, far, angle)};
}

Pair atanh_parts(Parts& w, Typed re, Typed im) {
  Typed near = w.abs(re);  // the function is odd in the real part
  Typed gap = w.subtract(w.one, near);
  Typed gap_square = w.multiply(gap, gap);
  Typed height_square = w.multiply(im, im);
  Typed distance = w.add(gap_square, height_square);
  Typed four = w.times(4, near);
  Typed ratio = w.divide(four, distance);
  Typed logarithm = w.unary("stablehlo.log_plus_one", ratio);
  Typed quarter = w.times(0.25, logarithm);
  Typed size = w.copysign(quarter, re);
  Typed twice = w.add(im, im);
  Typed sum = w.add(w.one, near);
  Typed product = w.multiply(gap, sum);
  Typed below = w.subtract(product, height_square);
  Typed whole = w.atan2(twice, below);
  Typed angle = w.times(0.5, whole);
  Typed infinite = is_any_infinite(w, re, im);
  Typed no_height = w.is_nan(im);
  Typed right_angle = w.number(std::numbers::pi / 2);
  Typed signed_angle = w.copysign(right_angle, im);
  Typed far_angle = w.select(no_height, im, signed_angle);
  Typed on_axis = w.is_zero(re);
  Typed has_no_size = w.either(infinite, on_axis);
  Typed signed_zero = w.copysign(w.zero, re);
  Typed result = w.select(has_no_size, signed_zero, size);
  return {result, w.select(infinite, far_angle, angle)};
}

// -i f(i x): asin from asinh, atan from atanh.
void finish_turned(Parts& w, Pair (*f)(Parts& w, Typed re, Typed im)) {
  Typed turned = w.negative(w.im);
  auto [re, im] = f(w, turned, w.re);
  Typed height = w.negative(re);
  w.finish_with_complex(im, height);
}

// Writes a call on real numbers, which is one op. False for complex numbers.
bool is_written(const OpCall& call, OpEmission& out) {
  if (is_complex(call.result().dtype)) return false;
  element_wise::emit(call, out);
  return true;
}

}  // namespace

void emit_exp(const OpCall& call, OpEmission& out) {
  if (is_written(call, out)) return;
  Parts w(call, out);
  Typed result = w.unary("stablehlo.exponential", w.z);
  finish_exponential(w, result, w.zero);
}

void emit_expm1(const OpCall& call, OpEmission& out) {
  if (is_written(call, out)) return;
  Parts w(call, out);
  Typed result = w.unary("stablehlo.exponential_minus_one", w.z);
  Typed least = w.negative(w.one);
  finish_exponential(w, result, least);
}

void emit_log(const OpCall& call, OpEmission& out) {
  if (is_written(call, out)) return;
  Parts w(call, out);
  finish_logarithm(w, w.unary("stablehlo.log", w.z));
}

void emit_log1p(const OpCall& call, OpEmission& out) {
  if (is_written(call, out)) return;
  Parts w(call, out);
  finish_logarithm(w, w.unary("stablehlo.log_plus_one", w.z));
}

// The imaginary part has the sign of the operand's, also below the negative real axis.
void emit_sqrt(const OpCall& call, OpEmission& out) {
  if (is_written(call, out)) return;
  Parts w(call, out);
  Typed result = w.unary("stablehlo.sqrt", w.z);
  Typed root = w.real(result);
  Typed height = w.imag(result);
  Typed signed_height = w.copysign(height, w.im);
  // Of a real part at infinity and a NaN, and of any number with an imaginary part at infinity.
  Typed is_left = w.compare("LT", w.re, w.zero);
  Typed nan = w.number(NAN);
  Typed far = w.abs(w.re);
  Typed end_re = w.select(is_left, nan, w.re);
  Typed end_im = w.select(is_left, far, w.im);
  Typed re_infinite = w.is_infinite(w.re);
  Typed no_height = w.is_nan(w.im);
  Typed is_end = w.both(re_infinite, no_height);
  Typed near_re = w.select(is_end, end_re, root);
  Typed near_im = w.select(is_end, end_im, signed_height);
  Typed im_infinite = w.is_infinite(w.im);
  Typed infinity = w.number(INFINITY);
  Typed result_re = w.select(im_infinite, infinity, near_re);
  Typed result_im = w.select(im_infinite, w.im, near_im);
  w.finish_with_complex(result_re, result_im);
}

void emit_sinh(const OpCall& call, OpEmission& out) {
  if (is_written(call, out)) return;
  Parts w(call, out);
  Typed sinh = w.unary("chlo.sinh", w.re);
  Typed cosh = w.unary("chlo.cosh", w.re);
  Typed cosine = w.unary("stablehlo.cosine", w.im);
  Typed sine = w.unary("stablehlo.sine", w.im);
  Typed plain_re = w.multiply(sinh, cosine);
  Typed plain_im = w.multiply(cosh, sine);
  Typed on_axis = w.is_zero(w.re);
  Typed infinite = w.is_infinite(w.re);
  Typed at_end = w.either(on_axis, infinite);
  Typed unbounded = w.is_unbounded(w.im);
  Typed keeps = w.both(unbounded, at_end);
  Typed is_real = w.is_zero(w.im);
  Typed re = w.select(keeps, w.re, plain_re);
  Typed im = w.select(is_real, w.im, plain_im);
  w.finish_with_complex(re, im);
}

void emit_cosh(const OpCall& call, OpEmission& out) {
  if (is_written(call, out)) return;
  Parts w(call, out);
  Typed sinh = w.unary("chlo.sinh", w.re);
  Typed cosh = w.unary("chlo.cosh", w.re);
  Typed cosine = w.unary("stablehlo.cosine", w.im);
  Typed sine = w.unary("stablehlo.sine", w.im);
  Typed plain_re = w.multiply(cosh, cosine);
  Typed plain_im = w.multiply(sinh, sine);
  Typed infinite = w.is_infinite(w.re);
  Typed unbounded = w.is_unbounded(w.im);
  Typed keeps = w.both(unbounded, infinite);
  Typed size = w.abs(w.re);
  Typed re = w.select(keeps, size, plain_re);
  Typed flat = w.is_zero(w.im);
  Typed on_axis = w.is_zero(w.re);
  Typed loose = w.both(on_axis, unbounded);
  Typed is_real = w.either(flat, loose);
  // The sign of sinh(re) * im.
  Typed zero_of_im = w.copysign(w.zero, w.im);
  Typed opposite = w.negative(zero_of_im);
  Typed is_left = w.is_negative(w.re);
  Typed signed_zero = w.select(is_left, opposite, zero_of_im);
  Typed im = w.select(is_real, signed_zero, plain_im);
  w.finish_with_complex(re, im);
}

void emit_tanh(const OpCall& call, OpEmission& out) {
  if (is_written(call, out)) return;
  Parts w(call, out);
  // Beyond this magnitude the real part is 1 in all dtypes, and the plain formula may overflow.
  Typed size = w.abs(w.re);
  Typed limit = w.number(22);
  Typed is_far = w.compare("GT", size, limit);
  Typed near = w.select(is_far, w.zero, w.re);
  Typed operand = w.complex(near, w.im);
  Typed result = w.unary("stablehlo.tanh", operand);
  Typed plain_re = w.real(result);
  Typed given_im = w.imag(result);
  Typed is_real = w.is_zero(w.im);
  Typed plain_im = w.select(is_real, w.im, given_im);
  Typed sign = w.copysign(w.one, w.re);
  Typed signed_zero = w.copysign(w.zero, w.im);
  Typed re = w.select(is_far, sign, plain_re);
  Typed im = w.select(is_far, signed_zero, plain_im);
  Typed unbounded = w.is_unbounded(w.im);
  Typed finite = w.is_finite(w.re);
  Typed is_nan = w.both(unbounded, finite);
  Typed on_axis = w.is_zero(w.re);
  Typed nan = w.number(NAN);
  Typed nan_re = w.select(on_axis, w.re, nan);
  Typed last_re = w.select(is_nan, nan_re, re);
  Typed last_im = w.select(is_nan, nan, im);
  w.finish_with_complex(last_re, last_im);
}

void emit_acos(const OpCall& call, OpEmission& out) {
  if (is_written(call, out)) return;
  Parts w(call, out);
  auto [re, im] = acos_parts(w);
  w.finish_with_complex(re, im);
}

void emit_acosh(const OpCall& call, OpEmission& out) {
  if (is_written(call, out)) return;
  Parts w(call, out);
  auto [re, im] = acos_parts(w);  // acosh(x) is i acos(x) or -i acos(x)
  Typed size = w.abs(im);
  Typed angle = w.copysign(re, w.im);
  w.finish_with_complex(size, angle);
}

void emit_asin(const OpCall& call, OpEmission& out) {
  if (is_written(call, out)) return;
  Parts w(call, out);
  finish_turned(w, asinh_parts);
}

void emit_asinh(const OpCall& call, OpEmission& out) {
  if (is_written(call, out)) return;
  Parts w(call, out);
  auto [re, im] = asinh_parts(w, w.re, w.im);
  w.finish_with_complex(re, im);
}

void emit_atan(const OpCall& call, OpEmission& out) {
  if (is_written(call, out)) return;
  Parts w(call, out);
  finish_turned(w, atanh_parts);
}

void emit_atanh(const OpCall& call, OpEmission& out) {
  if (is_written(call, out)) return;
  Parts w(call, out);
  auto [re, im] = atanh_parts(w, w.re, w.im);
  w.finish_with_complex(re, im);
}

}  // namespace meshard::internal
