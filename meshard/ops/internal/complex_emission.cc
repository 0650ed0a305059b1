// Tested in tests/conformance/complex_test.cc.
#include "meshard/ops/internal/complex_emission.h"

#include <cmath>
#include <functional>
#include <memory>
#include <numbers>
#include <optional>
#include <tuple>
#include <utility>

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/internal/element_writer.h"

namespace meshard::internal {
namespace complex_formula {
namespace {

using Typed = OpEmission::Typed;

// A handle on a part of a formula: numbers, complex numbers or bools in the shape of the result. It
// is written when the result that needs it is, and once, so that the text follows from the formula:
// C++ does not fix the order in which arguments are evaluated.
class Expr {
 public:
  using Writing = std::function<Typed(ElementWriter& w)>;

  Expr(double number) : Expr([number](ElementWriter& w) { return w.number(number); }) {}  // NOLINT
  explicit Expr(Writing writing)
      : state_(std::make_shared<State>(State{std::move(writing), std::nullopt})) {}

  Typed written(ElementWriter& w) const {
    if (!state_->value) state_->value = state_->writing(w);
    return *state_->value;
  }

 private:
  struct State {
    Writing writing;
    std::optional<Typed> value;
  };
  std::shared_ptr<State> state_;
};

// Writes the operands from left to right, then `write(w, operands...)`.
template <class Write, class... Operands>
Expr applied(Write write, const Operands&... operands) {
  return Expr(Expr::Writing([=](ElementWriter& w) {
    std::tuple values{operands.written(w)...};
    return std::apply([&](auto... value) { return write(w, value...); }, values);
  }));
}

Expr unary(const char* mnemonic, const Expr& x) {
  return applied([=](ElementWriter& w, Typed a) { return w.unary(mnemonic, a); }, x);
}
Expr binary(const char* mnemonic, const Expr& x, const Expr& y) {
  return applied([=](ElementWriter& w, Typed a, Typed b) { return w.binary(mnemonic, a, b); }, x,
                 y);
}
Expr compare(const char* direction, const Expr& x, const Expr& y) {
  return applied([=](ElementWriter& w, Typed a, Typed b) { return w.compare(direction, a, b); }, x,
                 y);
}
Expr select(const Expr& condition, const Expr& when_true, const Expr& when_false) {
  return applied([](ElementWriter& w, Typed c, Typed a, Typed b) { return w.select(c, a, b); },
                 condition, when_true, when_false);
}
Expr real(const Expr& z) {
  return applied([](ElementWriter& w, Typed a) { return w.real(a); }, z);
}
Expr imag(const Expr& z) {
  return applied([](ElementWriter& w, Typed a) { return w.imag(a); }, z);
}
Expr magnitude(const Expr& re, const Expr& im) {
  return applied(
      [](ElementWriter& w, Typed a, Typed b) { return w.abs_of_complex(w.complex(a, b)); }, re, im);
}
Expr is_unbounded(const Expr& x) {  // an angle without a direction: infinities and NaN
  return applied([](ElementWriter& w, Typed a) { return w.unary("stablehlo.not", w.is_finite(a)); },
                 x);
}

Expr operator+(const Expr& x, const Expr& y) { return binary(kAdd, x, y); }
Expr operator-(const Expr& x, const Expr& y) { return binary("stablehlo.subtract", x, y); }
Expr operator*(const Expr& x, const Expr& y) { return binary(kMultiply, x, y); }
Expr operator/(const Expr& x, const Expr& y) { return binary("stablehlo.divide", x, y); }
Expr operator&(const Expr& x, const Expr& y) { return binary(kAnd, x, y); }
Expr operator|(const Expr& x, const Expr& y) { return binary(kOr, x, y); }
Expr operator-(const Expr& x) { return unary("stablehlo.negate", x); }
Expr abs(const Expr& x) { return unary("stablehlo.abs", x); }
Expr sin(const Expr& x) { return unary("stablehlo.sine", x); }
Expr cos(const Expr& x) { return unary("stablehlo.cosine", x); }
Expr sinh(const Expr& x) { return unary("chlo.sinh", x); }
Expr cosh(const Expr& x) { return unary("chlo.cosh", x); }
Expr asinh(const Expr& x) { return unary("chlo.asinh", x); }
Expr atan2(const Expr& x, const Expr& y) { return binary("stablehlo.atan2", x, y); }

Expr is_zero(const Expr& x) { return compare("EQ", x, 0); }
Expr is_below_zero(const Expr& x) { return compare("LT", x, 0); }
Expr is_nan(const Expr& x) { return compare("NE", x, x); }
Expr is_infinite(const Expr& x) { return compare("EQ", abs(x), INFINITY); }
// Also of zeros; the sign of a NaN counts as positive.
Expr is_negative(const Expr& x) { return is_below_zero(x) | is_below_zero(1 / x); }
Expr copysign(const Expr& size, const Expr& sign) {
  Expr without = abs(size);
  return select(is_negative(sign), -without, without);
}
// 1 for an infinite number, otherwise 0; NaN stays NaN.
Expr one_if_infinite(const Expr& x) { return select(is_nan(x), x, select(is_infinite(x), 1, 0)); }

struct Pair {
  Expr re, im;
};
struct Operand {
  Expr z, re, im;
};

// Real where the operand is, with a zero of the same sign. Where the real part is infinite and the
// angle has no direction, exponentials of re < 0 tend to `least`.
Pair exponential(const char* mnemonic, const Operand& x, const Expr& least) {
  Expr given = unary(mnemonic, x.z);
  Expr is_left = is_below_zero(x.re), is_end = is_infinite(x.re) & is_unbounded(x.im);
  return {select(is_end, select(is_left, least, x.re), real(given)),
          select(is_end, select(is_left, 0, NAN), select(is_zero(x.im), x.im, imag(given)))};
}
Pair exp(const Operand& x) { return exponential("stablehlo.exponential", x, 0); }
Pair expm1(const Operand& x) { return exponential("stablehlo.exponential_minus_one", x, -1); }

Pair logarithm(const char* mnemonic, const Operand& x) {
  Expr given = unary(mnemonic, x.z), infinite = is_infinite(x.re) | is_infinite(x.im);
  return {select(infinite, INFINITY, real(given)), imag(given)};
}
Pair log(const Operand& x) { return logarithm("stablehlo.log", x); }
Pair log1p(const Operand& x) { return logarithm("stablehlo.log_plus_one", x); }

// The imaginary part has the sign of the operand's, also below the negative real axis.
Pair sqrt(const Operand& x) {
  Expr root = unary("stablehlo.sqrt", x.z);
  // Of a real part at infinity and a NaN, and of any number with an imaginary part at infinity.
  Expr is_left = is_below_zero(x.re), is_end = is_infinite(x.re) & is_nan(x.im);
  Expr re = select(is_end, select(is_left, NAN, x.re), real(root));
  Expr im = select(is_end, select(is_left, abs(x.re), x.im), copysign(imag(root), x.im));
  Expr is_far = is_infinite(x.im);
  return {select(is_far, INFINITY, re), select(is_far, x.im, im)};
}

Pair sinh(const Operand& x) {
  Expr keeps = is_unbounded(x.im) & (is_zero(x.re) | is_infinite(x.re));
  return {select(keeps, x.re, sinh(x.re) * cos(x.im)),
          select(is_zero(x.im), x.im, cosh(x.re) * sin(x.im))};
}

Pair cosh(const Operand& x) {
  Expr unbounded = is_unbounded(x.im);
  Expr is_real = is_zero(x.im) | (is_zero(x.re) & unbounded);
  Expr zero_of_im = copysign(0, x.im);  // the zero has the sign of sinh(re) * im
  return {
      select(unbounded & is_infinite(x.re), abs(x.re), cosh(x.re) * cos(x.im)),
      select(is_real, select(is_negative(x.re), -zero_of_im, zero_of_im), sinh(x.re) * sin(x.im))};
}

Pair tanh(const Operand& x) {
  // Beyond this magnitude the real part is 1 in all dtypes, and the plain formula may overflow.
  Expr is_far = compare("GT", abs(x.re), 22);
  Expr near = select(is_far, 0, x.re);
  Expr result = applied(
      [](ElementWriter& w, Typed a, Typed b) { return w.unary("stablehlo.tanh", w.complex(a, b)); },
      near, x.im);
  Expr re = select(is_far, copysign(1, x.re), real(result));
  Expr im = select(is_far, copysign(0, x.im), select(is_zero(x.im), x.im, imag(result)));
  Expr undefined =
      is_unbounded(x.im) & applied([](ElementWriter& w, Typed a) { return w.is_finite(a); }, x.re);
  return {select(undefined, select(is_zero(x.re), x.re, NAN), re), select(undefined, NAN, im)};
}

// The square root of re + i im.
Pair sqrt_parts(const Expr& re, const Expr& im) {
  // Half of the operands, so that the sum does not overflow; the larger part first, so that nothing
  // cancels.
  Expr larger = unary("stablehlo.sqrt", 0.5 * magnitude(re, im) + 0.5 * abs(re));
  Expr smaller = select(is_zero(larger), 0, 0.5 * abs(im) / larger);
  Expr is_right = compare("GE", re, 0);
  return {select(is_right, larger, smaller), copysign(select(is_right, smaller, larger), im)};
}

Pair acos(const Operand& x) {
  auto [a, b] = sqrt_parts(1 - x.re, -x.im);
  auto [c, d] = sqrt_parts(1 + x.re, x.im);
  Expr half = atan2(a, c), height = asinh(c * b - d * a);
  Expr angle = select(is_zero(x.re) & is_nan(x.im), std::numbers::pi / 2, half + half);
  // The angle of a point at infinity.
  Expr far = atan2(one_if_infinite(x.im), copysign(one_if_infinite(x.re), x.re));
  Expr infinite = is_infinite(x.re) | is_infinite(x.im);
  return {select(infinite, far, angle), select(infinite, copysign(INFINITY, -x.im), height)};
}

Pair acosh(const Operand& x) {
  auto [re, im] = acos(x);  // acosh(x) is i acos(x) or -i acos(x)
  return {abs(im), copysign(re, x.im)};
}

Pair asinh(const Expr& re, const Expr& im) {
  auto [a, b] = sqrt_parts(1 + im, -re);  // of 1 - i x
  auto [c, d] = sqrt_parts(1 - im, re);   // of 1 + i x
  Expr size = asinh(a * d - b * c);
  Expr angle = select(is_zero(im), im, atan2(im, a * c - b * d));
  Expr far = atan2(copysign(one_if_infinite(im), im), one_if_infinite(re));
  Expr infinite = is_infinite(re) | is_infinite(im);
  return {select(infinite, copysign(INFINITY, re), size), select(infinite, far, angle)};
}
Pair asinh(const Operand& x) { return asinh(x.re, x.im); }

Pair atanh(const Expr& re, const Expr& im) {
  Expr near = abs(re);  // the function is odd in the real part
  Expr gap = 1 - near, height_square = im * im;
  Expr ratio = 4 * near / (gap * gap + height_square);
  Expr size = copysign(0.25 * unary("stablehlo.log_plus_one", ratio), re);
  Expr angle = 0.5 * atan2(im + im, gap * (1 + near) - height_square);
  Expr infinite = is_infinite(re) | is_infinite(im);
  Expr far = select(is_nan(im), im, copysign(std::numbers::pi / 2, im));
  return {select(infinite | is_zero(re), copysign(0, re), size), select(infinite, far, angle)};
}
Pair atanh(const Operand& x) { return atanh(x.re, x.im); }

// -i f(i x): asin from asinh, atan from atanh.
Pair turned(Pair (*f)(const Expr& re, const Expr& im), const Operand& x) {
  auto [re, im] = f(-x.im, x.re);
  return {im, -re};
}
Pair asin(const Operand& x) { return turned(asinh, x); }
Pair atan(const Operand& x) { return turned(atanh, x); }

// Writes a call: one op on real numbers, the formula on complex ones.
void write(const OpCall& call, OpEmission& out, Pair (*formula)(const Operand& x)) {
  if (!is_complex(call.result().dtype)) return element_wise::emit(call, out);
  ElementWriter w(call.result(), out);
  Expr z(Expr::Writing([&](ElementWriter&) { return out.operands[0]; }));
  Pair result = formula({z, real(z), imag(z)});
  Typed re = result.re.written(w), im = result.im.written(w);
  w.finish_with_complex(re, im);
}

}  // namespace
}  // namespace complex_formula

using complex_formula::write;

void emit_exp(const OpCall& call, OpEmission& out) { write(call, out, complex_formula::exp); }
void emit_expm1(const OpCall& call, OpEmission& out) { write(call, out, complex_formula::expm1); }
void emit_log(const OpCall& call, OpEmission& out) { write(call, out, complex_formula::log); }
void emit_log1p(const OpCall& call, OpEmission& out) { write(call, out, complex_formula::log1p); }
void emit_sqrt(const OpCall& call, OpEmission& out) { write(call, out, complex_formula::sqrt); }
void emit_sinh(const OpCall& call, OpEmission& out) { write(call, out, complex_formula::sinh); }
void emit_cosh(const OpCall& call, OpEmission& out) { write(call, out, complex_formula::cosh); }
void emit_tanh(const OpCall& call, OpEmission& out) { write(call, out, complex_formula::tanh); }
void emit_acos(const OpCall& call, OpEmission& out) { write(call, out, complex_formula::acos); }
void emit_acosh(const OpCall& call, OpEmission& out) { write(call, out, complex_formula::acosh); }
void emit_asin(const OpCall& call, OpEmission& out) { write(call, out, complex_formula::asin); }
void emit_asinh(const OpCall& call, OpEmission& out) { write(call, out, complex_formula::asinh); }
void emit_atan(const OpCall& call, OpEmission& out) { write(call, out, complex_formula::atan); }
void emit_atanh(const OpCall& call, OpEmission& out) { write(call, out, complex_formula::atanh); }

}  // namespace meshard::internal
