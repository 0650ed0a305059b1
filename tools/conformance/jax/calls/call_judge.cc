#include "tools/conformance/jax/calls/call_judge.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "meshard/array/dtype/dtype.h"
#include "meshard/base/cat.h"
#include "tools/conformance/difference.h"

namespace meshard::conformance {
namespace {

// The precision of a dtype: its epsilon, and a size that counts as zero.
struct Precision {
  double unit, tiny;
  double roundings;  // rounding errors that any algorithm may make
};

std::map<std::string, Precision>& precisions() {
  static std::map<std::string, Precision> all{
      {"f16", {0x1p-10, 0x1p-22, 4}},    {"bf16", {0x1p-7, 0x1p-120, 4}},
      {"f32", {0x1p-23, 0x1p-120, 16}},  {"c64", {0x1p-23, 0x1p-120, 16}},
      {"f64", {0x1p-52, 0x1p-1010, 32}}, {"c128", {0x1p-52, 0x1p-1010, 32}}};
  return all;
}

const Precision* precision_of(const std::string& dtype) {
  auto found = precisions().find(dtype);
  return found == precisions().end() ? nullptr : &found->second;
}

double number_in(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  return value == "inf" ? HUGE_VAL : -HUGE_VAL;
}

std::complex<double> element(const Json& value) {
  if (value.is_array()) return {number_in(value[0]), number_in(value[1])};
  return number_in(value);
}

bool part_is_close(double ours, double right, double allowed) {
  if (std::isnan(right)) return std::isnan(ours);
  if (std::isinf(right) || !std::isfinite(ours)) return ours == right;
  return std::abs(ours - right) <= allowed;
}

// The error bounds of a recorded result: relative, and absolute where intermediate values cancel.
struct Allowance {
  double relative, absolute;
};

bool is_close(const Json& ours, const Json& right, const Precision& precision, double slope,
              Allowance error) {
  std::complex<double> a = element(ours), b = element(right);
  auto finite = [](double part) { return std::isfinite(part) ? part : 0; };
  double size = std::hypot(finite(b.real()), finite(b.imag()));
  double allowed = precision.unit * (precision.roundings + 4 * error.relative) * (size + slope) +
                   4 * error.absolute + precision.tiny;
  // If the expected value is 0, the square of epsilon counts as 0.
  if (size == 0) allowed += precision.unit * precision.unit;
  return part_is_close(a.real(), b.real(), allowed) && part_is_close(a.imag(), b.imag(), allowed);
}

DType dtype_in(const Json& array) { return parse_dtype(array.at("d").get<std::string>()).value(); }

// The rule that allows the dtype of our result to differ from the recorded one.
std::optional<Rule> rule_of_dtypes(const Json& test, const Json& ours, const Json& recorded) {
  DType mine = dtype_in(ours), theirs = dtype_in(recorded);
  bool of_integers = false, of_64_bits = false, is_operand = false;
  for (const Json& operand : test.at("x")) {
    DType dtype = dtype_in(operand);
    of_integers |= is_integer(dtype);
    of_64_bits |= dtype == DType::f64 || dtype == DType::c128;
    is_operand |= dtype == mine;
  }
  if (is_integer(mine) && is_integer(theirs) &&
      is_unsigned_integer(mine) == is_unsigned_integer(theirs))
    return Rule::kIntegerWidth;
  if (mine == DType::f32 && theirs == DType::f64 && of_integers && !of_64_bits)
    return Rule::kIntegersBecomeF32;
  if ((mine == DType::f16 || mine == DType::bf16) && theirs == DType::f32 && is_operand)
    return Rule::kNarrowStaysNarrow;
  return std::nullopt;
}

std::uint64_t bits_of(const Json& integer) {
  return integer.is_number_unsigned() ? integer.get<std::uint64_t>()
                                      : static_cast<std::uint64_t>(integer.get<std::int64_t>());
}

// Integers of different widths must agree in the bits of the narrower one.
bool are_same_integers(const Json& ours, const Json& recorded, int bits) {
  std::uint64_t difference = bits_of(ours) - bits_of(recorded);
  return bits >= 64 ? difference == 0 : difference % (std::uint64_t{1} << bits) == 0;
}

// `near` is the recorded derivative on both sides, to a few digits.
bool is_limit(const Json& ours, const Json& near, const Precision& precision) {
  double a = number_in(ours), b = number_in(near);
  return std::abs(a - b) <= (precision.unit * precision.roundings + 1e-3) * std::abs(b) + 1e-4;
}

// `around` has the minimum and maximum of the true derivative next to a kink.
bool is_between(const Json& ours, const Json& around, const Precision& precision) {
  double a = number_in(ours), low = number_in(around[0]), high = number_in(around[1]);
  double slack = (precision.unit * precision.roundings + 1e-3) * std::max(-low, high) + 1e-4;
  return low - slack <= a && a <= high + slack;
}

// The position of a result in a case: number `index` of a part.
struct Place {
  const Json& test;
  std::string_view part;
  std::size_t index;

  // Whether the innermost wrapper is `grad`, and the outer ones do not change the kind of result.
  static bool is_gradient(const Json& in) {
    std::string wrap = in.at("wrap");
    if (wrap == "grad") return true;
    for (const char* keeps : {"vmap", "map", "cond", "checkpoint", "switch"})
      if (wrap == keeps) return in.contains("in") && is_gradient(in.at("in"));
    return false;
  }

  bool is_derivative() const {
    return part != "out" || (test.contains("in") && is_gradient(test.at("in")));
  }

  // The operand of a derivative, or the result that it is the derivative of; null for values.
  const Json* of() const {
    if (part == "jvp") {
      std::size_t inexact = 0;
      for (const Json& result : test.at("out"))
        if (precision_of(result.at("d").get<std::string>()) && inexact++ == index) return &result;
      return nullptr;
    }
    if (!is_derivative()) return nullptr;
    std::size_t inexact = 0;
    for (const Json& operand : test.at("x"))
      if (precision_of(operand.at("d").get<std::string>()) && inexact++ == index) return &operand;
    return nullptr;
  }

  // There is no derivative at a NaN, or of a NaN.
  bool is_of_nan(std::size_t element) const {
    const Json* number = of();
    return number && element < number->at("v").size() && number->at("v")[element] == "nan";
  }
};

// Products of infinities may have NaN in different parts, depending on the order of multiplication.
bool are_infinite_products(const std::string& op, const Json& ours, const Json& recorded) {
  if (!ours.is_array() || (op != "prod" && op != "cumulative_prod")) return false;
  auto has_no_value = [](const Json& value) {
    return !std::isfinite(number_in(value[0])) && !std::isfinite(number_in(value[1]));
  };
  return has_no_value(ours) && has_no_value(recorded);
}

bool is_finite(const Json& value) { return std::isfinite(std::abs(element(value))); }

// The first difference of two results; empty if there is none.
std::string result_difference(const Place& place, const Json& ours, const Json& recorded,
                              std::set<Rule>& rules) {
  if (ours.at("s") != recorded.at("s"))
    return cat("s: ours ", ours.at("s").dump(), ", recorded ", recorded.at("s").dump());
  if (ours.at("d") != recorded.at("d")) {
    std::optional<Rule> rule = rule_of_dtypes(place.test, ours, recorded);
    if (!rule) return cat("d: ours ", ours.at("d").dump(), ", recorded ", recorded.at("d").dump());
    rules.insert(*rule);
  }
  const Precision* precision = precision_of(ours.at("d").get<std::string>());
  int bits = 8 * static_cast<int>(
                     std::min(size_in_bytes(dtype_in(ours)), size_in_bytes(dtype_in(recorded))));
  const Json &mine = ours.at("v"), &theirs = recorded.at("v");
  Allowance error{recorded.value("e", 0.0), recorded.value("a", 0.0)};
  const Json none = Json::object(), others = recorded.value("o", none),
             limits = recorded.value("n", none), kinks = recorded.value("k", none);
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    if (!precision) {
      if (mine[i] == theirs[i]) continue;
      if (rules.contains(Rule::kIntegerWidth) && are_same_integers(mine[i], theirs[i], bits))
        continue;
      return cat("[", i, "]: ours ", mine[i].dump(), ", recorded ", theirs[i].dump());
    }
    double slope = recorded.contains("c") ? recorded.at("c")[i].get<double>() : 0;
    if (is_close(mine[i], theirs[i], *precision, slope, error)) continue;
    if (auto other = others.find(std::to_string(i)); other != others.end()) {
      // Two answers are valid for this element.
      if (is_close(mine[i], *other, *precision, slope, error)) {
        rules.insert(Rule::kRangeOnTheWay);
        continue;
      }
    }
    // Elsewhere in this result, intermediate values overflow or underflow in the reference too.
    if (!others.empty() && !is_finite(mine[i])) {
      rules.insert(Rule::kRangeOnTheWay);
      continue;
    }
    if (auto near = limits.find(std::to_string(i));
        near != limits.end() && !mine[i].is_array() && is_limit(mine[i], *near, *precision)) {
      rules.insert(Rule::kLimit);
      continue;
    }
    if (auto around = kinks.find(std::to_string(i));
        around != kinks.end() && is_between(mine[i], *around, *precision)) {
      rules.insert(Rule::kLimit);
      continue;
    }
    if (are_infinite_products(place.test.at("op"), mine[i], theirs[i])) {
      rules.insert(Rule::kComplexInfinity);
      continue;
    }
    bool is_pole = place.is_derivative() && !is_finite(mine[i]) && !is_finite(theirs[i]);
    if (is_pole || place.is_of_nan(i)) {
      rules.insert(Rule::kLimit);
      continue;
    }
    return cat("[", i, "]: ours ", mine[i].dump(), ", recorded ", theirs[i].dump());
  }
  return {};
}

// Whether a message is like `[cosh] takes floats, not c64`.
bool is_refusal_of_dtype(const std::string& message) {
  std::size_t takes = message.find("] takes "), but = message.find(", not ", takes);
  if (message[0] != '[' || takes == std::string::npos || but == std::string::npos) return false;
  std::string rest = message.substr(but + 6);
  return parse_dtype(rest.substr(0, rest.find_first_of(": ,"))).ok();
}

}  // namespace

bool set_roundings(const std::string& dtype, double roundings) {
  auto found = precisions().find(dtype);
  if (found == precisions().end() || !(roundings >= 0)) return false;
  found->second.roundings = roundings;
  return true;
}

Verdict judge_call_case(const Json& test, const Json& answer) {
  std::set<Rule> rules;
  for (const char* part : {"out", "vjp", "jvp", "hvp"}) {
    if (!test.contains(part)) continue;
    const Json &ours = answer.at(part), &recorded = test.at(part);
    if (ours.is_string()) {
      std::string refusal = ours.get<std::string>();
      if (!is_refusal_of_dtype(refusal)) return Verdict::failed(cat(part, ": refused: ", refusal));
      rules.insert(Rule::kDtypeRefused);
      continue;
    }
    if (ours.size() != recorded.size())
      return Verdict::failed(
          cat(part, ": ours ", ours.size(), " results, recorded ", recorded.size()));
    for (std::size_t i = 0; i < recorded.size(); ++i) {
      std::string different = result_difference({test, part, i}, ours[i], recorded[i], rules);
      if (!different.empty()) return Verdict::failed(cat(part, "[", i, "] ", different));
    }
  }
  return {Verdict::Kind::kPassed, {rules.begin(), rules.end()}, {}};
}

}  // namespace meshard::conformance
