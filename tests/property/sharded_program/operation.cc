#include "tests/property/sharded_program/operation.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "meshard/base/cat.h"

namespace meshard::property {

const std::vector<const Operation*>& operations() {
  static const std::vector<const Operation*> all = [] {
    std::vector<const Operation*> list;
    for (std::span<const Operation> group :
         {element_wise_operations(), contraction_operations(), movement_operations(),
          placement_operations(), control_flow_operations(), collective_operations(),
          window_operations()})
      for (const Operation& operation : group) list.push_back(&operation);
    return list;
  }();
  return all;
}

bool Operation::has_bodies() const {
  std::string_view text = code;
  return text.find("F(") != text.npos || text.find("G(") != text.npos;
}

bool Operation::names_mesh() const {
  std::string_view text = code;
  return text.find("M,") != text.npos || text.find("M)") != text.npos ||
         text.find("(W,") != text.npos;
}

const Operation* find_operation(std::string_view name) {
  for (const Operation* operation : operations())
    if (operation->name == name) return operation;
  throw std::logic_error(cat("there is no operation ", name));
}

double epsilon(DType dtype) {
  switch (dtype) {
    case DType::f16: return std::ldexp(1, -10);
    case DType::bf16: return std::ldexp(1, -7);
    case DType::f32: return std::ldexp(1, -23);
    case DType::f64: return std::ldexp(1, -52);
    default: return 0;
  }
}

Bounds rounded(const TensorType& result, double size, double error, double roundings) {
  if (is_floating(result.dtype)) {
    double rounding = roundings * epsilon(result.dtype) * size;
    return {size + error + rounding, error + rounding};
  }
  int bits = result.dtype == DType::bool_ ? 1 : 8 * static_cast<int>(size_in_bytes(result.dtype));
  return {std::min(size, std::ldexp(1, bits)), 0};
}

Bounds moved(const Arguments& args, const TensorType&) {
  Bounds all;
  for (const Bounds& each : args.bounds) {
    all.size = std::max(all.size, each.size);
    all.error = std::max(all.error, each.error);
  }
  return all;
}

Bounds contracted(const Arguments& args, const TensorType& result, double count) {
  const Bounds &a = args.bounds[0], &b = args.bounds[1];
  return rounded(result, count * a.size * b.size, count * (a.error * b.size + b.error * a.size),
                 count + 4);
}

}  // namespace meshard::property
