// Tested in tools/meshard/check_run.py.
#include "tools/meshard/array_figures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "meshard/array/dtype/complex.h"
#include "meshard/base/cat.h"
#include "meshard/graph/from_host.h"

namespace meshard::tool {
namespace {

std::string number_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.7g", value);
  return text;
}

// The numbers of an array: of a complex one, the real and the imaginary part of each.
std::vector<double> numbers_of(const HostArray& array) {
  if (!is_complex(array.dtype())) return array.astype(DType::f64).to_vector<double>();
  HostArray wide = array.astype(DType::c128);
  const auto* parts = reinterpret_cast<const double*>(wide.bytes());
  return {parts, parts + 2 * wide.size()};
}

double default_tolerance(DType dtype) {
  if (!is_inexact(dtype)) return 0;
  switch (real_dtype(dtype)) {
    case DType::f64: return 1e-12;
    case DType::f32: return 1e-5;
    case DType::f16: return 1e-3;
    case DType::bf16: return 1e-2;
    default: return 0.1;  // 8 bits
  }
}

bool is_near(double got, double want, double tolerance) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want);
  if (got == want) return true;
  return std::abs(got - want) <= tolerance * (1 + std::abs(want)) && std::isfinite(want);
}

std::string index_text(const Shape& shape, std::int64_t at) {
  std::string text;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    text = cat(at % shape[d], text.empty() ? "" : ", ", text);
    at /= shape[d];
  }
  return cat("[", text, "]");
}

}  // namespace

std::string statistics_of(const HostArray& array) {
  std::vector<double> numbers = numbers_of(array);
  if (numbers.empty()) return "no elements";
  if (array.size() == 1)
    return numbers.size() == 1 ? number_text(numbers[0])
                               : cat(number_text(numbers[0]), " + ", number_text(numbers[1]), "i");
  double sum = 0, least = std::numeric_limits<double>::infinity(), most = -least;
  std::int64_t finite = 0;
  for (double each : numbers) {
    if (!std::isfinite(each)) continue;
    sum += each;
    least = std::min(least, each);
    most = std::max(most, each);
    ++finite;
  }
  std::int64_t others = std::ssize(numbers) - finite;
  std::string text = finite == 0 ? std::string("no finite elements")
                                 : cat("mean ", number_text(sum / static_cast<double>(finite)),
                                       ", min ", number_text(least), ", max ", number_text(most));
  return others == 0 ? text : cat(text, ", ", others, " not finite");
}

std::string difference_of(const HostArray& got, const HostArray& want,
                          const std::optional<double>& tolerance) {
  if (got.shape() != want.shape() || is_complex(got.dtype()) != is_complex(want.dtype()))
    return cat("it is ", got.type(), ", expected ", want.type());
  std::vector<double> ours = numbers_of(got), theirs = numbers_of(want);
  const double allowed = tolerance.value_or(default_tolerance(got.dtype()));
  std::size_t first = ours.size(), count = 0;
  double largest = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (is_near(ours[i], theirs[i], allowed)) continue;
    first = std::min(first, i);
    ++count;
    largest = std::max(largest, std::abs(ours[i] - theirs[i]));
  }
  if (count == 0) return "";
  std::size_t parts = is_complex(got.dtype()) ? 2 : 1;
  return cat("at ", index_text(got.shape(), static_cast<std::int64_t>(first / parts)), " it is ",
             number_text(ours[first]), ", expected ", number_text(theirs[first]), "; ", count,
             " of ", ours.size(), " numbers differ, by up to ", number_text(largest));
}

TensorType sent_type(const ImportedValue& argument) {
  return argument.type.value_or(TensorType{DType::u32, {2}});
}

HostArray random_array(const TensorType& type, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::size_t parts = is_complex(type.dtype) ? 2 : 1;
  std::vector<double> numbers(static_cast<std::size_t>(type.shape.size()) * parts);
  for (double& each : numbers) {
    double unit = static_cast<double>(engine() >> 11) * 0x1p-53;
    each = is_inexact(type.dtype)       ? 2 * unit - 1
           : type.dtype == DType::bool_ ? std::floor(2 * unit)
                                        : std::floor(8 * unit);
  }
  if (parts == 2)
    return HostArray::copy_of({DType::c128, type.shape}, numbers.data()).astype(type.dtype);
  return HostArray::copy_of({DType::f64, type.shape}, numbers.data()).astype(type.dtype);
}

std::vector<HostArray> results_for_random(const ImportedProgram& program) {
  std::vector<Tensor> inputs;
  for (const ImportedValue& argument : program.arguments()) {
    inputs.push_back(from_host(random_array(sent_type(argument), inputs.size()), {}));
  }
  std::vector<HostArray> results;
  for (const Tensor& result : program.flat(inputs, {})) results.push_back(result.to_host({}));
  return results;
}

std::string difference_of_results(const std::vector<HostArray>& got,
                                  const std::vector<HostArray>& want,
                                  const std::optional<double>& tolerance) {
  if (got.size() != want.size()) return cat(want.size(), " and ", got.size(), " results");
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i].type() != want[i].type())
      return cat("out", i, " is ", want[i].type(), " and ", got[i].type());
    std::string difference = difference_of(got[i], want[i], tolerance);
    if (!difference.empty()) return cat("out", i, ": ", difference);
  }
  return {};
}

HostArray storable(const HostArray& array) {
  bool is_narrow = array.dtype() == DType::bf16 || is_float8(array.dtype());
  return is_narrow ? array.astype(DType::f32) : array;
}

}  // namespace meshard::tool
