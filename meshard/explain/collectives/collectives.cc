#include "meshard/explain/collectives/collectives.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "meshard/base/cat.h"
#include "meshard/base/saturating.h"
#include "meshard/hlo/executions.h"
#include "meshard/mesh/axes_index.h"
#include "meshard/sharding/replica_groups.h"

namespace meshard {
namespace {

// True for collectives that carry `use_global_device_ids`. For others, the groups contain partition
// numbers whenever there is a channel.
bool has_global_ids_flag(std::string_view opcode) {
  return opcode.starts_with("all-reduce") || opcode.starts_with("all-gather") ||
         opcode.starts_with("reduce-scatter");
}

std::int64_t size_of(const Mesh& mesh, const AxisList& axes) {
  std::int64_t size = 1;
  for (const AxisRef& axis : axes) size *= mesh.axis_size(axis);
  return size;
}

// True if the groups contain only the number 0.
bool names_one_replica(const ReplicaGroups& groups) {
  if (groups.iota) return groups.iota->count == 1 && groups.iota->group_size == 1;
  return !groups.given() || (groups.listed.size() == 1 && groups.listed[0].size() <= 1);
}

AxisList all_axes(const Mesh& mesh) { return remaining_axes(mesh, {}); }

// The shift from source to target along `axes`, if it is the same for every pair.
std::optional<AxisShift> common_shift(const Mesh& mesh, const AxisList& axes, PositionPairs pairs) {
  AxesIndex index(mesh, axes);
  std::int64_t n = index.size();
  std::optional<std::int64_t> common;
  bool wraps = false;
  for (const auto& [source, target] : pairs) {
    std::int64_t distance = index(target) - index(source);
    std::int64_t by = (distance % n + n) % n;
    if (common && *common != by) return std::nullopt;
    common = by;
  }
  if (!common) return std::nullopt;
  std::int64_t by = *common > n / 2 ? *common - n : *common;
  for (const auto& [source, target] : pairs)
    if (index(target) - index(source) != by) wraps = true;
  return AxisShift{.axes = axes, .by = by, .wraps = wraps};
}

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
    MESHARD_ASSIGN_OR_RETURN(InstructionAxes found, axes_of(instruction, kind));
    Collective one{.kind = kind,
                   .instruction = instruction.name,
                   .axes = std::move(found.axes),
                   .group_size = found.group_size,
                   .shifts = std::move(found.shifts),
                   .bytes_in = operand_bytes(index, instruction, kind),
                   .bytes_out = result_bytes(instruction, kind),
                   .channel = instruction.channel_id,
                   .loop_depth = runs.loop_depth,
                   .executions = runs.executions,
                   .executions_known = runs.known,
                   .conditional = runs.conditional};
    one.origin = origins_.find(index, instruction, kind, {reached.caller, reached.call});
    one.cause = has_graph_ ? origins_.cause(one.origin, kind, one.axes)
                           : OriginFinder::foreign_cause(instruction, one.origin,
                                                         calls_collectives_, names_);
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

  Result<InstructionAxes> axes_of(const HloInstruction& instruction, CollectiveKind kind) const {
    if (!mesh_) return InstructionAxes();
    if (slices_ && is_host_transfer_between_slices(instruction))
      return InstructionAxes{axes_of_groups(*mesh_, slices_->across())};
    if (is_permutation(kind)) {
      if (instruction.source_target_pairs.empty()) return InstructionAxes();
      if (!slices_) return axes_of_permutation(*mesh_, instruction.source_target_pairs);
      MESHARD_ASSIGN_OR_RETURN(auto pairs, slices_->positions(instruction.source_target_pairs));
      return axes_of_permutation(*mesh_, pairs);
    }
    if (!slices_) {
      Result<InstructionAxes> found = axes_of_instruction(instruction, *mesh_);
      return found.ok() ? found : found.error().with_note(cat("of ", instruction.name));
    }
    MESHARD_ASSIGN_OR_RETURN(SliceNumbering::Groups groups, instruction.groups.expand());
    std::erase_if(groups, [](const auto& group) { return group.empty(); });
    MESHARD_ASSIGN_OR_RETURN(groups, slices_->positions(std::move(groups)));
    InstructionAxes made{axes_of_groups(*mesh_, groups)};
    for (const auto& group : groups) made.group_size = std::max(made.group_size, std::ssize(group));
    return made;
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

Result<InstructionAxes> axes_of_instruction(const HloInstruction& instruction, const Mesh& mesh) {
  const ReplicaGroups& groups = instruction.groups;
  // Without a channel, groups contain replica numbers. Programs have one replica, so no data leaves
  // a device.
  if (instruction.channel_id == 0 && names_one_replica(groups))
    return InstructionAxes{AxisList(), 1};
  // Groups of replicas, each with all its partitions.
  if (has_global_ids_flag(instruction.opcode) && !instruction.use_global_device_ids)
    return InstructionAxes{all_axes(mesh), mesh.size()};
  std::optional<AxisList> axes;
  if (!groups.given()) axes = all_axes(mesh);
  if (groups.iota) axes = axes_of_groups(mesh, *groups.iota);
  if (axes) return InstructionAxes{axes, size_of(mesh, *axes)};
  if (groups.iota) {
    MESHARD_RETURN_IF_ERROR(groups.iota->validate());
    return InstructionAxes{std::nullopt, groups.iota->group_size};
  }
  MESHARD_ASSIGN_OR_RETURN(std::vector<std::vector<std::int64_t>> listed, groups.expand());
  // XLA may write a list with one empty group for "all devices".
  std::erase_if(listed, [](const auto& group) { return group.empty(); });
  axes = axes_of_groups(mesh, listed);
  if (axes) return InstructionAxes{axes, size_of(mesh, *axes)};
  std::size_t largest = 0;
  for (const auto& group : listed) largest = std::max(largest, group.size());
  return InstructionAxes{std::nullopt, static_cast<std::int64_t>(largest)};
}

InstructionAxes axes_of_permutation(const Mesh& mesh, PositionPairs pairs) {
  std::vector<AxesIndex> index;
  for (const MeshAxis& axis : mesh.axes()) index.emplace_back(mesh, AxisList{AxisRef(axis.name)});
  std::vector<bool> moves(mesh.rank(), false);
  for (const auto& [source, target] : pairs) {
    if (source < 0 || target < 0 || source >= mesh.size() || target >= mesh.size()) return {};
    for (std::size_t i = 0; i < index.size(); ++i)
      if (index[i](source) != index[i](target)) moves[i] = true;
  }
  AxisList axes;
  std::vector<AxisShift> shifts;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    if (!moves[i]) continue;
    axes.push_back(AxisRef(mesh.axes()[i].name));
    if (auto shift = common_shift(mesh, AxisList{axes.back()}, pairs))
      shifts.push_back(std::move(*shift));
  }
  if (shifts.size() != axes.size()) {
    shifts.clear();
    if (axes.size() > 1)
      if (auto shift = common_shift(mesh, axes, pairs)) shifts.push_back(std::move(*shift));
  }
  return {std::move(axes), 0, std::move(shifts)};
}

std::optional<SliceNumbering> SliceNumbering::of(const HloModule& module, const Mesh& mesh,
                                                 const Topology& topology) {
  std::unordered_map<std::int64_t, std::int64_t> slice_of;
  for (const DeviceAttributes& device : topology.devices())
    if (device.slice_index) slice_of.emplace(device.id, *device.slice_index);
  std::map<std::int64_t, std::vector<std::int64_t>> slices;
  for (std::int64_t position = 0; position < mesh.size(); ++position) {
    auto slice = slice_of.find(mesh.device_id(position));
    if (slice == slice_of.end()) return std::nullopt;
    slices[slice->second].push_back(position);
  }
  if (slices.size() < 2) return std::nullopt;
  Groups positions;
  for (auto& [slice, held] : slices) {
    if (held.size() != module.device_assignment.size()) return std::nullopt;
    positions.push_back(std::move(held));
  }
  return SliceNumbering(std::move(positions));
}

Result<std::int64_t> SliceNumbering::position(std::size_t slice, std::int64_t number) const {
  if (number < 0 || number >= std::ssize(slices_[slice]))
    return Error(ErrorCode::kOutOfRange,
                 cat("[explain] device ", number, " is out of range for a slice with ",
                     slices_[slice].size(), " devices"));
  return slices_[slice][static_cast<std::size_t>(number)];
}

Result<SliceNumbering::Groups> SliceNumbering::positions(Groups groups) const {
  if (groups.empty()) {
    groups.emplace_back(slices_[0].size());
    std::iota(groups[0].begin(), groups[0].end(), 0);
  }
  Groups all;
  for (std::size_t slice = 0; slice < slices_.size(); ++slice)
    for (const std::vector<std::int64_t>& group : groups) {
      all.emplace_back();
      for (std::int64_t number : group) {
        MESHARD_ASSIGN_OR_RETURN(std::int64_t held, position(slice, number));
        all.back().push_back(held);
      }
    }
  return all;
}

Result<std::vector<std::pair<std::int64_t, std::int64_t>>> SliceNumbering::positions(
    const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs) const {
  std::vector<std::pair<std::int64_t, std::int64_t>> all;
  for (std::size_t slice = 0; slice < slices_.size(); ++slice)
    for (const auto& pair : pairs) {
      MESHARD_ASSIGN_OR_RETURN(std::int64_t source, position(slice, pair.first));
      MESHARD_ASSIGN_OR_RETURN(std::int64_t target, position(slice, pair.second));
      all.emplace_back(source, target);
    }
  return all;
}

SliceNumbering::Groups SliceNumbering::across() const {
  Groups all(slices_[0].size());
  for (const std::vector<std::int64_t>& slice : slices_)
    for (std::size_t number = 0; number < slice.size(); ++number)
      all[number].push_back(slice[number]);
  return all;
}

Result<std::vector<Collective>> find_collectives(const Executions& executions,
                                                 const std::optional<Mesh>& mesh,
                                                 const Graph* graph,
                                                 const std::optional<SliceNumbering>& slices,
                                                 const stablehlo::ModuleOpNames& names) {
  return Search(executions, mesh, graph, slices, names).run();
}

}  // namespace meshard
