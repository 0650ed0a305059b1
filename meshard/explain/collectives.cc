#include "meshard/explain/collectives.h"

#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/explain/collective_axes.h"
#include "meshard/explain/origin.h"

namespace meshard {
namespace {

using pjrt::HloComputation;
using pjrt::HloInstruction;
using pjrt::HloModule;
using pjrt::HloShape;

constexpr int kMostDepth = 256;  // of calls
constexpr std::size_t kMostCollectives = 1 << 20;

std::optional<CollectiveKind> kind_of_opcode(std::string_view opcode) {
  static constexpr std::pair<std::string_view, CollectiveKind> kKinds[] = {
      {"all-reduce", CollectiveKind::kAllReduce},
      {"all-reduce-start", CollectiveKind::kAllReduce},
      {"all-gather", CollectiveKind::kAllGather},
      {"all-gather-start", CollectiveKind::kAllGather},
      {"reduce-scatter", CollectiveKind::kReduceScatter},
      {"all-to-all", CollectiveKind::kAllToAll},
      {"ragged-all-to-all", CollectiveKind::kRaggedAllToAll},
      {"collective-permute", CollectiveKind::kCollectivePermute},
      {"collective-permute-start", CollectiveKind::kCollectivePermute},
      {"collective-broadcast", CollectiveKind::kCollectiveBroadcast},
      {"send", CollectiveKind::kSend},
      {"recv", CollectiveKind::kReceive},
  };
  for (const auto& [name, kind] : kKinds)
    if (name == opcode) return kind;
  return std::nullopt;
}

bool is_permutation(CollectiveKind kind) {
  return kind == CollectiveKind::kCollectivePermute || kind == CollectiveKind::kSend ||
         kind == CollectiveKind::kReceive;
}

// What of the shape is the result. A start's shape also holds its operands and, for a permutation,
// a receive or a send, its context: (operand, result, ...).
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
  // Its further operands are the buffer to write to, sizes and offsets; a send's is a token.
  bool first_only = kind == CollectiveKind::kRaggedAllToAll || kind == CollectiveKind::kSend;
  std::int64_t sum = 0;
  for (std::int64_t id : instruction.operands) {
    if (const HloInstruction* operand = index.find(id)) sum += operand->shape.byte_size();
    if (first_only) break;
  }
  return sum;
}

// Where a computation is called from.
struct Context {
  int loop_depth = 0;
  bool conditional = false;
  EnclosingInstruction caller;
};

class Search {
 public:
  Search(const HloModule& module, const std::optional<Mesh>& mesh, const Graph* graph)
      : module_(module), mesh_(mesh), origins_(graph) {
    for (const HloComputation& each : module.computations) by_id_.emplace(each.id, &each);
  }

  Result<std::vector<Collective>> run() {
    Result<bool> sound = check_calls(module_.entry_id, 0);
    if (!sound.ok()) return sound.error();
    MESHARD_RETURN_IF_ERROR(walk(module_.entry_id, {}));
    return std::move(found_);
  }

 private:
  enum class State { kUnseen, kOpen, kEmpty, kHolds };

  static Error circle() {
    return Error(ErrorCode::kDataLoss,
                 "[explain] computations of the module call one another in a circle or too deep");
  }

  // Whether the computation or one that it calls holds a collective. Most are bodies of fusions and
  // reductions, which need not be looked at again.
  Result<bool> check_calls(std::int64_t id, int depth) {
    auto computation = by_id_.find(id);
    if (computation == by_id_.end()) return false;
    State& state = state_[id];  // kUnseen if new; elements of the map stay where they are
    if (state == State::kOpen || depth > kMostDepth) return circle();
    if (state != State::kUnseen) return state == State::kHolds;
    state = State::kOpen;
    bool holds = false;
    for (const HloInstruction& each : computation->second->instructions) {
      if (kind_of_opcode(each.opcode)) holds = true;
      for (std::int64_t called : each.called_computations) {
        MESHARD_ASSIGN_OR_RETURN(bool inner, check_calls(called, depth + 1));
        holds = holds || inner;
      }
    }
    state = holds ? State::kHolds : State::kEmpty;
    return holds;
  }

  Result<void> walk(std::int64_t id, Context context) {
    auto state = state_.find(id);
    if (state == state_.end() || state->second != State::kHolds) return {};
    const InstructionIndex& index = index_of(id);
    for (const HloInstruction& each : index.computation().instructions) {
      if (auto kind = kind_of_opcode(each.opcode)) {
        if (found_.size() == kMostCollectives)
          return Error(ErrorCode::kDataLoss,
                       cat("[explain] the module has more than ", kMostCollectives,
                           " collectives, counting each call"));
        MESHARD_RETURN_IF_ERROR(add(index, each, *kind, context));
      }
      // The body belongs to the start; its update and its end name it again.
      if (each.opcode == "async-update" || each.opcode == "async-done") continue;
      Context inner{.loop_depth = context.loop_depth + (each.opcode == "while" ? 1 : 0),
                    .conditional = context.conditional || each.opcode == "conditional",
                    .caller = {&index, &each}};
      for (std::int64_t called : each.called_computations)
        MESHARD_RETURN_IF_ERROR(walk(called, inner));
    }
    return {};
  }

  const InstructionIndex& index_of(std::int64_t id) {
    auto& index = indices_[id];
    if (!index) index = std::make_unique<InstructionIndex>(*by_id_.at(id));
    return *index;
  }

  Result<void> add(const InstructionIndex& index, const HloInstruction& instruction,
                   CollectiveKind kind, const Context& context) {
    Collective one{.kind = kind,
                   .instruction = instruction.name,
                   .bytes_in = operand_bytes(index, instruction, kind),
                   .bytes_out = result_bytes(instruction, kind),
                   .channel = instruction.channel_id,
                   .loop_depth = context.loop_depth,
                   .conditional = context.conditional};
    if (mesh_ && is_permutation(kind)) {
      if (!instruction.source_target_pairs.empty()) {
        PermutationAxes moved = axes_of_permutation(*mesh_, instruction.source_target_pairs);
        one.axes = std::move(moved.axes);
        one.shifts = std::move(moved.shifts);
      }
    } else if (mesh_) {
      Result<GroupAxes> groups = axes_of_instruction(instruction, *mesh_);
      if (!groups.ok()) return groups.error().with_note(cat("of ", instruction.name));
      one.axes = std::move(groups->axes);
      one.group_size = groups->group_size;
    }
    one.origin = origins_.find(index, instruction, kind, context.caller);
    one.cause = origins_.cause(one.origin, kind);
    found_.push_back(std::move(one));
    return {};
  }

  const HloModule& module_;
  const std::optional<Mesh>& mesh_;
  OriginFinder origins_;
  std::unordered_map<std::int64_t, const HloComputation*> by_id_;
  std::unordered_map<std::int64_t, State> state_;
  std::unordered_map<std::int64_t, std::unique_ptr<const InstructionIndex>> indices_;
  std::vector<Collective> found_;
};

}  // namespace

Result<std::vector<Collective>> find_collectives(const HloModule& module,
                                                 const std::optional<Mesh>& mesh,
                                                 const Graph* graph) {
  return Search(module, mesh, graph).run();
}

}  // namespace meshard
