// How far two evaluations of an op, from equal operands, may be apart.
#pragma once
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/graph/node.h"

namespace meshard {

/// Up to this distance, in ULPs of the largest value, no sum is needed to explain a difference.
inline constexpr double kExactUlps = 16;

/// A value: what an op adds up.
struct OpSums {
  /// How many terms for an element of its results, at most: the length of a contraction or of a
  /// sum. 1 for an op that adds nothing. For an op with bodies, the sum over their ops, as often as
  /// they run (1024 times if that is unknown).
  std::int64_t terms = 1;
  /// Whether a term is a product of elements of all operands.
  bool is_product = false;
  bool has_bodies = false;
};

/// The OpSums::terms of a node.
std::int64_t summed_terms(const Node& node);

/// The largest absolute difference between two evaluations of an op, from equal operands, that the
/// order of its sums explains; 0 for an op that adds nothing. `operands` and `result` are the
/// values of one evaluation, `devices` the number of devices that add partial sums.
///
/// A sum of n terms of size t (their root mean square) in any order has an error of about
/// eps sqrt(n) s, where s is the size of the partial sums (Higham, Accuracy and Stability of
/// Numerical Algorithms, 4.2; the rounding errors are independent). s is between that of a random
/// walk, M = |result| + 2 sqrt(n) t, and that of terms of one sign, n t: the geometric mean of both
/// is used. Sums of 16-bit and 8-bit floats are accumulated in f32 on each device, and rounded to
/// the type once per device: eps sqrt(devices) M is added. The bound is four times the sum.
double explained_by_rounding(const OpSums& sums, std::span<const HostArray> operands,
                             const HostArray& result, std::int64_t devices);
/// The same for a node.
double explained_by_rounding(const Node& node, std::span<const HostArray> operands,
                             const HostArray& result, std::int64_t devices);

/// The numbers of an array; for a complex one, the real and imaginary parts of its elements.
std::vector<double> float64_values(const HostArray& array);

/// The spacing of the dtype's numbers at the largest finite magnitude of `values`.
double spacing_at_largest(std::span<const double> values, DType dtype);

}  // namespace meshard
