// Samples of element-wise ops.
#include <limits>

#include "meshard/ops/all.h"
#include "tests/support/op_samples/op_samples.h"

namespace meshard {
using namespace internal;
std::vector<OpSample> unary_samples(SampleSource& source, Tensor (*op)(In), double low,
                                    double high) {
  auto call = [op](std::span<const Tensor> x) { return op(x[0]); };
  auto of = [&](DType dtype, Shape shape) {
    return std::vector<HostArray>{source.uniform(dtype, std::move(shape), low, high)};
  };
  return {
      {"vector", of(DType::f32, {8}), call},       {"matrix", of(DType::f32, {4, 8}), call},
      {"rank 3", of(DType::f32, {4, 2, 8}), call}, {"scalar", of(DType::f32, {}), call},
      {"odd sizes", of(DType::f32, {3, 5}), call}, {"bf16", of(DType::bf16, {4, 8}), call, false},
      {"f64", of(DType::f64, {4, 4}), call},
  };
}

std::vector<OpSample> binary_samples(SampleSource& source, Tensor (*op)(In, In), double low,
                                     double high) {
  auto call = [op](std::span<const Tensor> x) { return op(x[0], x[1]); };
  auto of = [&](DType dtype, Shape a, Shape b) {
    return std::vector<HostArray>{source.uniform(dtype, std::move(a), low, high),
                                  source.uniform(dtype, std::move(b), low, high)};
  };
  std::vector<OpSample> samples{
      {"vector", of(DType::f32, {8}, {8}), call},
      {"matrix", of(DType::f32, {4, 8}, {4, 8}), call},
      {"rank 3", of(DType::f32, {4, 2, 8}, {4, 2, 8}), call},
      {"scalar", of(DType::f32, {}, {}), call},
      {"row broadcast", of(DType::f32, {4, 8}, {8}), call},
      {"both broadcast", of(DType::f32, {4, 1}, {1, 8}), call},
      {"bf16", of(DType::bf16, {4, 8}, {4, 8}), call, false},
      {"f64", of(DType::f64, {4, 4}, {4, 4}), call},
      {"f64, row broadcast", of(DType::f64, {4}, {4, 4}), call},
      {"bf16 and f32",
       {source.uniform(DType::bf16, {4, 8}, low, high),
        source.uniform(DType::f32, {4, 8}, low, high)},
       call,
       false},
  };
  // A number inside the op's domain.
  double number = low + 0.625 * (high - low);
  samples.push_back({"number on the right",
                     {source.uniform(DType::f64, {4, 4}, low, high)},
                     [op, number](std::span<const Tensor> x) { return op(x[0], number); }});
  samples.push_back({"whole number on the left",
                     {source.uniform(DType::f64, {4, 4}, low, high)},
                     [op](std::span<const Tensor> x) { return op(1, x[0]); }});
  return samples;
}

namespace {

using Samples = std::function<std::vector<OpSample>(SampleSource&)>;

Samples unary(Tensor (*op)(In), double low = -2.0, double high = 2.0) {
  return [=](SampleSource& source) { return unary_samples(source, op, low, high); };
}

Samples binary(Tensor (*op)(In, In), double low = -2.0, double high = 2.0) {
  return [=](SampleSource& source) { return binary_samples(source, op, low, high); };
}

// Samples of an op on two operands of `dtype`, for ops that do not accept floats.
std::vector<OpSample> binary_samples_of(SampleSource& source, DType dtype, Tensor (*op)(In, In),
                                        double low, double high) {
  auto call = [op](std::span<const Tensor> x) { return op(x[0], x[1]); };
  auto of = [&](Shape a, Shape b) {
    return std::vector<HostArray>{source.uniform(dtype, std::move(a), low, high),
                                  source.uniform(dtype, std::move(b), low, high)};
  };
  std::string name(to_string(dtype));
  return {
      {name + " vector", of({8}, {8}), call, false},
      {name + " matrix", of({4, 8}, {4, 8}), call, false},
      {name + " rank 3", of({4, 2, 8}, {4, 2, 8}), call, false},
      {name + " broadcast", of({4, 8}, {8}), call, false},
  };
}

template <Tensor (*op)(In, In)>
std::vector<OpSample> bitwise_samples(SampleSource& source) {
  // Non-negative operands: a shift amount must not be negative.
  std::vector<OpSample> list = binary_samples_of(source, DType::i32, op, 0, 40);
  for (OpSample& sample : binary_samples_of(source, DType::u8, op, 0, 255))
    list.push_back(std::move(sample));
  list.push_back(
      {"negative numbers",
       {source.uniform(DType::i32, {4, 8}, -1000, 1000), source.uniform(DType::i32, {4, 8}, 0, 31)},
       [](std::span<const Tensor> x) { return op(x[0], x[1]); },
       false});
  list.push_back({"a number",
                  {source.uniform(DType::u32, {4, 8}, 0, 1e9)},
                  [](std::span<const Tensor> x) { return op(x[0], 3); },
                  false});
  return list;
}

template <Tensor (*op)(In), bool with_bools = false>
std::vector<OpSample> bits_of_one_samples(SampleSource& source) {
  auto call = [](std::span<const Tensor> x) { return op(x[0]); };
  std::vector<OpSample> samples{
      {"vector", {source.uniform(DType::i32, {8}, -9, 9)}, call, false},
      {"matrix", {source.uniform(DType::u8, {4, 8}, 0, 255)}, call, false},
      {"64 bits", {source.uniform(DType::i64, {4, 8}, -1e15, 1e15)}, call, false},
  };
  if (with_bools)
    samples.push_back({"bools", {source.uniform(DType::bool_, {4, 2, 8}, 0, 1)}, call, false});
  return samples;
}

std::vector<OpSample> bitcast_samples(SampleSource& source) {
  auto to = [](DType dtype) {
    return [dtype](std::span<const Tensor> x) { return bitcast_convert(x[0], dtype); };
  };
  DType f32 = DType::f32, f64 = DType::f64;
  return {
      {"f32 as u32", {source.uniform(f32, {4, 8})}, to(DType::u32), false},
      {"u32 as f32", {source.uniform(DType::u32, {8}, 0, 1e9)}, to(f32), false},
      {"f64 as i16", {source.uniform(f64, {4, 2})}, to(DType::i16), false},
      {"u8 as f32", {source.uniform(DType::u8, {8, 2, 4}, 0, 60)}, to(f32), false},
      {"bf16 as f16", {source.uniform(DType::bf16, {4, 8})}, to(DType::f16), false},
      {"scalar", {source.uniform(f32, {})}, to(DType::u8), false},
  };
}

// Whole numbers from a small range, so that some elements are equal.
template <Tensor (*op)(In, In)>
std::vector<OpSample> comparison_samples(SampleSource& source) {
  std::vector<OpSample> list = binary_samples_of(source, DType::f32, op, -2, 2);
  for (DType dtype : {DType::i32, DType::u8, DType::bool_})
    for (OpSample& sample : binary_samples_of(source, dtype, op, -2, 2))
      list.push_back(std::move(sample));
  list.push_back({"i32 and f32",
                  {source.uniform(DType::i32, {4, 8}), source.uniform(DType::f32, {4, 8})},
                  [](std::span<const Tensor> x) { return op(x[0], x[1]); },
                  false});
  list.push_back({"a number",
                  {source.uniform(DType::i32, {4, 8})},
                  [](std::span<const Tensor> x) { return op(x[0], 1); },
                  false});
  return list;
}

// Samples of an op that jumps where the quotient of its operands is a whole number.
// @param with_unsigned adds a sample of unsigned integers
std::vector<OpSample> division_samples(SampleSource& source, Tensor (*op)(In, In),
                                       bool with_unsigned) {
  auto call = [op](std::span<const Tensor> x) { return op(x[0], x[1]); };
  // Keeps the quotients away from whole numbers.
  HostArray off_whole = HostArray::from_vector<double>({0.5, -0.75, 1.25, 3.5}, {4});
  HostArray divisors = HostArray::from_vector<double>({1, 0.5, -1, -2}, {4});
  std::vector<OpSample> samples = binary_samples(source, op, 0.5, 2.5);
  for (OpSample& sample : samples) sample.check_vjp = false;
  samples.push_back({"f64 of all signs", {off_whole, divisors}, call});
  auto add_integers = [&](const char* name, DType dtype, double low, double high) {
    samples.push_back(
        {name,
         {source.uniform(dtype, {4, 8}, low, high), source.uniform(dtype, {4, 8}, 1, 7)},
         call,
         false});
  };
  add_integers("i32", DType::i32, -20, 20);
  if (with_unsigned) add_integers("u8", DType::u8, 0, 200);
  return samples;
}

std::vector<OpSample> truncated_divide_samples(SampleSource& source) {
  auto call = [](std::span<const Tensor> x) { return truncated_divide(x[0], x[1]); };
  auto of = [&](DType dtype, Shape a, Shape b, double low, double high) {
    return std::vector<HostArray>{source.uniform(dtype, std::move(a), low, high),
                                  source.uniform(dtype, std::move(b), 1, 7)};
  };
  return {
      {"matrix", of(DType::i32, {4, 8}, {4, 8}, -20, 20), call, false},
      {"row broadcast", of(DType::i64, {4, 8}, {8}, -20, 20), call, false},
      {"bytes", of(DType::u8, {8}, {8}, 0, 200), call, false},
      {"by a negative number",
       {source.uniform(DType::i32, {4, 2, 8}, -20, 20)},
       [](std::span<const Tensor> x) { return truncated_divide(x[0], -3); },
       false},
  };
}

template <Tensor (*op)(In)>
std::vector<OpSample> rounding_samples(SampleSource& source) {
  std::vector<OpSample> samples = unary_samples(source, op, -3, 3);
  for (OpSample& sample : samples) sample.check_vjp = false;  // f64 elements may be near a jump
  auto call = [](std::span<const Tensor> x) { return op(x[0]); };
  samples.push_back(
      {"halves",
       {HostArray::from_vector<float>({-2.5f, -1.5f, -0.5f, -0.0f, 0.5f, 1.5f, 2.5f, 3.5f})},
       call,
       false});
  samples.push_back({"f64 off the jumps",
                     {HostArray::from_vector<double>({-1.75, -0.25, 0.25, 0.75, 1.25, 2.75})},
                     call});
  return samples;
}

std::vector<OpSample> reduce_precision_samples(SampleSource& source) {
  auto to = [](std::int64_t exponent, std::int64_t mantissa) {
    return [=](std::span<const Tensor> x) { return reduce_precision(x[0], exponent, mantissa); };
  };
  DType f32 = DType::f32;
  return {
      {"as f16", {source.uniform(f32, {4, 8}, -1e5, 1e5)}, to(5, 10), false},
      {"as bf16", {source.uniform(f32, {8})}, to(8, 7), false},
      {"f64 as f32", {source.uniform(DType::f64, {4, 2, 8})}, to(8, 23), false},
      {"no mantissa", {source.uniform(f32, {4, 8})}, to(8, 0), false},
  };
}

std::vector<OpSample> where_samples(SampleSource& source) {
  auto call = [](std::span<const Tensor> x) { return where(x[0], x[1], x[2]); };
  auto of = [&](DType dtype, Shape condition, Shape a, Shape b) {
    return std::vector<HostArray>{source.uniform(DType::bool_, std::move(condition), 0, 1),
                                  source.uniform(dtype, std::move(a)),
                                  source.uniform(dtype, std::move(b))};
  };
  return {
      {"vector", of(DType::f32, {8}, {8}, {8}), call},
      {"matrix", of(DType::f32, {4, 8}, {4, 8}, {4, 8}), call},
      {"rank 3", of(DType::f32, {4, 2, 8}, {4, 2, 8}, {4, 2, 8}), call},
      {"integers", of(DType::i32, {4, 8}, {4, 8}, {4, 8}), call, false},
      {"f64", of(DType::f64, {4, 4}, {4, 4}, {4, 4}), call},
      {"f64, all broadcast", of(DType::f64, {4, 1}, {4}, {}), call},
      {"f64 and a number",
       {source.uniform(DType::bool_, {4}, 0, 1), source.uniform(DType::f64, {4})},
       [](std::span<const Tensor> x) { return where(x[0], x[1], 0); }},
  };
}

std::vector<OpSample> clip_samples(SampleSource& source) {
  auto numbers = [](std::span<const Tensor> x) { return clip(x[0], -1, 0.5); };
  auto tensors = [](std::span<const Tensor> x) { return clip(x[0], x[1], x[2]); };
  return {
      {"vector", {source.distinct(DType::f32, {8})}, numbers},
      {"matrix", {source.distinct(DType::f32, {4, 8})}, numbers},
      {"rank 3", {source.distinct(DType::f32, {4, 2, 8})}, numbers},
      {"integers",
       {source.uniform(DType::i32, {4, 8}, -9, 9)},
       [](std::span<const Tensor> x) { return clip(x[0], -3, 4); },
       false},
      {"f64", {source.distinct(DType::f64, {4, 4}, 0.3)}, numbers},
      {"f64 with tensors",
       {source.distinct(DType::f64, {4, 4}, 0.3), source.uniform(DType::f64, {4}, -1.2, -1.1),
        source.uniform(DType::f64, {}, 1.01, 1.02)},
       tensors},
  };
}

// Samples of a function with the orders of a vector. They are constants, because there is no
// derivative with respect to the order.
std::vector<OpSample> samples_of_orders(SampleSource& source, Tensor (*op)(In, In),
                                        std::vector<float> orders) {
  auto of = [op](std::vector<float> order, Shape shape, DType dtype = DType::f32) {
    HostArray first = HostArray::from_vector(std::move(order), std::move(shape)).astype(dtype);
    return [=](std::span<const Tensor> x) { return op(constant(first), x[0]); };
  };
  DType f32 = DType::f32, f64 = DType::f64;
  return {
      {"vector", {source.uniform(f64, {4}, 0.5, 4)}, of(std::move(orders), {4}, f64)},
      {"matrix", {source.uniform(f64, {4, 8}, 0.5, 4)}, of({2}, {}, f64)},
      {"rank 3", {source.uniform(f32, {4, 2, 8}, 0.5, 4)}, of({3}, {1})},
      {"bf16", {source.uniform(DType::bf16, {4, 8}, 0.5, 4)}, of({2}, {}, DType::bf16), false},
      {"both broadcast",
       {source.uniform(f32, {4, 1}, 2, 3), source.uniform(f32, {1, 8}, 0.5, 4)},
       [op](std::span<const Tensor> x) { return op(floor(x[0]), x[1]); },
       false},
  };
}

template <Tensor (*op)(In, In)>
std::vector<OpSample> logical_samples(SampleSource& source) {
  return binary_samples_of(source, DType::bool_, op, 0, 1);
}

template <Tensor (*op)(In)>
std::vector<OpSample> part_samples(SampleSource& source) {
  auto of_square = [](std::span<const Tensor> x) {
    Tensor z = complex(x[0], x[1]);
    return op(multiply(z, z));
  };
  auto plain = [](std::span<const Tensor> x) { return op(x[0]); };
  DType f64 = DType::f64;
  return std::vector<OpSample>{
      {"of a square", {source.uniform(f64, {4, 8}), source.uniform(f64, {4, 8})}, of_square},
      {"c64", {source.uniform(DType::c64, {8})}, plain},
      {"c128", {source.uniform(DType::c128, {4, 2, 8})}, plain, false},
  };
}

}  // namespace

const OpSampleTable& element_wise_samples() {
  static const OpSampleTable table{
      {"add", binary(add)},
      {"subtract", binary(subtract)},
      {"multiply", binary(multiply)},
      {"divide", binary(divide, 0.5, 2.5)},
      {"negative", unary(negative)},
      {"abs",
       [](SampleSource& source) {
         auto samples = unary_samples(source, abs);
         samples.push_back({"complex",
                            {source.uniform(DType::f64, {8}), source.uniform(DType::f64, {8})},
                            [](std::span<const Tensor> x) { return abs(complex(x[0], x[1])); },
                            false});
         samples.push_back({"c64",
                            {source.uniform(DType::c64, {4, 8})},
                            [](std::span<const Tensor> x) { return abs(x[0]); }});
         return samples;
       }},
      {"sign",
       [](SampleSource& source) {
         std::vector<OpSample> samples = unary_samples(source, sign);
         samples.push_back({"i32",
                            {source.uniform(DType::i32, {4, 8}, -20, 20)},
                            [](std::span<const Tensor> x) { return sign(x[0]); },
                            false});
         return samples;
       }},
      {"bitwise_and", bitwise_samples<bitwise_and>},
      {"bitwise_or", bitwise_samples<bitwise_or>},
      {"bitwise_xor", bitwise_samples<bitwise_xor>},
      {"bitwise_left_shift", bitwise_samples<bitwise_left_shift>},
      {"bitwise_right_shift", bitwise_samples<bitwise_right_shift>},
      {"shift_right_logical", bitwise_samples<shift_right_logical>},
      {"bitwise_invert", bits_of_one_samples<bitwise_invert, true>},
      {"popcnt", bits_of_one_samples<popcnt>},
      {"count_leading_zeros", bits_of_one_samples<count_leading_zeros>},
      {"astype",
       [](SampleSource& source) {
         auto to = [](DType dtype) {
           return [dtype](std::span<const Tensor> x) { return astype(x[0], dtype); };
         };
         return std::vector<OpSample>{
             {"f32 to bf16", {source.uniform(DType::f32, {4, 8})}, to(DType::bf16), false},
             {"f64 to f32", {source.uniform(DType::f64, {4, 8})}, to(DType::f32), false},
             {"f32 to f64", {source.uniform(DType::f32, {4, 8})}, to(DType::f64), false},
             {"f32 to i32", {source.uniform(DType::f32, {4, 8}, -50, 50)}, to(DType::i32), false},
             {"i32 to f32", {source.uniform(DType::i32, {4, 8}, -50, 50)}, to(DType::f32), false},
             {"i32 to bool", {source.uniform(DType::i32, {4, 8}, -1, 1)}, to(DType::bool_), false},
             {"bool to f32", {source.uniform(DType::bool_, {4, 8}, 0, 1)}, to(DType::f32), false},
             {"f64 to c64", {source.uniform(DType::f64, {4, 8})}, to(DType::c64), false},
             {"c64 to c128", {source.uniform(DType::c64, {4, 8})}, to(DType::c128), false},
             {"f64 to f32 and back",
              {source.uniform(DType::f64, {4})},
              [](std::span<const Tensor> x) {
                return astype(astype(x[0], DType::f32), DType::f64);
              },
              false},
         };
       }},
      {"bitcast_convert", bitcast_samples},
      {"equal", comparison_samples<equal>},
      {"not_equal", comparison_samples<not_equal>},
      {"less", comparison_samples<less>},
      {"less_equal", comparison_samples<less_equal>},
      {"greater", comparison_samples<greater>},
      {"greater_equal", comparison_samples<greater_equal>},
      {"isfinite", unary(isfinite)},
      {"logical_and", logical_samples<logical_and>},
      {"logical_or", logical_samples<logical_or>},
      {"logical_xor", logical_samples<logical_xor>},
      {"logical_not",
       [](SampleSource& source) {
         auto call = [](std::span<const Tensor> x) { return logical_not(x[0]); };
         return std::vector<OpSample>{
             {"vector", {source.uniform(DType::bool_, {8}, 0, 1)}, call, false},
             {"matrix", {source.uniform(DType::bool_, {4, 8}, 0, 1)}, call, false},
             {"rank 3", {source.uniform(DType::bool_, {4, 2, 8}, 0, 1)}, call, false},
         };
       }},
      {"complex",
       [](SampleSource& source) {
         // Weights the real and the imaginary part differently, to test the cotangents of both.
         auto weighted = [](std::span<const Tensor> x) {
           Tensor z = complex(x[0], x[1]);
           return subtract(multiply(real(z), 3), multiply(imag(z), imag(z)));
         };
         auto plain = [](std::span<const Tensor> x) { return complex(x[0], x[1]); };
         DType f32 = DType::f32, f64 = DType::f64;
         return std::vector<OpSample>{
             {"f64", {source.uniform(f64, {4, 8}), source.uniform(f64, {4, 8})}, weighted},
             {"f32", {source.uniform(f32, {8}), source.uniform(f32, {8})}, plain},
             {"broadcast", {source.uniform(f32, {4, 1}), source.uniform(f32, {4, 4})}, plain},
             {"rank 3",
              {source.uniform(f64, {4, 2, 3}), source.uniform(f64, {4, 2, 3})},
              plain,
              false},
         };
       }},
      {"real", part_samples<real>},
      {"imag", part_samples<imag>},
      {"floor_divide",
       [](SampleSource& source) { return division_samples(source, floor_divide, true); }},
      {"truncated_divide", truncated_divide_samples},
      {"fmod", [](SampleSource& source) { return division_samples(source, fmod, false); }},
      {"remainder", [](SampleSource& source) { return division_samples(source, remainder, true); }},
      {"exp", unary(exp)},
      {"expm1", unary(expm1)},
      {"log", unary(log, 0.25, 3)},
      {"log1p", unary(log1p, -0.75, 3)},
      {"logistic", unary(logistic)},
      {"pow", binary(pow, 0.5, 2)},
      {"sqrt", unary(sqrt, 0.25, 3)},
      {"rsqrt", unary(rsqrt, 0.25, 3)},
      {"cbrt", unary(cbrt, 0.25, 3)},
      {"floor", rounding_samples<floor>},
      {"ceil", rounding_samples<ceil>},
      {"round", rounding_samples<round>},
      {"round_nearest_afz", rounding_samples<round_nearest_afz>},
      {"trunc", rounding_samples<trunc>},
      {"reduce_precision", reduce_precision_samples},
      {"nextafter", binary(nextafter, -2, 2)},
      {"where", where_samples},
      {"maximum", binary(maximum)},
      {"minimum", binary(minimum)},
      {"clip", clip_samples},
      {"erf", unary(erf)},
      {"erfc", unary(erfc, -2, 2)},
      {"erf_inv", unary(erf_inv, -0.75, 0.75)},
      {"lgamma", unary(lgamma, 0.5, 4)},
      {"digamma", unary(digamma, 0.5, 4)},
      {"polygamma",
       [](SampleSource& source) {
         return samples_of_orders(source, polygamma, {1, 2, 3, 1});
       }},
      {"zeta",
       [](SampleSource& source) {
         return samples_of_orders(source, zeta, {2, 3, 1.5, 4});
       }},
      {"sin", unary(sin)},
      {"cos", unary(cos)},
      {"tan", unary(tan, -1.25, 1.25)},
      {"asin", unary(asin, -0.75, 0.75)},
      {"acos", unary(acos, -0.75, 0.75)},
      {"atan", unary(atan, -2, 2)},
      {"atan2", binary(atan2, 0.25, 2)},
      {"sinh", unary(sinh, -2, 2)},
      {"cosh", unary(cosh, -2, 2)},
      {"tanh", unary(tanh)},
      {"asinh", unary(asinh, -2, 2)},
      {"acosh", unary(acosh, 1.25, 3)},
      {"atanh", unary(atanh, -0.75, 0.75)},
  };
  return table;
}

}  // namespace meshard
