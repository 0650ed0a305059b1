// Common parts of the collectives: their device groups, and how results vary.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/graph/annotation.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/tensor.h"
#include "meshard/mesh/axis_ref.h"
#include "meshard/ops/collectives.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/sharding/axis_moves.h"

namespace meshard::internal::collective {

/// The axes that a collective runs over, and the number of devices in each group.
struct Group {
  AxisList axes;
  std::int64_t size = 1;
};

/// The operand of a collective: a local value, or a free value, which becomes local to the function
/// that is being recorded.
/// @error invalid argument for a full value, and outside manual axes.
Tensor local_operand(const OpDef& op, const In& x);

/// @error invalid argument for axes that are not manual in `place`, or overlap.
void check_axes(std::string_view op, const ManualAxes& place, const AxisList& axes,
                SourceLocation where);

/// The group of a collective on `operand`.
/// @pre operand is local
/// @error as check_axes
Group group_of(const OpDef& op, const Tensor& operand, const CollectiveAxes& axes,
               SourceLocation where);

/// Widens the operand so that it varies over all of these axes.
Tensor varying_over(const Tensor& operand, const AxisList& axes);

/// The mesh axes that `axes` lists whole (whole_axes), or whole or in part (touched_axes).
/// @pre they are axes of the mesh
AxisSet whole_axes(const Mesh& mesh, const AxisList& axes);
AxisSet touched_axes(const Mesh& mesh, const AxisList& axes);
/// The entries of `axes` that are sub-axes.
AxisList parts_of_axes(const AxisList& axes);

/// The manual axes of a recorded collective's operand.
/// @error invalid argument if it is not a local value; the group size does not match that mesh; it
/// does not vary over the axes.
const ManualAxes& checked_place(const Node& node, const AxisList& axes, std::int64_t size);

/// The axes of a recorded collective; nullptr for any other node.
const AxisList* axes_of(const Node& node);

/// The annotations of a collective whose result varies like its operand. The attributes must have
/// the fields `axes` and `size`.
template <class T>
AnnotationsPtr annotate_same(const Node& node) {
  const T& attributes = node.attributes_as<T>();
  checked_place(node, attributes.axes, attributes.size);
  return node.operands()[0]->annotations();
}

/// The groups of a collective over `axes` of `mesh`, as logical devices of the program that
/// `numbering` numbers. Members are in the order of the axes.
std::vector<std::vector<std::int64_t>> logical_groups(const Mesh& mesh, const AxisList& axes,
                                                      const Mesh& numbering);
/// The text of a matrix: `dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>`. Without rows, it has two
/// columns.
std::string rows_text(const std::vector<std::vector<std::int64_t>>& rows);
/// Writes `replica_groups` and `channel_handle` of a collective over these axes.
stablehlo::OpWriter& write_groups(stablehlo::OpWriter& op, const OpEmission& out,
                                  const AxisList& axes);
/// Writes only `channel_handle`.
stablehlo::OpWriter& write_channel(stablehlo::OpWriter& op, const OpEmission& out);
/// Writes a collective over a group of one device, whose result equals its operand, and returns
/// true; returns false for larger groups. XLA's partitioner rejects such a collective if all manual
/// axes have size 1.
bool write_alone(std::int64_t group_size, OpEmission& out);
/// For OpDef::communicates: all devices along the axes exchange their values.
std::vector<AxisMove> moves_of(const Node& node);
/// The definition of a collective: `op`, and what all of them have in common. Every dimension must
/// be replicated.
constexpr OpDef define(OpDef op) {
  op.operands = "x";
  op.sharding_rule = whole_rule;
  op.communicates = moves_of;
  op.traits.is_collective = true;
  return op;
}

}  // namespace meshard::internal::collective
