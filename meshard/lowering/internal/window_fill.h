// The value with which an op fills what its windows cover beyond the edges of their operand.
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "meshard/graph/node.h"

namespace meshard {

/// A text that is equal for ops with the same fill value: a pad, the reduction of windows, a
/// convolution, a cumulative op. Empty for all other ops, and for operands that are not windowed.
std::string window_fill(const Node& node, std::size_t operand);
/// The type of the operand that windows cover: of a pad with negative edges, what these leave.
TensorType windowed_type(const Node& node);
/// The fill value of the padding at a program's boundary.
inline constexpr const char* kZeroFill = "0";

/// Assigns windowed operands to groups, so that operands with different fill values are never the
/// same value to XLA's partitioner.
///
/// Lowering puts as many optimization barriers before an operand as its group's number, so that not
/// even equal operations on equal values are merged (Quirk::kWindowFills).
class WindowFills {
 public:
  /// The number of the group, from 0.
  std::size_t group(const TensorType& operand, const std::string& fill);

 private:
  std::unordered_map<TensorType, std::vector<std::string>> fills_;  // by operand type
};

}  // namespace meshard
