// From an instruction of a compiled module back to the user's line.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "meshard/explain/collective.h"
#include "meshard/graph/graph.h"
#include "meshard/hlo/module_index.h"
#include "meshard/pjrt/hlo_module.h"

namespace meshard {

/// The node that an op_name names, as Graph::find takes it. Lowering locates op number 17 of the
/// graph as `n17`, op number 3 of its first body as `n17.0.3`; compilers put the names of enclosing
/// calls before it: `call.1/n17`, `jit_main/n17`. Empty: none.
std::string_view node_path_in_op_name(std::string_view op_name);
/// Its number in the graph; of an op in a body, that of the op around it.
std::optional<std::uint32_t> node_in_op_name(std::string_view op_name);

/// The names in an op_name, with what enclosing calls put before them. Compilers from PJRT API
/// 0.106 on join the names of instructions that they combine: `main/(n3:n4)` is main/n3 and
/// main/n4.
std::vector<std::string> names_in_op_name(std::string_view op_name);

/// The instruction whose body is being looked at (a loop, an async-start), where it stands.
struct EnclosingInstruction {
  const InstructionIndex* index = nullptr;
  const pjrt::HloInstruction* instruction = nullptr;  // null: none
};

/// Finds the ops that instructions come from.
class OriginFinder {
 public:
  /// With a graph, its numbers are looked up; without, the module's own names and lines are told.
  /// Keeps a handle on the graph.
  explicit OriginFinder(const Graph* graph);

  /// 1. The ops that the instruction names. A collective of several operands that the compiler
  ///    combined may name only its first op: the parts that were taken out of its result carry on
  ///    the others' names, else the operands' producers do.
  /// 2. If it names none, or only an argument: the nearest producer that names an op, else the
  ///    nearest user, else what `enclosing` names, else its neighbours, else the argument.
  CollectiveOrigin find(const InstructionIndex& index, const pjrt::HloInstruction& instruction,
                        CollectiveKind kind, const EnclosingInstruction& enclosing = {}) const;

  /// The op that the instruction itself names; none if it names none, or several.
  std::optional<OriginPlace> named(const pjrt::HloInstruction& instruction) const;

  /// Who wanted a collective of this origin. Known only with a graph. A resharding that names an op
  /// whose result is marked may serve the op or the mark: not known.
  /// Nor does a mark ask for a gather over axes that it splits its own value by: what comes after
  /// it needs that.
  CollectiveCause cause(const CollectiveOrigin& origin, CollectiveKind kind,
                        const std::optional<AxisList>& axes = std::nullopt) const;

 private:
  using Instructions = std::vector<const pjrt::HloInstruction*>;
  bool is_argument(const OriginPlace& place) const;
  std::optional<OriginPlace> named(const pjrt::HloMetadata& metadata,
                                   std::string_view op_name) const;
  bool splits_by(std::uint32_t number, const AxisList& axes) const;
  std::optional<OriginPlace> neighbour(const InstructionIndex& index,
                                       const pjrt::HloInstruction& of) const;
  Instructions nearest(const InstructionIndex& index, const pjrt::HloInstruction& from,
                       bool to_users) const;
  void add_merged(const InstructionIndex& index, const pjrt::HloInstruction& instruction,
                  CollectiveOrigin& origin) const;

  std::optional<Graph> graph_;
  std::vector<bool> marked_;  // by node number: a sharding mark uses the node
};

}  // namespace meshard
