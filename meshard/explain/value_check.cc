#include "meshard/explain/value_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "meshard/array/dtype/complex.h"
#include "meshard/base/saturating.h"
#include "meshard/lowering/module_boundary.h"
#include "meshard/runtime/shards.h"

namespace meshard {
namespace {

constexpr double kUnequal = std::numeric_limits<double>::infinity();

double distance(double got, double expected, bool is_float) {
  if (got == expected || (std::isnan(got) && std::isnan(expected))) return 0;
  bool measurable = is_float && std::isfinite(got) && std::isfinite(expected);
  return measurable ? std::abs(got - expected) : kUnequal;
}

// The distance of each number (float64_values); infinite for integers that differ.
std::vector<double> distances(const HostArray& got, const HostArray& expected) {
  std::vector<double> found;
  if (got.same_bits(expected)) return found;
  if (expected.dtype() == DType::i64 || expected.dtype() == DType::u64) {
    for (std::int64_t i = 0; i < got.size(); ++i)
      found.push_back(
          std::memcmp(got.bytes() + 8 * i, expected.bytes() + 8 * i, 8) == 0 ? 0 : kUnequal);
    return found;
  }
  const bool is_float = is_inexact(expected.dtype());
  found = float64_values(got);
  std::vector<double> wanted = float64_values(expected);
  for (std::size_t i = 0; i < found.size(); ++i) found[i] = distance(found[i], wanted[i], is_float);
  return found;
}

Dimensions index_in(std::int64_t element, const Box& box) {
  Shape shape = box_shape(box);
  Dimensions index(static_cast<std::size_t>(shape.rank()), 0);
  for (int d = shape.rank(); d-- > 0; element /= shape[d])
    index[static_cast<std::size_t>(d)] =
        box[static_cast<std::size_t>(d)].start + element % shape[d];
  return index;
}

double spacing_of(const HostArray& expected) {
  if (!is_inexact(expected.dtype())) return 1;
  return spacing_at_largest(float64_values(expected), real_dtype(expected.dtype()));
}

// The distance of a part of a value, which is in `box`.
ValueDistance farthest_part(const HostArray& got, const HostArray& expected, const Box& box,
                            int device, double spacing) {
  std::vector<double> found = distances(got, expected);
  auto most = std::ranges::max_element(found);
  if (most == found.end() || *most == 0) return {};
  auto at = static_cast<std::size_t>(most - found.begin());
  const std::size_t parts = is_complex(expected.dtype()) ? 2 : 1;
  return {*most / spacing, index_in(static_cast<std::int64_t>(at / parts), box), device,
          float64_values(got)[at], float64_values(expected)[at]};
}

bool is_part(const stablehlo::ModuleOp& op, std::span<const std::string_view> names) {
  return std::ranges::find(names, op.mnemonic) != names.end();
}

std::int64_t elements_of(const stablehlo::Module& module, int variable) {
  if (variable < 0) return 1;
  Result<TensorType> type = module_tensor_type(module.variable(variable).type);
  return type.ok() ? std::max<std::int64_t>(type->shape.size(), 1) : 1;
}

std::int64_t largest_dimension(const stablehlo::Module& module, const stablehlo::ModuleOp& op) {
  std::int64_t largest = 1;
  for (int operand : op.operands) {
    if (operand < 0) continue;
    Result<TensorType> type = module_tensor_type(module.variable(operand).type);
    if (!type.ok()) continue;
    for (std::int64_t size : type->shape) largest = std::max(largest, size);
  }
  return largest;
}

constexpr std::string_view kProducts[] = {"stablehlo.dot_general", "stablehlo.dot",
                                          "stablehlo.convolution", "stablehlo.dynamic_conv"};
constexpr std::string_view kSummingOps[] = {"stablehlo.reduce",
                                            "stablehlo.reduce_window",
                                            "stablehlo.scatter",
                                            "stablehlo.fft",
                                            "stablehlo.select_and_scatter",
                                            "stablehlo.cholesky",
                                            "stablehlo.triangular_solve",
                                            "stablehlo.custom_call",
                                            "stablehlo.all_reduce",
                                            "stablehlo.reduce_scatter",
                                            "stablehlo.composite"};
constexpr std::string_view kOnce[] = {"stablehlo.case", "stablehlo.if", "func.call", "func.func"};

std::int64_t terms_of(const stablehlo::Module& module, const stablehlo::ModuleOp& op, int depth);

std::int64_t terms_of_bodies(const stablehlo::Module& module, const stablehlo::ModuleOp& op,
                             int depth) {
  constexpr std::int64_t kUnknownRuns = 1024;
  constexpr int kDeepest = 30;
  if (depth > kDeepest) return kUnknownRuns;
  std::int64_t terms = 0;
  for (const stablehlo::ModuleRegion& region : op.regions)
    for (const stablehlo::ModuleOp& inner : region.ops)
      terms = saturating_add(terms, terms_of(module, inner, depth + 1));
  if (const stablehlo::ModuleFunction* callee =
          op.mnemonic == "func.call" ? module.function(op.symbol) : nullptr)
    if (callee->op) terms = saturating_add(terms, terms_of(module, *callee->op, depth + 1));
  return std::max<std::int64_t>(
      1, is_part(op, kOnce) ? terms : saturating_multiply(terms, kUnknownRuns));
}

std::int64_t terms_of(const stablehlo::Module& module, const stablehlo::ModuleOp& op, int depth) {
  std::int64_t each = op.results.empty() ? 1 : elements_of(module, op.results[0]);
  if (is_part(op, kProducts)) {
    double terms = 1 / static_cast<double>(each);
    for (int operand : op.operands) terms *= static_cast<double>(elements_of(module, operand));
    return std::max<std::int64_t>(1, std::llround(std::sqrt(terms)));
  }
  if (is_part(op, kSummingOps)) {
    std::int64_t elements = 0;
    for (int operand : op.operands)
      elements = saturating_add(elements, elements_of(module, operand));
    std::int64_t terms = elements / each;
    // Results as large as the operands: sums along a dimension.
    return terms > 2 ? terms : largest_dimension(module, op);
  }
  bool has_bodies =
      op.mnemonic == "func.call" || op.mnemonic == "stablehlo.while" || is_part(op, kOnce);
  return has_bodies ? terms_of_bodies(module, op, depth) : 1;
}

// The largest distance of each element among the perturbed values; for floating-point numbers, with
// a margin.
std::vector<double> changes_of(const HostArray& expected, const AllowedDistance& allowed) {
  constexpr double kMargin = 4;
  const std::int64_t parts = is_complex(expected.dtype()) ? 2 : 1;
  std::vector<double> changes(static_cast<std::size_t>(parts * expected.size()), 0);
  double largest = 0;
  for (const HostArray& each : allowed.perturbed) {
    std::vector<double> found = distances(each, expected);
    for (std::size_t i = 0; i < found.size(); ++i)
      changes[i] = std::max(changes[i], kMargin * found[i]);
  }
  if (!allowed.mixes_elements || !is_inexact(expected.dtype())) return changes;
  for (double change : changes)
    if (std::isfinite(change)) largest = std::max(largest, change);
  for (double& change : changes) change = std::max(change, largest);
  return changes;
}

}  // namespace

std::vector<HeldShard> different_shards(const Tensor& tensor, SourceLocation where) {
  std::vector<HeldShard> shards;
  for (const LocalShard& shard : local_shards(tensor, where)) {
    HostArray data = shard.data(where);
    bool is_known = std::ranges::any_of(shards, [&](const HeldShard& other) {
      return other.box == shard.box() && other.data.same_bits(data);
    });
    if (!is_known) shards.push_back({shard.device_id(), shard.box(), std::move(data)});
  }
  return shards;
}

ValueDistance farthest(std::span<const HeldShard> shards, const HostArray& expected) {
  ValueDistance worst;
  const double spacing = spacing_of(expected);
  for (const HeldShard& shard : shards) {
    ValueDistance found =
        farthest_part(shard.data, expected.slice(shard.box), shard.box, shard.device, spacing);
    if (found.ulps > worst.ulps) worst = std::move(found);
  }
  return worst;
}

ValueDistance farthest(const HostArray& got, const HostArray& expected) {
  return farthest_part(got, expected, whole_box(expected.shape()), -1, spacing_of(expected));
}

bool is_near(std::span<const HeldShard> shards, const HostArray& expected,
             const AllowedDistance& allowed) {
  const std::int64_t parts = is_complex(expected.dtype()) ? 2 : 1;
  // As an array, so that parts of it can be taken.
  Dimensions sizes(expected.shape().begin(), expected.shape().end());
  if (parts == 2) sizes.push_back(2);
  HostArray changes = HostArray::from_vector(changes_of(expected, allowed),
                                             Shape(std::span<const std::int64_t>(sizes)));
  for (const HeldShard& shard : shards) {
    std::vector<double> found = distances(shard.data, expected.slice(shard.box));
    Box box = shard.box;
    if (parts == 2) box.push_back({0, 2});
    HostArray here = changes.slice(box);
    std::span<const double> change = here.data<double>();
    for (std::size_t i = 0; i < found.size(); ++i)
      if (!(found[i] <= std::max(allowed.absolute, change[i]))) return false;
  }
  return true;
}

HostArray perturbed(const HostArray& array, std::uint64_t seed) {
  if (!is_inexact(array.dtype())) return array;
  const double epsilon = float_limits(real_dtype(array.dtype())).epsilon;
  const double direction = seed % 2 == 0 ? epsilon : -epsilon;
  std::mt19937_64 engine(seed / 2);
  std::vector<double> numbers = float64_values(array);
  for (double& number : numbers) number *= (engine() & 1) != 0 ? 1 + direction : 1 - direction;
  DType wide = is_complex(array.dtype()) ? DType::c128 : DType::f64;
  return HostArray::copy_of({wide, array.shape()}, numbers.data()).astype(array.dtype());
}

OpSums sums_of(const stablehlo::Module& module, const stablehlo::ModuleOp& op) {
  return {.terms = terms_of(module, op, 0),
          .is_product = is_part(op, kProducts),
          .has_bodies = op.mnemonic == "func.call" || op.mnemonic == "stablehlo.while" ||
                        op.mnemonic == "stablehlo.case" || op.mnemonic == "stablehlo.if"};
}

}  // namespace meshard
