// Tested in meshard/partitioned/rewrite_test.cc.
#include "meshard/partitioned/internal/read_collective.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "meshard/pjrt/executable.h"

namespace meshard::internal {
namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

// Those that an opcode names, which may end in `-start` or `-done`.
constexpr CollectiveCallKind kNamedKinds[] = {
    CollectiveCallKind::kAllReduce,     CollectiveCallKind::kAllGather,
    CollectiveCallKind::kReduceScatter, CollectiveCallKind::kAllToAll,
    CollectiveCallKind::kPermute,       CollectiveCallKind::kBroadcast};

struct Reader {
  const HloInstruction& instruction;
  const HloModule& module;
  const Placement& placement;

  template <class... Parts>
  Error error(ErrorCode code, const Parts&... parts) const {
    return Error(code, cat("[partition] ", describe(instruction, placement), ": ", parts...));
  }

  // False if the collective is among replicas, of which there is one.
  bool crosses_partitions() const { return instruction.channel_id > 0; }

  // A group list whose expansion would be larger than the mesh is damaged.
  Result<void> check_group_count() const {
    const std::optional<IotaGroups>& groups = instruction.groups.iota;
    if (groups && groups->group_size > 0 &&
        groups->count > placement.partitions / groups->group_size)
      return error(ErrorCode::kDataLoss, "its groups have more than ", placement.partitions,
                   " partitions");
    return {};
  }

  // The groups of positions.
  Result<Groups> positions(CollectiveCallKind kind) const {
    MESHARD_RETURN_IF_ERROR(check_group_count());
    MESHARD_ASSIGN_OR_RETURN(Groups groups, instruction.groups.expand());
    bool counts_replicas =
        !instruction.use_global_device_ids &&
        (kind == CollectiveCallKind::kAllReduce || kind == CollectiveCallKind::kAllGather ||
         kind == CollectiveCallKind::kReduceScatter);
    // Groups of replicas, each in all of its partitions: the only replica is in one group.
    if (counts_replicas && !groups.empty() && groups != Groups{{0}})
      return error(ErrorCode::kUnimplemented, "its groups are of replicas");
    if (groups.empty() || counts_replicas) {
      std::vector<std::int64_t> all(static_cast<std::size_t>(placement.partitions));
      std::iota(all.begin(), all.end(), 0);
      return Groups{all};
    }
    return groups;
  }

  Result<void> check(std::int64_t position) const {
    if (position < 0 || position >= placement.partitions)
      return error(ErrorCode::kDataLoss, "there is no partition ", position);
    return {};
  }

  Result<void> read_groups(FoundCollective& to) const {
    MESHARD_ASSIGN_OR_RETURN(Groups groups, positions(to.kind));
    std::vector<bool> seen(static_cast<std::size_t>(placement.partitions));
    for (const auto& group : groups) {
      for (std::int64_t position : group) {
        MESHARD_RETURN_IF_ERROR(check(position));
        to.ranks.push_back(placement.rank(position));
        if (seen[static_cast<std::size_t>(position)])
          return error(ErrorCode::kDataLoss, "partition ", position, " is in two groups");
        seen[static_cast<std::size_t>(position)] = true;
      }
      to.sizes.push_back(static_cast<std::int32_t>(group.size()));
    }
    bool all = std::ranges::find(seen, false) == seen.end();
    if (!all && to.kind != CollectiveCallKind::kBroadcast)
      return error(ErrorCode::kDataLoss, "some partitions are in no group");
    if (std::ranges::adjacent_find(to.sizes, std::not_equal_to<>()) == to.sizes.end())
      to.sizes.resize(1);
    return {};
  }

  Result<void> read_pairs(FoundCollective& to) const {
    auto count = static_cast<std::size_t>(placement.partitions);
    std::vector<bool> receives(count);
    std::vector<std::size_t> sent(count);
    std::vector<std::vector<std::int32_t>> rounds;  // in each, a partition is a source once
    for (const auto& [source, target] : instruction.source_target_pairs) {
      for (std::int64_t position : {source, target}) MESHARD_RETURN_IF_ERROR(check(position));
      if (receives[static_cast<std::size_t>(target)])
        return error(ErrorCode::kUnimplemented, "partition ", target, " has two sources");
      receives[static_cast<std::size_t>(target)] = true;
      std::size_t round = sent[static_cast<std::size_t>(source)]++;
      if (round == rounds.size()) rounds.emplace_back();
      rounds[round].insert(rounds[round].end(), {placement.rank(source), placement.rank(target)});
    }
    for (const std::vector<std::int32_t>& round : rounds) {
      to.ranks.insert(to.ranks.end(), round.begin(), round.end());
      to.sizes.push_back(static_cast<std::int32_t>(round.size() / 2));
    }
    return {};
  }

  Result<void> read_dimension(FoundCollective& to) const {
    bool has_dimension = to.kind == CollectiveCallKind::kAllGather ||
                         to.kind == CollectiveCallKind::kReduceScatter ||
                         to.kind == CollectiveCallKind::kAllToAll;
    if (!has_dimension) return {};
    if (to.kind == CollectiveCallKind::kAllToAll && instruction.dimensions.empty()) {
      to.kind = CollectiveCallKind::kAllToAllOfTuple;
      return {};
    }
    if (instruction.dimensions.size() != 1 || instruction.dimensions[0] < 0 ||
        instruction.dimensions[0] > std::numeric_limits<std::int32_t>::max())
      return error(ErrorCode::kDataLoss, "it has no dimension");
    to.dimension = static_cast<std::int32_t>(instruction.dimensions[0]);
    return {};
  }

  Result<void> read_reduction(FoundCollective& to) const {
    if (to.kind != CollectiveCallKind::kAllReduce && to.kind != CollectiveCallKind::kReduceScatter)
      return {};
    const HloComputation* computation = instruction.called_computations.size() == 1
                                            ? module.find(instruction.called_computations[0])
                                            : nullptr;
    if (computation == nullptr) return error(ErrorCode::kDataLoss, "it has no reduction");
    std::optional<Reduction> reduction = reduction_of(*computation);
    if (!reduction)
      return error(ErrorCode::kUnimplemented, "its reduction ", computation->name,
                   " is none of add, multiply, minimum, maximum, and, or, xor; reduce with one of "
                   "these between processes");
    to.reduction = *reduction;
    return {};
  }

  // Converting small floats to f32 and back is how they are added anyway.
  static const HloInstruction* through_conversion(const HloComputation& computation,
                                                  const HloInstruction* value) {
    if (value == nullptr || value->opcode != "convert" || value->operands.size() != 1) return value;
    const HloInstruction* source = computation.find(value->operands[0]);
    if (source == nullptr) return nullptr;
    auto is_float = [](const HloInstruction& each) {
      return each.shape.element == pjrt::ElementType::kF16 ||
             each.shape.element == pjrt::ElementType::kBf16 ||
             each.shape.element == pjrt::ElementType::kF32;
    };
    return is_float(*value) && is_float(*source) ? source : nullptr;
  }

  static std::optional<Reduction> reduction_of(const HloComputation& computation) {
    constexpr std::pair<std::string_view, Reduction> kReductions[] = {
        {"add", Reduction::kSum},     {"multiply", Reduction::kProduct},
        {"minimum", Reduction::kMin}, {"maximum", Reduction::kMax},
        {"and", Reduction::kAnd},     {"or", Reduction::kOr},
        {"xor", Reduction::kXor}};
    const HloInstruction* root =
        through_conversion(computation, computation.find(computation.root));
    if (root == nullptr || root->operands.size() != 2) return std::nullopt;
    const HloInstruction* operands[2];
    for (std::size_t i = 0; i < 2; ++i)
      operands[i] = through_conversion(computation, computation.find(root->operands[i]));
    for (const HloInstruction* operand : operands)
      if (operand == nullptr || operand->opcode != "parameter") return std::nullopt;
    if (operands[0]->parameter_number == operands[1]->parameter_number) return std::nullopt;
    for (const auto& [opcode, reduction] : kReductions)
      if (root->opcode == opcode) return for_type(reduction, operands[0]->shape.element);
    return std::nullopt;
  }

  // The arithmetic of pred is logic.
  static Reduction for_type(Reduction reduction, pjrt::ElementType element) {
    if (element != pjrt::ElementType::kPred) return reduction;
    if (reduction == Reduction::kSum || reduction == Reduction::kMax) return Reduction::kOr;
    if (reduction == Reduction::kProduct || reduction == Reduction::kMin) return Reduction::kAnd;
    return reduction;
  }

  Result<FoundCollective> read(CollectiveCallKind kind, CollectivePart part) const {
    FoundCollective to{.kind = kind, .part = part, .where = describe(instruction, placement)};
    MESHARD_RETURN_IF_ERROR(read_dimension(to));
    MESHARD_RETURN_IF_ERROR(read_reduction(to));
    if (kind == CollectiveCallKind::kPermute) {
      MESHARD_RETURN_IF_ERROR(read_pairs(to));
    } else {
      MESHARD_RETURN_IF_ERROR(read_groups(to));
    }
    return to;
  }
};

std::string_view file_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

// The partitioner removes these; where one remains, it has not run.
bool is_before_partitioning(const HloInstruction& instruction) {
  constexpr std::string_view kTargets[] = {"Sharding", "SPMDFullToShardShape",
                                           "SPMDShardToFullShape", "xla.sdy.GlobalToLocalShape",
                                           "xla.sdy.LocalToGlobalShape"};
  return instruction.opcode == "custom-call" &&
         std::ranges::find(kTargets, instruction.custom_call_target) != std::end(kTargets);
}

struct Key {
  Reduction reduction;
  pjrt::ElementType element;
  std::vector<std::int32_t> ranks, sizes;
  friend bool operator<(const Key& a, const Key& b) {
    return std::tie(a.reduction, a.element, a.ranks, a.sizes) <
           std::tie(b.reduction, b.element, b.ranks, b.sizes);
  }
};

// The element type of all parts; kInvalid if they differ.
pjrt::ElementType only_element(const HloShape& shape) {
  if (!shape.is_tuple) return shape.element;
  pjrt::ElementType element = pjrt::ElementType::kInvalid;
  for (std::size_t i = 0; i < shape.tuple.size(); ++i) {
    if (i > 0 && shape.tuple[i].element != element) return pjrt::ElementType::kInvalid;
    element = shape.tuple[i].element;
  }
  return element;
}

bool can_combine(const EditedInstruction& instruction, const FoundCollective* found) {
  return found != nullptr && found->kind == CollectiveCallKind::kAllReduce &&
         found->part == CollectivePart::kWhole && instruction.original != nullptr &&
         only_element(instruction.original->shape) != pjrt::ElementType::kInvalid &&
         instruction.original->shape.byte_size() <= kMostCombinedBytes;
}

// How many combinable all-reduces each instruction needs one after the other.
struct Level {
  std::size_t level = 0;
  bool combinable = false;
};

std::vector<Level> levels_of(const EditedComputation& computation,
                             const CollectiveOf& collective_of) {
  std::vector<Level> levels(computation.instructions.size());
  std::unordered_map<std::int64_t, std::size_t> after;  // by id
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const EditedInstruction& each = computation.instructions[i];
    for (std::int64_t id : each.operands) levels[i].level = std::max(levels[i].level, after[id]);
    for (std::int64_t id : each.control_predecessors)
      levels[i].level = std::max(levels[i].level, after[id]);
    levels[i].combinable = can_combine(each, collective_of(each));
    after[each.id] = levels[i].level + (levels[i].combinable ? 1 : 0);
  }
  return levels;
}

std::int64_t bytes_of(const EditedComputation& computation, std::size_t index) {
  return computation.instructions[index].original->shape.byte_size();
}

// All-reduces of one level, each with those that it can be combined with, in the order of the
// first of them.
std::vector<std::vector<std::size_t>> buckets_of(const EditedComputation& computation,
                                                 const std::vector<std::size_t>& all_reduces,
                                                 const CollectiveOf& collective_of) {
  std::vector<std::vector<std::size_t>> buckets;
  std::map<Key, std::pair<std::size_t, std::int64_t>> open;  // index of the bucket, its bytes
  for (std::size_t index : all_reduces) {
    const EditedInstruction& each = computation.instructions[index];
    const FoundCollective& found = *collective_of(each);
    Key key{found.reduction, only_element(each.original->shape), found.ranks, found.sizes};
    std::int64_t bytes = bytes_of(computation, index);
    auto [at, is_new] = open.try_emplace(std::move(key), buckets.size(), 0);
    if (!is_new && at->second.second + bytes > kMostBytesOfCall) {
      at->second = {buckets.size(), 0};
      is_new = true;
    }
    if (is_new) buckets.emplace_back();
    buckets[at->second.first].push_back(index);
    at->second.second += bytes;
  }
  return buckets;
}

}  // namespace

std::string describe(const HloInstruction& instruction, const Placement& placement) {
  const HloMetadata& metadata = instruction.metadata;
  std::string text =
      cat(instruction.opcode, " ", metadata.op_name.empty() ? instruction.name : metadata.op_name);
  if (placement.source_of && !metadata.op_name.empty())
    if (std::string source = placement.source_of(metadata.op_name); !source.empty())
      return cat(text, " (", source, ")");
  if (!metadata.source_file.empty())
    append(text, " (", file_name(metadata.source_file), ":", metadata.source_line, ")");
  return text;
}

Result<std::optional<FoundCollective>> find_collective(const HloInstruction& instruction,
                                                       const HloModule& module,
                                                       const Placement& placement) {
  Reader reader{instruction, module, placement};
  std::string_view opcode = instruction.opcode;
  using Found = std::optional<FoundCollective>;
  if (opcode == "partition-id") {
    FoundCollective id{.kind = CollectiveCallKind::kPosition,
                       .where = describe(instruction, placement)};
    id.ranks.assign(placement.ranks.begin(), placement.ranks.end());
    return Found(std::move(id));
  }
  for (CollectiveCallKind kind : kNamedKinds) {
    const std::string_view name = to_string(kind);
    if (!opcode.starts_with(name)) continue;
    std::string_view end = opcode.substr(name.size());
    if (end == "-done") return Found(FoundCollective{.kind = kind, .part = CollectivePart::kDone});
    if (end != "" && end != "-start") continue;
    if (!reader.crosses_partitions()) return Found();
    MESHARD_ASSIGN_OR_RETURN(
        FoundCollective found,
        reader.read(kind, end.empty() ? CollectivePart::kWhole : CollectivePart::kStart));
    return Found(std::move(found));
  }
  if (opcode == "custom-call" && instruction.custom_call_target == kCollectiveTarget)
    return reader.error(ErrorCode::kInvalidArgument, "the module was rewritten before");
  if (is_before_partitioning(instruction))
    return reader.error(ErrorCode::kUnimplemented, "the partitioner has left ",
                        instruction.custom_call_target);
  bool communicates = pjrt::is_collective_opcode(opcode) || instruction.channel_id > 0;
  if (communicates)
    return reader.error(ErrorCode::kUnimplemented,
                        "this communication between devices is not supported between processes");
  return Found();
}

std::vector<std::vector<std::size_t>> combined_order(const EditedComputation& computation,
                                                     const CollectiveOf& collective_of) {
  std::vector<Level> levels = levels_of(computation, collective_of);
  std::size_t count = 0;
  for (const Level& level : levels) count = std::max(count, level.level + 1);
  std::vector<std::vector<std::size_t>> others(count), all_reduces(count);
  for (std::size_t i = 0; i < levels.size(); ++i)
    (levels[i].combinable ? all_reduces : others)[levels[i].level].push_back(i);

  std::vector<std::vector<std::size_t>> order, unchanged;
  bool combines = false;
  for (std::size_t level = 0; level < count; ++level) {
    for (std::size_t index : others[level]) order.push_back({index});
    for (auto& bucket : buckets_of(computation, all_reduces[level], collective_of)) {
      combines |= bucket.size() > 1;
      order.push_back(std::move(bucket));
    }
  }
  if (combines) return order;
  for (std::size_t i = 0; i < levels.size(); ++i) unchanged.push_back({i});
  return unchanged;
}

}  // namespace meshard::internal
