#include "meshard/explain/collectives/collectives.h"

#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/saturating.h"
#include "meshard/explain/collectives/collective_axes.h"
#include "meshard/explain/collectives/origin.h"
#include "meshard/sharding/replica_groups.h"

namespace meshard {
namespace {

std::optional<CollectiveKind> kind_of_opcode(std::string_view opcode) {
  constexpr std::string_view kStart = "-start";
  if (opcode.ends_with(kStart)) opcode.remove_suffix(kStart.size());
  for (const auto& [kind, name] : EnumNames<CollectiveKind>::kNames)
    if (name == opcode) return kind;
  return std::nullopt;
}

// Bytes of the result only. The shape of a start instruction also contains its operands and, for a
// permutation, receive or send, its context: (operand, result, ...).
std::int64_t result_bytes(const HloInstruction& instruction, CollectiveKind kind) {
  const HloShape& shape = instruction.shape;
  if (kind == CollectiveKind::kSend) return 0;
  if (kind == CollectiveKind::kReceive && shape.is_tuple && !shape.tuple.empty())
    return shape.tuple[0].byte_size();
  bool with_operands =
      instruction.opcode == "all-gather-start" || instruction.opcode == "collective-permute-start";
  if (with_operands && shape.is_tuple && shape.tuple.size() >= 2) return shape.tuple[1].byte_size();
  return shape.byte_size();
}

std::int64_t operand_bytes(const InstructionIndex& index, const HloInstruction& instruction,
                           CollectiveKind kind) {
  if (kind == CollectiveKind::kReceive) return 0;
  // The further operands are the output buffer, sizes and offsets; for a send, a token.
  bool first_only = kind == CollectiveKind::kRaggedAllToAll || kind == CollectiveKind::kSend;
  std::int64_t sum = 0;
  for (std::int64_t id : instruction.operands) {
    if (const HloInstruction* operand = index.find(id))
      sum = saturating_add(sum, operand->shape.byte_size());
    if (first_only) break;
  }
  return sum;
}

// The frontend attribute with which TPU compilers mark the instructions of a collective that is
// spread over several fusions.
bool is_in_chain(const HloInstruction& one) { return !one.frontend_attribute("chain_id").empty(); }

bool is_host_transfer_between_slices(const HloInstruction& one) {
  return one.frontend_attribute("_xla_host_transfer_handler_name").find("megascale") !=
         std::string_view::npos;
}

// True for a permutation that the partitioner generated for a matrix product: a step of a gather or
// scatter that overlaps with the product (xla/service/spmd/dot_handler.cc).
bool is_windowed_einsum(const HloInstruction& one, CollectiveKind kind,
                        const Collective& collective) {
  if (kind != CollectiveKind::kCollectivePermute) return false;
  if (one.name.find("windowed") != std::string::npos) return true;
  if (one.frontend_attribute("is_spmd_generated") != "true") return false;
  auto names_a_product = [](std::string_view op) {
    return names_op_with(&OpTraits::is_product, op);
  };
  bool of_product = names_a_product(one.metadata.op_name);
  for (const OriginPlace& place : collective.origin.places)
    of_product = of_product || names_a_product(place.op);
  return of_product && collective.shifts.size() <= 1;
}

// Whether the program itself calls a collective.
bool calls_collectives(const HloModule& module) {
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& each : computation.instructions)
      if (names_called_collective(each.metadata.op_name)) return true;
  return false;
}

class Search {
 public:
  Search(const Executions& executions, const std::optional<Mesh>& mesh, const Graph* graph,
         const std::optional<SliceNumbering>& slices, const stablehlo::ModuleOpNames& names)
      : executions_(executions),
        mesh_(mesh),
        slices_(slices),
        has_graph_(graph != nullptr),
        names_(names),
        calls_collectives_(names.has_collectives ||
                           calls_collectives(executions.module().module())),
        origins_(graph, &executions.module().module()) {}

  Result<std::vector<Collective>> run() {
    MESHARD_RETURN_IF_ERROR(walk(executions_.module().entry()));
    return std::move(found_);
  }

 private:
  // The recursion depth is bounded, because computing the executions checks it.
  Result<void> walk(const InstructionIndex& index) {
    if (!visited_.insert(index.computation().id).second) return {};
    for (const HloInstruction& each : index.computation().instructions) {
      if (auto kind = kind_of_opcode(each.opcode)) MESHARD_RETURN_IF_ERROR(add(index, each, *kind));
      for (std::int64_t called : each.called_computations)
        if (const InstructionIndex* inner = executions_.module().find(called))
          MESHARD_RETURN_IF_ERROR(walk(*inner));
    }
    return {};
  }

  Result<void> add(const InstructionIndex& index, const HloInstruction& instruction,
                   CollectiveKind kind) {
    const ComputationRuns& runs = *executions_.find(index.computation().id);
    const ReachedComputation& reached = *executions_.calls().find(index.computation().id);
    Collective one{.kind = kind,
                   .instruction = instruction.name,
                   .bytes_in = operand_bytes(index, instruction, kind),
                   .bytes_out = result_bytes(instruction, kind),
                   .channel = instruction.channel_id,
                   .loop_depth = runs.loop_depth,
                   .executions = runs.executions,
                   .executions_known = runs.known,
                   .conditional = runs.conditional};
    MESHARD_RETURN_IF_ERROR(add_axes(instruction, kind, one));
    one.origin = origins_.find(index, instruction, kind, {reached.caller, reached.call});
    one.cause = has_graph_ ? origins_.cause(one.origin, kind, one.axes)
                           : OriginFinder::foreign_cause(instruction, one.origin,
                                                         calls_collectives_, names_.collectives);
    if (runs.fused) one.form = CollectiveForm::kFused;
    if (is_windowed_einsum(instruction, kind, one)) one.form = CollectiveForm::kWindowedEinsum;
    if (is_host_transfer_between_slices(instruction)) one.form = CollectiveForm::kAcrossSlices;
    if (is_in_chain(instruction) &&
        !chains_.insert({reached_from(reached), instruction.channel_id}).second) {
      one.continues = true;
      one.bytes_in = one.bytes_out = 0;
    }
    found_.push_back(std::move(one));
    return {};
  }

  Result<void> add_axes(const HloInstruction& instruction, CollectiveKind kind, Collective& to) {
    if (!mesh_) return {};
    if (slices_) return add_axes_in_slice(instruction, kind, to);
    if (is_permutation(kind)) {
      if (instruction.source_target_pairs.empty()) return {};
      PermutationAxes moved = axes_of_permutation(*mesh_, instruction.source_target_pairs);
      to.axes = std::move(moved.axes);
      to.shifts = std::move(moved.shifts);
      return {};
    }
    Result<GroupAxes> groups = axes_of_instruction(instruction, *mesh_);
    if (!groups.ok()) return groups.error().with_note(cat("of ", instruction.name));
    to.axes = std::move(groups->axes);
    to.group_size = groups->group_size;
    return {};
  }

  Result<void> add_axes_in_slice(const HloInstruction& instruction, CollectiveKind kind,
                                 Collective& to) {
    if (is_host_transfer_between_slices(instruction)) {
      to.axes = axes_of_groups(*mesh_, slices_->across());
      return {};
    }
    if (is_permutation(kind)) {
      if (instruction.source_target_pairs.empty()) return {};
      MESHARD_ASSIGN_OR_RETURN(auto pairs, slices_->positions(instruction.source_target_pairs));
      PermutationAxes moved = axes_of_permutation(*mesh_, pairs);
      to.axes = std::move(moved.axes);
      to.shifts = std::move(moved.shifts);
      return {};
    }
    MESHARD_ASSIGN_OR_RETURN(SliceNumbering::Groups groups, instruction.groups.expand());
    std::erase_if(groups, [](const auto& group) { return group.empty(); });
    MESHARD_ASSIGN_OR_RETURN(groups, slices_->positions(std::move(groups)));
    to.axes = axes_of_groups(*mesh_, groups);
    for (const auto& group : groups)
      to.group_size = std::max(to.group_size, static_cast<std::int64_t>(group.size()));
    return {};
  }

  // The computation that contains the fusions of a chain.
  static std::int64_t reached_from(const ReachedComputation& reached) {
    return (reached.caller ? reached.caller : reached.index)->computation().id;
  }

  const Executions& executions_;
  const std::optional<Mesh>& mesh_;
  const std::optional<SliceNumbering>& slices_;
  const bool has_graph_;
  const stablehlo::ModuleOpNames& names_;
  const bool calls_collectives_;
  OriginFinder origins_;
  std::unordered_set<std::int64_t> visited_;
  std::set<std::pair<std::int64_t, std::int64_t>> chains_;  // (computation, channel)
  std::vector<Collective> found_;
};

}  // namespace

Result<std::vector<Collective>> find_collectives(const Executions& executions,
                                                 const std::optional<Mesh>& mesh,
                                                 const Graph* graph,
                                                 const std::optional<SliceNumbering>& slices,
                                                 const stablehlo::ModuleOpNames& names) {
  return Search(executions, mesh, graph, slices, names).run();
}

Result<std::vector<Collective>> find_collectives(const HloModule& module,
                                                 const std::optional<Mesh>& mesh,
                                                 const Graph* graph) {
  ModuleIndex index(module);
  MESHARD_ASSIGN_OR_RETURN(Executions executions, Executions::of(index));
  return find_collectives(executions, mesh, graph);
}

}  // namespace meshard
