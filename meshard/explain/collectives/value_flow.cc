#include "meshard/explain/collectives/value_flow.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "meshard/base/field_notes.h"
#include "meshard/hlo/executions.h"

namespace meshard {
namespace {

// An element of nested tuples: the indices from the outermost tuple inward. Empty: all of it.
using TuplePart = std::vector<std::int64_t>;

// Limits the search: a value that is used in more places says nothing about one of them.
constexpr std::size_t kMostSeen = 20000;

bool is_one_of(std::string_view opcode, std::initializer_list<std::string_view> opcodes) {
  return std::ranges::find(opcodes, opcode) != opcodes.end();
}

// Operations whose result has the data of operand 0 and no other.
bool moves_data(std::string_view opcode) {
  return is_one_of(opcode, {"bitcast", "copy", "convert", "reshape", "transpose", "slice",
                            "dynamic-slice", "bitcast-convert", "reduce-precision", "reverse",
                            "dynamic-reshape", "pad", "add-dependency", "domain"});
}

// Asynchronous copies and slices. An asynchronous call has the opcode async-start.
bool is_async_move(std::string_view opcode) {
  return is_one_of(opcode, {"copy-start", "copy-done", "slice-start", "slice-done"});
}

// Custom calls of TPU compilers, and of partitioners, that only pass a value on.
bool passes_value(const HloInstruction& one) {
  return one.opcode == "custom-call" &&
         is_one_of(one.custom_call_target,
                   {"ConcatBitcast", "ZeroCrop", "AsyncCollectiveStart", "AsyncCollectiveDone",
                    "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape",
                    "xla.sdy.FuncResultSharding", "MoveToDevice", "MoveToHost",
                    "annotate_device_placement"});
}

bool is_neutral(const HloInstruction& one) {
  return is_one_of(one.opcode, {"constant", "iota", "partition-id", "replica-id", "after-all"}) ||
         one.custom_call_target == "AllocateBuffer";
}

bool moves_between_devices(std::string_view opcode) {
  return is_one_of(opcode, {"all-gather", "all-gather-start", "all-gather-done", "all-to-all",
                            "ragged-all-to-all", "collective-permute", "collective-permute-start",
                            "collective-permute-done", "collective-broadcast"});
}

// Compilers join values as the maximum of values that are padded with the lowest number, or of
// parts of these.
bool joins_padded(const InstructionIndex& index, const HloInstruction& one) {
  if (one.opcode != "maximum" || one.operands.size() != 2) return false;
  for (std::size_t i = 0; i < 2; ++i) {
    const HloInstruction* from = index.operand(one, i);
    while (from && from->opcode != "pad" && moves_data(from->opcode))
      from = index.operand(*from, 0);
    if (!from || (from->opcode != "pad" && !joins_padded(index, *from))) return false;
  }
  return true;
}

bool reduces_between_devices(std::string_view opcode) {
  return is_one_of(opcode, {"all-reduce", "all-reduce-start", "reduce-scatter"});
}

bool acts_on_each_element(std::string_view opcode) {
  return lists_name(
      "add subtract multiply divide maximum minimum negate abs sqrt rsqrt cbrt power exponential "
      "log "
      "tanh sign floor ceil round-nearest-even round-nearest-afz remainder clamp select and or not "
      "xor exponential-minus-one log-plus-one logistic",
      opcode);
}

TuplePart without_first(const TuplePart& element, std::size_t count = 1) {
  if (element.size() <= count) return {};
  return TuplePart(element.begin() + static_cast<std::ptrdiff_t>(count), element.end());
}

TuplePart with_first(std::int64_t first, const TuplePart& rest) {
  TuplePart made = {first};
  made.insert(made.end(), rest.begin(), rest.end());
  return made;
}

const HloInstruction* parameter_of(const InstructionIndex& index, std::int64_t number) {
  for (const HloInstruction& each : index.computation().instructions)
    if (each.opcode == "parameter" && each.parameter_number == number) return &each;
  return nullptr;
}

template <class T>
void sort_unique(std::vector<T>& all) {
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
}

// A work list of values that were not seen before.
class WorkList {
 public:
  struct Item {
    LocatedInstruction at;
    TuplePart element;
  };
  void add(const InstructionIndex* index, const HloInstruction* one, TuplePart element) {
    if (!index || !one || seen_.size() >= kMostSeen) return;
    if (seen_.emplace(one, element).second) items_.push_back({{index, one}, std::move(element)});
  }
  bool next(Item& item) {
    if (at_ == items_.size()) return false;
    item = items_[at_++];
    return true;
  }
  bool is_full() const { return seen_.size() >= kMostSeen; }

 private:
  std::set<std::pair<const HloInstruction*, TuplePart>> seen_;
  std::vector<Item> items_;  // in order, so that nearer values come first
  std::size_t at_ = 0;
};

class SourceSearch {
 public:
  SourceSearch(const Executions& executions, bool through_collectives, bool through_arithmetic)
      : executions_(executions),
        through_collectives_(through_collectives),
        through_arithmetic_(through_arithmetic) {}

  ValueSources run(const InstructionIndex& index, const HloInstruction* from) {
    work_.add(&index, from, {});
    WorkList::Item item;
    while (work_.next(item)) step(*item.at.index, *item.at.instruction, item.element);
    if (work_.is_full()) found_.computed = true;
    sort_unique(found_.parameters);
    return std::move(found_);
  }

 private:
  void operand(const InstructionIndex& index, const HloInstruction& one, std::size_t number,
               TuplePart element) {
    const HloInstruction* from = index.operand(one, number);
    if (!from) found_.computed = true;
    work_.add(&index, from, std::move(element));
  }

  void root(const HloInstruction& call, std::size_t number, const TuplePart& element) {
    const InstructionIndex* inner = executions_.module().called(call, number);
    if (!inner || !inner->root()) found_.computed = true;
    if (inner) work_.add(inner, inner->root(), element);
  }

  void step(const InstructionIndex& index, const HloInstruction& one, const TuplePart& element) {
    std::string_view opcode = one.opcode;
    if (opcode == "parameter") return parameter(index, one, element);
    if (is_neutral(one)) return;
    if (moves_data(opcode)) return operand(index, one, 0, element);
    if (is_async_move(opcode)) return operand(index, one, 0, {});
    if (opcode == "optimization-barrier") return operand(index, one, 0, element);
    if (opcode == "get-tuple-element")
      return operand(index, one, 0, with_first(one.tuple_index, element));
    if (opcode == "tuple") {
      if (element.empty())
        for (std::size_t i = 0; i < one.operands.size(); ++i) operand(index, one, i, {});
      else
        operand(index, one, static_cast<std::size_t>(element[0]), without_first(element));
      return;
    }
    if (opcode == "while") {
      operand(index, one, 0, element);
      return root(one, 0, element);
    }
    if (opcode == "fusion" || opcode == "call") return root(one, 0, element);
    if (opcode == "conditional") {
      for (std::size_t i = 0; i < one.called_computations.size(); ++i) root(one, i, element);
      return;
    }
    if (opcode == "async-done" || opcode == "async-update")
      return operand(index, one, 0, opcode == "async-done" ? with_first(1, element) : element);
    if (opcode == "async-start") {  // (operands, results, context)
      if (element.empty() || element[0] == 1) return root(one, 0, without_first(element));
      if (element.size() > 1) return operand(index, one, static_cast<std::size_t>(element[1]), {});
      found_.computed = true;
      return;
    }
    bool joins = joins_padded(index, one);
    bool acts = through_arithmetic_ && acts_on_each_element(opcode);
    if (joins || acts || is_one_of(opcode, {"concatenate", "dynamic-update-slice", "select"})) {
      std::size_t begin = opcode == "select" ? 1 : 0;
      std::size_t end = acts || opcode == "concatenate" ? one.operands.size() : begin + 2;
      for (std::size_t i = begin; i < end; ++i) operand(index, one, i, {});
      return;
    }
    if (passes_value(one)) return custom_call(index, one);
    if (moves_between_devices(opcode) || reduces_between_devices(opcode) || opcode == "recv" ||
        opcode == "recv-done")
      return collective(index, one, element);
    if (opcode == "broadcast" && is_constant(index, one)) return;
    found_.computed = true;
  }

  // True for a constant that fills an array.
  bool is_constant(const InstructionIndex& index, const HloInstruction& one) const {
    const HloInstruction* from = index.operand(one, 0);
    if (!from) return false;
    ValueSources sources = SourceSearch(executions_, false, false).run(index, from);
    return !sources.computed && sources.parameters.empty() && sources.collectives.empty();
  }

  // The gathered value of a custom call that ends an asynchronous collective is its third operand;
  // those before are the buffers of earlier fragments.
  void custom_call(const InstructionIndex& index, const HloInstruction& one) {
    if (one.custom_call_target == "AsyncCollectiveDone" && one.operands.size() > 2)
      return operand(index, one, 2, {});
    if (one.custom_call_target == "ConcatBitcast") {
      for (std::size_t i = 0; i < one.operands.size(); ++i) operand(index, one, i, {});
      return;
    }
    operand(index, one, 0, {});
  }

  void collective(const InstructionIndex& index, const HloInstruction& one,
                  const TuplePart& element) {
    std::string_view opcode = one.opcode;
    if (opcode.ends_with("-done")) return operand(index, one, 0, {});
    found_.collectives.push_back({&index, &one});
    if (!through_collectives_) return;
    if (const HloInstruction* sent = opcode == "recv" ? moved_by_send(index, one) : nullptr)
      return operand(index, *sent, 0, {});
    if (!moves_between_devices(opcode)) {
      found_.computed = true;
      return;
    }
    // Several operands give a tuple of results.
    if (one.operands.size() > 1 && !element.empty() && opcode != "ragged-all-to-all")
      return operand(index, one, static_cast<std::size_t>(element.back()), {});
    operand(index, one, 0, {});
  }

  // The send of the same transfer between slices, if it only moves data.
  static const HloInstruction* moved_by_send(const InstructionIndex& index,
                                             const HloInstruction& received) {
    if (!received.frontend_attribute("_xla_megascale_reduce_operation").empty()) return nullptr;
    return transfer_partner(index, received);
  }

  void parameter(const InstructionIndex& index, const HloInstruction& one,
                 const TuplePart& element) {
    const ReachedComputation* reached = executions_.calls().find(index.computation().id);
    if (!reached) return;
    auto number = static_cast<std::size_t>(one.parameter_number);
    switch (reached->kind) {
      case CallKind::kEntry: found_.parameters.push_back(one.parameter_number); return;
      case CallKind::kLoopBody:  // carried from the previous iteration
        work_.add(&index, index.root(), element);
        return operand(*reached->caller, *reached->call, 0, element);
      case CallKind::kLoopCondition: return operand(*reached->caller, *reached->call, 0, element);
      case CallKind::kBranch: {
        const std::vector<std::int64_t>& branches = reached->call->called_computations;
        for (std::size_t i = 0; i < branches.size(); ++i)
          if (branches[i] == index.computation().id)
            operand(*reached->caller, *reached->call, i + 1, element);
        return;
      }
      case CallKind::kCall:
      case CallKind::kFusion: return operand(*reached->caller, *reached->call, number, element);
      case CallKind::kApplied: found_.computed = true; return;
    }
  }

  const Executions& executions_;
  const bool through_collectives_, through_arithmetic_;
  WorkList work_;
  ValueSources found_;
};

class UseSearch {
 public:
  UseSearch(const Executions& executions, bool through_arithmetic, bool through_collectives)
      : executions_(executions),
        through_arithmetic_(through_arithmetic),
        through_collectives_(through_collectives) {}

  ValueUses run(const InstructionIndex& index, const HloInstruction& from, TuplePart element) {
    work_.add(&index, &from, std::move(element));
    WorkList::Item item;
    while (work_.next(item)) {
      const InstructionIndex& in = *item.at.index;
      const HloInstruction& one = *item.at.instruction;
      for (const HloInstruction* user : in.users(one))
        for (std::size_t i = 0; i < user->operands.size(); ++i)
          if (user->operands[i] == one.id) use(in, *user, i, item.element);
      if (in.root() == &one) leave(in, item.element);
    }
    sort_unique(found_.results);
    return std::move(found_);
  }

 private:
  void enter(const HloInstruction& call, std::size_t number, std::int64_t parameter,
             const TuplePart& element) {
    const InstructionIndex* inner = executions_.module().called(call, number);
    if (inner) work_.add(inner, parameter_of(*inner, parameter), element);
  }

  // Operands that tell where data goes, and are no part of the result.
  static bool is_position(const HloInstruction& user, std::size_t number) {
    std::string_view opcode = user.opcode;
    if (moves_data(opcode) || opcode == "send") return number > 0;
    if (opcode == "dynamic-update-slice") return number > 1;
    return opcode == "conditional" && number == 0;
  }

  // True if the result has the operand's data, perhaps among others'.
  bool is_in_result(const InstructionIndex& index, const HloInstruction& user,
                    std::size_t number) const {
    std::string_view opcode = user.opcode;
    if (through_arithmetic_ &&
        (acts_on_each_element(opcode) || (opcode == "scatter" && number == 0)))
      return true;
    if (opcode == "select") return number > 0;
    return moves_data(opcode) || is_async_move(opcode) || passes_value(user) ||
           joins_padded(index, user) ||
           is_one_of(opcode, {"concatenate", "async-update", "dynamic-update-slice", "recv-done"});
  }

  void use(const InstructionIndex& index, const HloInstruction& user, std::size_t number,
           const TuplePart& element) {
    std::string_view opcode = user.opcode;
    auto position = static_cast<std::int64_t>(number);
    if (is_position(user, number)) return;
    if (is_in_result(index, user, number)) {
      work_.add(&index, &user, {});
    } else if (is_one_of(opcode, {"optimization-barrier", "async-done", "all-reduce-done"})) {
      work_.add(&index, &user, element);
    } else if (opcode == "get-tuple-element") {
      if (element.empty() || element[0] == user.tuple_index)
        work_.add(&index, &user, without_first(element));
    } else if (opcode == "tuple") {
      work_.add(&index, &user, with_first(position, element));
    } else if (opcode == "while") {
      enter(user, 0, 0, element);
    } else if (opcode == "fusion" || opcode == "call" || opcode == "async-start") {
      enter(user, 0, position, element);
    } else if (opcode == "conditional") {
      enter(user, number - 1, 0, element);
    } else if (moves_between_devices(opcode) || reduces_between_devices(opcode)) {
      collective(index, user, position);
    } else if (opcode == "send") {
      send(index, user);
    } else {
      found_.consumers.push_back({&index, &user});
    }
  }

  void collective(const InstructionIndex& index, const HloInstruction& user,
                  std::int64_t position) {
    if (user.opcode.ends_with("-done")) return work_.add(&index, &user, {});
    found_.collectives.push_back({&index, &user});
    if (!through_collectives_) return;
    bool tuple = user.operands.size() > 1 && user.opcode != "ragged-all-to-all";
    work_.add(&index, &user, tuple ? TuplePart{position} : TuplePart{});
  }

  // What is sent to other slices comes back from them, combined with what they sent.
  void send(const InstructionIndex& index, const HloInstruction& user) {
    found_.collectives.push_back({&index, &user});
    if (through_collectives_) work_.add(&index, transfer_partner(index, user), {});
  }

  // The value is the result of its computation.
  void leave(const InstructionIndex& index, const TuplePart& element) {
    const ReachedComputation* reached = executions_.calls().find(index.computation().id);
    if (!reached) return;
    switch (reached->kind) {
      case CallKind::kEntry:
        if (!element.empty())
          found_.results.push_back(element[0]);
        else if (!index.root()->shape.is_tuple)
          found_.results.push_back(0);
        return;
      case CallKind::kLoopBody:
        work_.add(&index, parameter_of(index, 0), element);
        return work_.add(reached->caller, reached->call, element);
      case CallKind::kCall:
        if (reached->call->opcode == "async-start") {
          for (const HloInstruction* user : reached->caller->users(*reached->call))
            if (user->opcode == "async-done") work_.add(reached->caller, user, element);
          return;
        }
        return work_.add(reached->caller, reached->call, element);
      case CallKind::kBranch:
      case CallKind::kFusion: return work_.add(reached->caller, reached->call, element);
      case CallKind::kLoopCondition:
      case CallKind::kApplied: return;
    }
  }

  const Executions& executions_;
  const bool through_arithmetic_, through_collectives_;
  WorkList work_;
  ValueUses found_;
};

}  // namespace

const HloInstruction* transfer_partner(const InstructionIndex& index, const HloInstruction& one) {
  constexpr std::string_view kRendezvous = "_xla_host_transfer_rendezvous";
  const std::string_view rendezvous = one.frontend_attribute(kRendezvous);
  const std::string_view partner = one.opcode == "send" ? "recv" : "send";
  if (rendezvous.empty()) return nullptr;
  for (const HloInstruction& other : index.computation().instructions)
    if (other.opcode == partner && other.frontend_attribute(kRendezvous) == rendezvous)
      return &other;
  return nullptr;
}

ValueSources ValueFlow::sources(const LocatedInstruction& at, std::size_t number,
                                bool through_collectives, bool through_arithmetic) const {
  const HloInstruction* from = at.index->operand(*at.instruction, number);
  if (!from) return {.parameters = {}, .collectives = {}, .computed = true};
  return SourceSearch(executions_, through_collectives, through_arithmetic).run(*at.index, from);
}

ValueUses ValueFlow::uses(const LocatedInstruction& at, std::int64_t element,
                          bool through_arithmetic, bool through_collectives) const {
  return UseSearch(executions_, through_arithmetic, through_collectives)
      .run(*at.index, *at.instruction, element < 0 ? TuplePart{} : TuplePart{element});
}

}  // namespace meshard
