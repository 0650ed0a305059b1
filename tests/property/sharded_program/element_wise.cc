// Operations that work element by element.
#include <cmath>

#include "tests/property/sharded_program/draw.h"
#include "tests/property/sharded_program/host_value.h"

namespace meshard::property {
namespace {

using Known = Draw::Known;

bool is_float(const Known& value) { return is_floating(value.type().dtype); }
bool is_number(const Known& value) { return value.type().dtype != DType::bool_; }
bool is_whole(const Known& value) { return is_integer(value.type().dtype); }
bool is_exact(const Known& value) { return value.bounds.error == 0; }

bool draw_float(Draw& draw, Step& step) { return draw.take(step, is_float); }
bool draw_number(Draw& draw, Step& step) { return draw.take(step, is_number); }
bool draw_small_float(Draw& draw, Step& step) {
  return draw.take(step,
                   [](const Known& value) { return is_float(value) && value.bounds.size <= 6; });
}

// A second operand that broadcasts with the first.
bool draw_partner(Draw& draw, Step& step, DType dtype) {
  const Shape& shape = draw.operand(step, 0).type().shape;
  return draw.take_type(step, {dtype, draw.partner_shape(shape)});
}
bool draw_pair(Draw& draw, Step& step) {
  if (!draw.take(step, is_number)) return false;
  DType dtype = draw.operand(step, 0).type().dtype;
  return draw_partner(draw, step, draw.one_in(6) ? draw.number_dtype() : dtype);
}
bool draw_float_pair(Draw& draw, Step& step) {
  return draw.take(step, is_float) && draw_partner(draw, step, draw.operand(step, 0).type().dtype);
}
bool draw_whole_pair(Draw& draw, Step& step) {
  return draw.take(step, is_whole) && draw_partner(draw, step, draw.operand(step, 0).type().dtype);
}
// To compare inexact numbers would be a matter of luck.
bool draw_exact_pair(Draw& draw, Step& step) {
  return draw.take(step, [](const Known& value) { return is_number(value) && is_exact(value); }) &&
         draw_partner(draw, step, draw.operand(step, 0).type().dtype) &&
         is_exact(draw.operand(step, 1));
}
bool draw_choice(Draw& draw, Step& step) {
  if (!draw.take(step, is_number)) return false;
  TensorType type = draw.operand(step, 0).type();
  return draw.take_type(step, type) &&
         draw.take_type(step, {DType::bool_, draw.partner_shape(type.shape)});
}
bool draw_cast(Draw& draw, Step& step) {
  static constexpr DType kTo[] = {DType::f32, DType::f32, DType::bf16, DType::f16,
                                  DType::f64, DType::i32, DType::i64};
  DType to = draw.one_of(kTo);
  step.lists.push_back({static_cast<std::int64_t>(to)});
  return draw.take(step, [&](const Known& value) {
    return value.type().dtype != to && (is_floating(to) || is_exact(value));
  });
}
bool draw_new_contents(Draw& draw, Step& step) {
  if (draw.depth() > 0) return false;
  step.lists.push_back({draw.between(1, 99)});
  return draw.take(step, is_number);
}

// A function of at most this slope, with values of at most this size.
template <int kSize, int kSlope>
Bounds gentle(const Arguments& args, const TensorType& result) {
  return rounded(result, kSize, kSlope * args.bounds[0].error, 16);
}
// A function of slope 1 at most, through 0, that shrinks.
Bounds shrinking(const Arguments& args, const TensorType& result) {
  return rounded(result, args.bounds[0].size + 1, args.bounds[0].error, 16);
}
Bounds exponential(const Arguments& args, const TensorType& result) {
  double size = std::exp(args.bounds[0].size + args.bounds[0].error);
  return rounded(result, size, size * args.bounds[0].error, 16);
}
Bounds added(const Arguments& args, const TensorType& result) {
  const Bounds &a = args.bounds[0], &b = args.bounds[1];
  return rounded(result, a.size + b.size, a.error + b.error);
}
Bounds multiplied(const Arguments& args, const TensorType& result) {
  return contracted(args, result, 1);
}
Bounds squared(const Arguments& args, const TensorType& result) {
  const Bounds& a = args.bounds[0];
  return rounded(result, a.size * a.size, 2 * a.size * a.error);
}
Bounds divided(const Arguments& args, const TensorType& result) {
  const Bounds &a = args.bounds[0], &b = args.bounds[1];
  return rounded(result, a.size, a.error + a.size * b.error, 16);
}
Bounds whole(const Arguments&, const TensorType& result) { return rounded(result, 1e300, 0); }
Bounds converted(const Arguments& args, const TensorType& result) {
  return rounded(result, args.bounds[0].size, args.bounds[0].error, 1);
}
Bounds fresh(const Arguments&, const TensorType&) { return {8, 0}; }

const Operation kElementWise[] = {
    {"tanh", MESHARD_CALL(tanh(A(0))), draw_float, gentle<1, 1>, true, 2, host::unary<std::tanh>,
     true},
    {"sin", MESHARD_CALL(sin(A(0))), draw_float, gentle<1, 1>, true, 1, host::unary<std::sin>,
     true},
    {"logistic", MESHARD_CALL(logistic(A(0))), draw_float, gentle<1, 1>, true, 1,
     host::unary<host::logistic>, true},
    {"erf", MESHARD_CALL(erf(A(0))), draw_float, gentle<1, 2>, true, 1, host::unary<std::erf>,
     true},
    {"exp", MESHARD_CALL(exp(A(0))), draw_small_float, exponential, true, 2, host::unary<std::exp>,
     true},
    {"log1p", MESHARD_CALL(log1p(abs(A(0)))), draw_float, shrinking, false, 1},
    {"sqrt", MESHARD_CALL(sqrt(A(0) * A(0) + 1)), draw_float, shrinking, true, 1},
    {"negative", MESHARD_CALL(-A(0)), draw_number, moved, true, 2, host::unary<host::negative>,
     true},
    {"abs", MESHARD_CALL(abs(A(0))), draw_number, moved, false, 1},
    {"square", MESHARD_CALL(square(A(0))), draw_number, squared, true, 2, host::unary<host::square>,
     true},
    {"clip", MESHARD_CALL(clip(A(0), -1, 1)), draw_float, moved, false, 1},
    {"add", MESHARD_CALL(A(0) + A(1)), draw_pair, added, true, 4, host::sum_of_two, true},
    {"subtract", MESHARD_CALL(A(0) - A(1)), draw_pair, added, true, 2, host::difference, true},
    {"multiply", MESHARD_CALL(A(0) * A(1)), draw_pair, multiplied, true, 4, host::product, true},
    {"divide", MESHARD_CALL(A(0) / (abs(A(1)) + 1)), draw_float_pair, divided, false, 2},
    {"maximum", MESHARD_CALL(maximum(A(0), A(1))), draw_pair, moved, false, 1},
    {"minimum", MESHARD_CALL(minimum(A(0), A(1))), draw_pair, moved, false, 1},
    {"add in place", MESHARD_CALL([&] {
       Tensor t = A(0);
       t += A(1);
       return t;
     }()),
     draw_float_pair, added, true, 2, host::sum_of_two, true},
    {"multiply in place", MESHARD_CALL([&] {
       Tensor t = A(0);
       t *= A(1);
       return t;
     }()),
     draw_whole_pair, multiplied, true, 1},
    {"assign", MESHARD_CALL([&] {
       Tensor t = A(0);
       assign(t, V(0));
       return t;
     }()),
     draw_new_contents, fresh, true},
    {"scale", MESHARD_CALL(0.5 * A(0) + 3), draw_float, shrinking, true, 1,
     host::unary<host::scale>, true},
    // In place: the number must not change the dtype.
    {"scale by an argument", MESHARD_CALL([&] {
       Tensor t = A(0) * 0;
       t += jit([](Tensor x, Tensor n) { return n * x + 6 * n; })(A(0), 0.5);
       return t;
     }()),
     draw_float, shrinking, true, 1, host::unary<host::scale>, true},
    {"power", MESHARD_CALL(pow(A(0), A(1) & 101)), draw_whole_pair, whole, false, 1},
    {"remainder", MESHARD_CALL(A(0) % (A(1) * A(1) + 1)), draw_whole_pair, whole},
    {"bitwise_xor", MESHARD_CALL(A(0) ^ A(1)), draw_whole_pair, whole, false, 1},
    {"less", MESHARD_CALL(A(0) < A(1)), draw_exact_pair, whole},
    {"equal", MESHARD_CALL(equal(A(0), A(1))), draw_exact_pair, whole, false, 1},
    {"where", MESHARD_CALL(where(A(2), A(0), A(1))), draw_choice, moved, true},
    {"astype", MESHARD_CALL(astype(A(0), D(0))), draw_cast, converted, false},
};

}  // namespace

std::span<const Operation> element_wise_operations() { return kElementWise; }

}  // namespace meshard::property
