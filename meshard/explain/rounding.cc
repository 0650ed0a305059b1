#include "meshard/explain/rounding.h"

#include <algorithm>
#include <cmath>

#include "meshard/base/saturating.h"
#include "meshard/graph/body.h"
#include "meshard/graph/op_def.h"
#include "meshard/ops/definition/op_table.h"

namespace meshard {
namespace {

// Ops whose results are sums of elements of their operands; products have a trait.
constexpr const OpDef* kSums[] = {&sum_op,
                                  &prod_op,
                                  &cumulative_sum_op,
                                  &cumulative_prod_op,
                                  &scatter_add_op,
                                  &scatter_multiply_op,
                                  &reduce_window_sum_op,
                                  &select_and_scatter_add_op,
                                  &fft_op,
                                  &cumulative_logsumexp_op,
                                  &cholesky_op,
                                  &triangular_solve_op,
                                  &qr_op,
                                  &eigh_op,
                                  &all_reduce_op,
                                  &reduce_scatter_op};

std::int64_t elements_of_operands(const Node& node) {
  std::int64_t elements = 0;
  for (const Value& operand : node.operands()) elements += operand.type().shape.size();
  return elements;
}

std::int64_t largest_dimension(const Node& node) {
  std::int64_t largest = 1;
  for (const Value& operand : node.operands())
    for (std::int64_t size : operand.type().shape) largest = std::max(largest, size);
  return largest;
}

// Of `ij,jk->ik`, the size of j: the square root of ij * jk / ik.
std::int64_t contraction_of(const Node& node) {
  double terms = 1 / std::max<double>(static_cast<double>(node.type().shape.size()), 1);
  for (const Value& operand : node.operands())
    terms *= static_cast<double>(operand.type().shape.size());
  return std::max<std::int64_t>(1, std::llround(std::sqrt(terms)));
}

std::int64_t terms_of_bodies(std::span<const Body> bodies) {
  constexpr std::int64_t kUnknownRuns = 1024;
  std::int64_t terms = 0;
  for (const Body& body : bodies)
    for (const Node* inner : body.graph().nodes())
      terms = saturating_add(terms, summed_terms(*inner));
  return std::max<std::int64_t>(1, saturating_multiply(terms, kUnknownRuns));
}

// The root mean square of the finite elements.
double size_of_elements(const HostArray& array) {
  if (!is_inexact(array.dtype())) return 0;
  double sum = 0;
  std::int64_t count = 0;
  for (double value : float64_values(array)) {
    if (!std::isfinite(value)) continue;
    sum += value * value;
    ++count;
  }
  return count > 0 ? std::sqrt(sum / static_cast<double>(count)) : 0;
}

double largest_of(const HostArray& array) {
  double largest = 0;
  for (double value : float64_values(array))
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  return largest;
}

// The size of one term.
double size_of_terms(bool is_product, std::span<const HostArray> operands) {
  double size = is_product ? 1 : 0;
  for (const HostArray& operand : operands)
    size =
        is_product ? size * size_of_elements(operand) : std::max(size, size_of_elements(operand));
  return size;
}

}  // namespace

std::int64_t summed_terms(const Node& node) {
  if (!bodies_of(node).empty()) return terms_of_bodies(bodies_of(node));
  if (node.op().traits.is_product) return contraction_of(node);
  if (std::ranges::find(kSums, &node.op()) == std::end(kSums)) return 1;
  std::int64_t each = std::max<std::int64_t>(node.type().shape.size(), 1);
  std::int64_t terms = elements_of_operands(node) / each;
  // Results as large as the operands: sums along a dimension.
  return terms > 2 ? terms : largest_dimension(node);
}

double explained_by_rounding(const OpSums& sums, std::span<const HostArray> operands,
                             const HostArray& result, std::int64_t devices) {
  const auto n = static_cast<double>(sums.terms);
  if (n <= 1 || !is_inexact(result.dtype())) return 0;
  const double epsilon = float_limits(real_dtype(result.dtype())).epsilon;
  const double narrow = float_limits(DType::f32).epsilon;
  const double accumulated = std::min(epsilon, narrow);
  const double largest = largest_of(result), term = size_of_terms(sums.is_product, operands);
  constexpr double kMargin = 4;
  if (sums.has_bodies)
    return kMargin * std::max(epsilon, accumulated * std::sqrt(n)) * (largest + term);
  const double walk = largest + 2 * std::sqrt(n) * term;
  double error = accumulated * std::sqrt(n) * std::sqrt(n * term * walk);
  if (epsilon > narrow) error += epsilon * std::sqrt(static_cast<double>(devices)) * walk;
  return kMargin * error;
}

double explained_by_rounding(const Node& node, std::span<const HostArray> operands,
                             const HostArray& result, std::int64_t devices) {
  return explained_by_rounding(
      {summed_terms(node), node.op().traits.is_product, !bodies_of(node).empty()}, operands, result,
      devices);
}

std::vector<double> float64_values(const HostArray& array) {
  if (!is_complex(array.dtype())) return array.astype(DType::f64).to_vector<double>();
  HostArray wide = array.astype(DType::c128);
  const auto* parts = reinterpret_cast<const double*>(wide.bytes());
  return {parts, parts + 2 * wide.size()};
}

double spacing_at_largest(std::span<const double> values, DType dtype) {
  FloatLimits limits = float_limits(dtype);
  double largest = limits.smallest_normal;
  for (double value : values)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  return std::ldexp(limits.epsilon, std::ilogb(largest));
}

}  // namespace meshard
