// ew_*, bin_*, compare_*, int_*, convert_*, bitcast_*: element-wise ops.
#include <sstream>

#include "meshard/meshard.h"
#include "tools/conformance/jax/numerics/arrays.h"
#include "tools/conformance/jax/numerics/programs.h"

namespace meshard::conformance {
namespace {

Program one(Tensor (*op)(In)) {
  return [op](Inputs x) { return Tensors{op(x[0])}; };
}
Program two(Tensor (*op)(In, In)) {
  return [op](Inputs x) { return Tensors{op(x[0], x[1])}; };
}

// NOLINTNEXTLINE(readability-function-size): a table
const Programs& functions_of_one() {
  static const Programs programs{
      {"abs", one(abs)},
      {"acos", one(acos)},
      {"acosh", one(acosh)},
      {"asin", one(asin)},
      {"asinh", one(asinh)},
      {"atan", one(atan)},
      {"atanh", one(atanh)},
      {"cbrt", one(cbrt)},
      {"ceil", one(ceil)},
      {"clz", one(count_leading_zeros)},
      {"cos", one(cos)},
      {"cosh", one(cosh)},
      {"digamma", one(digamma)},
      {"erf", one(erf)},
      {"erf_inv", one(erf_inv)},
      {"erfc", one(erfc)},
      {"exp", one(exp)},
      {"exp2", one(exp2)},
      {"expm1", one(expm1)},
      {"floor", one(floor)},
      {"is_finite", one(isfinite)},
      {"isfinite", one(isfinite)},
      {"is_inf", one(isinf)},
      {"isinf", one(isinf)},
      {"is_nan", one(isnan)},
      {"isnan", one(isnan)},
      {"lgamma", one(lgamma)},
      {"log", one(log)},
      {"log10", one(log10)},
      {"log1p", one(log1p)},
      {"log2", one(log2)},
      {"logical_not", one(logical_not)},
      {"logistic", one(logistic)},
      {"neg", one(negative)},
      {"negative", one(negative)},
      {"not", one(bitwise_invert)},
      {"population_count", one(popcnt)},
      {"reciprocal", one(reciprocal)},
      {"relu", one(relu)},
      {"round", one(round)},
      {"round_away", one(round_nearest_afz)},
      {"round_even", one(round)},
      {"rsqrt", one(rsqrt)},
      {"sigmoid", one(logistic)},
      {"sign", one(sign)},
      {"signbit", one(signbit)},
      {"sin", one(sin)},
      {"sinh", one(sinh)},
      {"sqrt", one(sqrt)},
      {"square", one(square)},
      {"tan", one(tan)},
      {"tanh", one(tanh)},
      {"trunc", one(trunc)},
  };
  return programs;
}

Tensor squared_difference(In a, In b) { return square(subtract(a, b)); }

const Programs& functions_of_two() {
  static const Programs programs{
      {"add", two(add)},
      {"and", two(bitwise_and)},
      {"atan2", two(atan2)},
      {"copysign", two(copysign)},
      {"div", two(divide)},
      {"floor_divide", two(floor_divide)},
      {"fmod", two(fmod)},
      {"hypot", two(hypot)},
      {"logaddexp", two(logaddexp)},
      {"max", two(maximum)},
      {"maximum", two(maximum)},
      {"min", two(minimum)},
      {"minimum", two(minimum)},
      {"mod", two(remainder)},
      {"mul", two(multiply)},
      {"nextafter", two(nextafter)},
      {"next_after", two(nextafter)},
      {"or", two(bitwise_or)},
      {"polygamma", two(polygamma)},
      {"pow", two(pow)},
      {"rem", two(fmod)},
      {"remainder", two(remainder)},
      {"squared_difference", two(squared_difference)},
      {"sub", two(subtract)},
      {"xor", two(bitwise_xor)},
      {"zeta", two(zeta)},
  };
  return programs;
}

// Reads `[3,1] * [1,4]`.
std::optional<Program> by_operator(std::string_view what) {
  for (auto [sign, op] : {std::pair(" + ", two(add)), std::pair(" - ", two(subtract)),
                          std::pair(" * ", two(multiply)), std::pair(" / ", two(divide)),
                          std::pair(" ** ", two(pow))})
    if (mentions(what, sign)) return op;
  return std::nullopt;
}

// NOLINTNEXTLINE(readability-function-size): a table
const Programs& programs_by_id() {
  static const Programs programs{
      {"where", single([](Inputs x) { return where(x[0] > 0, x[1], x[2]); })},
      {"select", single([](Inputs x) { return where(x[0], x[1], x[2]); })},
      {"int_div_rem",
       [](Inputs x) {
         return Tensors{truncated_divide(x[0], x[1]), fmod(x[0], x[1]), floor_divide(x[0], x[1]),
                        remainder(x[0], x[1])};
       }},
      {"int_shifts",
       [](Inputs x) {
         return Tensors{bitwise_left_shift(x[0], x[1]), bitwise_right_shift(x[0], x[1]),
                        shift_right_logical(x[0], x[1]), popcnt(x[0]), count_leading_zeros(x[0])};
       }},
      {"int_overflow",
       [](Inputs x) {
         return Tensors{x[0] + x[1], x[0] * x[1]};
       }},
      {"convert_bool",
       [](Inputs x) {
         return Tensors{astype(x[0], DType::bool_), astype(x[0] > 0, DType::f32),
                        astype(x[0] > 0, DType::i32)};
       }},
      {"stop_gradient", single([](Inputs x) { return x[0] * stop_gradient(x[0]); })},
  };
  return programs;
}

// Reads `and or xor not`: one result for each name.
std::optional<Program> by_names(std::string_view what, const Json& test) {
  std::string words(what);
  for (char& letter : words)
    if (letter == ',') letter = ' ';
  std::istringstream in(words);
  std::vector<Program> parts;
  for (std::string word; in >> word;) {
    std::optional<Program> part = find_program(functions_of_two(), word);
    if (!part) part = find_program(functions_of_one(), word);
    if (part) parts.push_back(*part);
  }
  if (parts.empty() || parts.size() != test.at("outputs").size()) return std::nullopt;
  return [parts](Inputs x) {
    Tensors results;
    for (const Program& part : parts) results.push_back(part(x)[0]);
    return results;
  };
}

Tensors all_comparisons(Inputs x) {
  return {equal(x[0], x[1]),      not_equal(x[0], x[1]), less(x[0], x[1]),
          less_equal(x[0], x[1]), greater(x[0], x[1]),   greater_equal(x[0], x[1])};
}

// Reads `f32_bf16_f32`: a sequence of dtypes; nullopt if a part is not a dtype.
std::optional<std::vector<DType>> dtypes_in(const std::string& id) {
  std::istringstream in(id);
  std::vector<DType> dtypes;
  for (std::string part; std::getline(in, part, '_');) {
    if (part.empty() || part == "to") continue;
    Result<DType> dtype = parse_dtype(part);
    if (!dtype.ok()) return std::nullopt;
    dtypes.push_back(dtype.value());
  }
  return dtypes;
}

std::optional<Program> conversion(const std::string& id, const Json& test) {
  std::optional<std::vector<DType>> dtypes = dtypes_in(id.substr(7));
  if (dtypes && dtypes->size() > 2)
    return single([by = *dtypes](Inputs x) {
      Tensor y = x[0];
      for (DType dtype : by) y = astype(y, dtype);
      return y;
    });
  std::vector<DType> results;
  for (std::size_t i = 0; i < test.at("outputs").size(); ++i)
    results.push_back(result_dtype(test, i));
  return [results](Inputs x) {
    Tensors y;
    for (std::size_t i = 0; i < results.size(); ++i)
      y.push_back(astype(x[i < x.size() ? i : 0], results[i]));
    return y;
  };
}

}  // namespace

std::optional<Program> element_wise_program(const Json& test) {
  const std::string id = test.at("id"), what = test.at("what");
  if (auto found = find_program(programs_by_id(), id)) return found;
  if (id == "clamp" && test.at("inputs").size() == 3)
    return single([](Inputs x) { return clip(x[1], x[0], x[2]); });
  if (id.starts_with("ew_integer_pow")) {
    std::int64_t power = integer_behind(id, "pow", 2);
    if (mentions(id, "neg") || mentions(id, "minus")) power = -power;
    return single([power](Inputs x) { return pow(x[0], power); });
  }
  if (id.starts_with("ew_")) return find_program(functions_of_one(), id.substr(3));
  if (id.starts_with("bin_broadcast")) return by_operator(what);
  if (id.starts_with("bin_")) return find_program(functions_of_two(), id.substr(4));
  if (id.starts_with("compare")) return all_comparisons;
  if (id.starts_with("int_")) return by_names(what, test);
  if (id.starts_with("convert_")) return conversion(id, test);
  if (id.starts_with("bitcast"))
    return single([to = result_dtype(test)](Inputs x) { return bitcast_convert(x[0], to); });
  return std::nullopt;
}

}  // namespace meshard::conformance
