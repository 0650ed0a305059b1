// The collectives of a compiled module: their axes, what they are for, and the reshards among them.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/base/result.h"
#include "meshard/explain/collectives/collective.h"
#include "meshard/explain/collectives/origin.h"
#include "meshard/explain/program_facts.h"
#include "meshard/explain/report.h"
#include "meshard/graph/graph.h"
#include "meshard/hlo/executions.h"
#include "meshard/hlo/module.h"
#include "meshard/mesh/mesh.h"
#include "meshard/stablehlo/module_reader.h"
#include "meshard/topology/topology.h"

namespace meshard {

/// (source, target) pairs of mesh positions.
using PositionPairs = std::span<const std::pair<std::int64_t, std::int64_t>>;

/// The axes that a collective runs over, with the meaning that the members of a Collective have.
struct InstructionAxes {
  std::optional<AxisList> axes;
  std::int64_t group_size = 0;
  std::vector<AxisShift> shifts = {};
};

/// Finds the mesh axes of an instruction's device groups, in any form of groups. A compiled module
/// numbers devices by their positions in the program's mesh. Programs have one replica; the meaning
/// of the numbers then follows HLO's rules: with a channel and global ids, or in an all-to-all,
/// devices; with a channel only, replicas with all devices of each; without a channel, replicas
/// (xla/service/collective_ops_utils.h, GetCollectiveOpGroupMode).
/// @error data loss or unimplemented if the groups cannot be parsed.
Result<InstructionAxes> axes_of_instruction(const HloInstruction& instruction, const Mesh& mesh);

/// The whole axes along which source and target differ in at least one pair, none if a number is
/// not a valid position, and how far the data moves. The shifts are given for each axis separately
/// if that explains the pairs, else for all the axes flattened. Pairs of a device with itself
/// count.
InstructionAxes axes_of_permutation(const Mesh& mesh, PositionPairs pairs);

/// Value type: the mesh positions of each slice. For a program over several slices, a TPU compiler
/// produces the program of one slice, which is the same for all: it numbers the slice's devices 0
/// to n-1, in mesh order, and reaches other slices by sends and receives (libtpu 0.0.51).
class SliceNumbering {
 public:
  using Groups = std::vector<std::vector<std::int64_t>>;

  /// None unless the module's device count equals that of each of several slices.
  static std::optional<SliceNumbering> of(const HloModule& module, const Mesh& mesh,
                                          const Topology& topology);

  /// Converts groups of a slice's device numbers to groups of mesh positions, for all slices. If
  /// there are no groups, all devices of a slice form one.
  /// @error out of range: a number that does not exist in the slice
  Result<Groups> positions(Groups groups) const;
  /// The same for the pairs of a permutation.
  Result<std::vector<std::pair<std::int64_t, std::int64_t>>> positions(
      const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs) const;
  /// The groups of devices with the same number in different slices.
  Groups across() const;

 private:
  explicit SliceNumbering(Groups slices) : slices_(std::move(slices)) {}
  Result<std::int64_t> position(std::size_t slice, std::int64_t number) const;
  Groups slices_;
};

/// All collective instructions reachable when the module runs, in text order. Each is listed once;
/// Collective::executions is the number of executions. An asynchronous collective counts once, at
/// its start, whether a start instruction or inside an async-start. Where a compiler spreads one
/// collective over several fusions, each of its instructions is listed and the first has the bytes.
///
/// @param mesh the mesh whose positions the module's device numbers are; none: no axes are found.
/// @param graph the program that the module was compiled from; null for a module from elsewhere,
/// whose own op names and lines are then used.
/// @param slices for a module compiled for one of several slices: how it numbers devices.
/// @param names of a module from elsewhere: which of its ops are collectives. Without, only the
/// names of the instructions tell.
/// @error data loss if computations are cyclic or groups cannot be parsed
Result<std::vector<Collective>> find_collectives(
    const Executions& executions, const std::optional<Mesh>& mesh, const Graph* graph,
    const std::optional<SliceNumbering>& slices = std::nullopt,
    const stablehlo::ModuleOpNames& names = {});

/// Names in the program, one for each argument and result; empty if unnamed.
struct BoundaryNames {
  std::vector<std::string> arguments, results;
};

/// The collectives with their purposes, and for those that name only an argument, with the op that
/// uses the result as their origin. The purpose follows from the data flow of the compiled module:
///
/// - A gather or exchange of a value that is only moved, converted, cut or joined since it was
///   an argument is of that argument. It is a weight if the program also has a new value for it.
/// - A reduction in the backward pass whose result reaches a result of the program through
///   operations on single elements is the sum of the gradient of the argument that the result
///   replaces: the argument with the same shard and the longest common end of the names, or the
///   one whose memory the result reuses, among those that the model itself reads, which the
///   optimizer's state is not.
/// - A gather of the optimizer's result is of the update of that argument.
/// - Everything else between layers is activations. The purpose is unknown if none of this is
///   certain.
///
/// The phase comes from `phases`, and the layer from the names of the ops: of the collective itself
/// or else of the ops that use its result.
/// @pre the collectives were found in this module
std::vector<Collective> with_purposes(const Executions& executions, const BoundaryNames& names,
                                      const ProgramPhases& phases,
                                      std::vector<Collective> collectives);

/// One reshard for each collective that gathers, exchanges or permutes a value, in order. Excludes
/// steps of windowed einsums, transfers between slices, and collective ops of the program.
///
/// The shardings before and after come from the module after propagation: the collective names its
/// consumer op, and the operand of that op whose shards match the collective is used. A gather of a
/// whole value that is sliced right afterward is a full rematerialization.
/// @param compiled the module that the collectives were found in
/// @param propagated the module after sharding propagation; null: shardings are omitted
std::vector<Reshard> find_reshards(const HloModule& compiled,
                                   const std::vector<Collective>& collectives,
                                   const HloModule* propagated, const ProgramFacts& facts);

/// The full rematerializations that XLA's partitioner warns about in a log. The warning is
/// `Involuntary full rematerialization. The compiler was not able to go from sharding A to B
/// without doing a full rematerialization of the tensor for HLO operation: ...`
/// (xla/service/spmd/spmd_partitioner.cc).
std::vector<Reshard> rematerializations_in_log(std::string_view log);

/// The collectives with the values that they move:
/// - Collective::tensor: of a reshard, the value's full type. Otherwise what the collective's first
///   place names in the graph: an argument, or an op with its result type; for a module from
///   elsewhere, the intermediate with the place's name. Empty if none of these is known.
/// - The shardings of the reshard that names the collective. Its purpose is then a reshard, unless
///   a weight or a gradient is moved.
std::vector<Collective> with_moves(std::vector<Collective> collectives,
                                   const std::vector<Reshard>& reshards,
                                   const std::vector<ValuePlacement>& intermediates,
                                   const Graph* graph);

/// The values produced by named instructions, each name once. Values that the user marked come
/// first, then the others, largest first. For a recorded program, values are graph nodes named by
/// op, with the source line; otherwise they have the module's op names.
/// @param propagated the module after sharding propagation
std::vector<ValuePlacement> find_intermediates(const HloModule& propagated,
                                               const ProgramFacts& facts);

/// The tensor type of an instruction's result; none for tuples and unknown element types.
std::optional<TensorType> tensor_type_of(const HloShape& shape);

}  // namespace meshard
