// How far rounding may bring two evaluations of one op apart.
#pragma once
#include <cstdint>
#include <span>

#include "meshard/array/host_array.h"
#include "meshard/graph/node.h"

namespace meshard {

/// How many terms an op adds up for an element of its results, at most: the length of a contraction
/// or of a sum. 1 for an op that adds nothing. For an op with bodies, the sum over their ops, as
/// often as they run (1024 times if that is unknown).
std::int64_t summed_terms(const Node& node);

/// The largest absolute difference between two evaluations of a node, from equal operands, that the
/// order of its sums explains; 0 for an op that adds nothing. `operands` and `result` are the
/// values of one evaluation, `devices` the number of devices that add partial sums.
///
/// A sum of n terms of size t (their root mean square) in any order has an error of about
/// eps sqrt(n) s, where s is the size of the partial sums (Higham, Accuracy and Stability of
/// Numerical Algorithms, 4.2; the rounding errors are independent). s is between that of a random
/// walk, M = |result| + 2 sqrt(n) t, and that of terms of one sign, n t: the geometric mean of both
/// is used. Sums of 16-bit and 8-bit floats are accumulated in f32 on each device, and rounded to
/// the type once per device: eps sqrt(devices) M is added. The bound is four times the sum.
double explained_by_rounding(const Node& node, std::span<const HostArray> operands,
                             const HostArray& result, std::int64_t devices);

}  // namespace meshard
