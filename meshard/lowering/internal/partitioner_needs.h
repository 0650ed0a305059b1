// What XLA's partitioner needs to handle an op correctly, because of its quirks.
#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "meshard/graph/annotation.h"
#include "meshard/graph/attributes.h"
#include "meshard/graph/node.h"
#include "meshard/mesh/mesh.h"
#include "meshard/quirks/quirks.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// The attributes of a node; null if it has none of this type.
template <class T>
const T* attributes_if(const Node& node) {
  bool has = node.attributes() && node.attributes()->type() == typeid(T);
  return has ? &node.attributes_as<T>() : nullptr;
}

/// The sharding that an operand needs so that XLA's partitioner handles the op. XLA computes the op
/// wrongly, or fails, if some dimensions are split: these are closed and the others open. Empty if
/// no dimension is restricted.
/// @param quirks which ops are restricted: Quirk::kUnevenScatters and the rows that follow it
std::optional<Sharding> whole_operand(const Node& node, std::size_t operand, const Mesh& mesh,
                                      QuirkSet quirks);
/// The same for the result.
std::optional<Sharding> whole_result(const Node& node, const Mesh& mesh, QuirkSet quirks);

/// True if `node` slices a pad, or pads one with negative edges, and keeps only what that pad
/// added (Quirk::kOnlyPadding). Lowering separates the two.
bool keeps_only_padding(const Node& node);

/// The constraint on an operand or result of `rank` dimensions of an op that is gathered over the
/// axes that are not manual (the rows with `gathered_in_regions`); none for other ops. Of a pad,
/// only the padded dimensions are gathered.
/// @param place the node's manual axes
std::optional<Sharding> gathered_in_region(const Node& node, int rank, const ManualAxes& place,
                                           QuirkSet quirks);

/// Whether all devices run all branches, or all turns, and select their own values
/// (Quirk::kDifferentBranches).
bool runs_on_all_devices(const Node& node, const ManualAxes& place, QuirkSet quirks);

// The value with which an op fills what its windows cover beyond the edges of their operand.

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
