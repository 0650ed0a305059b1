// Checks that one chain orders all collectives of a module; written independently of the rewriting.
#pragma once
#include <string>
#include <unordered_map>

#include "meshard/base/cat.h"
#include "meshard/hlo/module.h"
#include "meshard/partitioned/collective_call.h"
#include "meshard/pjrt/wire.h"

namespace meshard {

/// Reads a HloModuleProto.
inline HloModule read_module(std::string_view hlo) {
  pjrt::WireWriter with_config;
  with_config.add_bytes(1, hlo);
  return HloModule::from_bytes(with_config.bytes()).value();
}

/// Follows the chain through a module. Every collective must take the value that the one before it
/// gave; loops, conditionals and calls with collectives must take it in and give it back.
class ChainCheck {
 public:
  explicit ChainCheck(const HloModule& module) : module_(module) {}

  /// What is wrong; empty if nothing is.
  std::string problem() {
    const HloComputation& entry = module_.entry();
    if (!communicates(entry)) return {};
    return follow(entry, Entry::kParameter);
  }

 private:
  using Instruction = HloInstruction;
  using Computation = HloComputation;
  enum class Entry { kParameter, kState, kCondition };

  static bool is_collective(const Instruction& one) {
    return one.opcode == "custom-call" && one.custom_call_target == kCollectiveTarget &&
           one.shape.is_tuple;
  }
  static bool is_chain(const HloShape& shape) {
    return !shape.is_tuple && shape.element == pjrt::ElementType::kS32 && shape.dimensions.empty();
  }
  bool communicates(const Computation& computation) {
    auto [at, is_new] = communicates_.try_emplace(computation.id, false);
    if (!is_new) return at->second;
    bool found = false;
    for (const Instruction& one : computation.instructions) {
      found |= is_collective(one);
      for (std::int64_t called : one.called_computations)
        found |= communicates(*module_.find(called));
    }
    return communicates_[computation.id] = found;
  }

  // The id of the value that is the last part of `value`.
  static std::int64_t last_part(const Computation& in, std::int64_t value) {
    const Instruction* tuple = in.find(value);
    return tuple->opcode == "tuple" && !tuple->operands.empty() ? tuple->operands.back() : -1;
  }
  // Whether `value` is the last part of the result of `from`.
  static bool is_last_element(const Instruction& value, std::int64_t from, std::size_t parts) {
    return value.opcode == "get-tuple-element" && value.operands.at(0) == from &&
           value.tuple_index + 1 == static_cast<std::int64_t>(parts);
  }

  std::string follow(const Computation& computation, Entry entry) {
    std::int64_t chain = -1, parameters = 0, last_parameter = -1;
    std::int64_t source = -1;  // whose last part is the next value of the chain
    std::size_t parts = 0;
    for (const Instruction& one : computation.instructions)
      if (one.opcode == "parameter") {
        ++parameters;
        if (one.parameter_number + 1 > last_parameter) last_parameter = one.parameter_number + 1;
      }
    for (const Instruction& one : computation.instructions) {
      std::string place = cat(computation.name, ", ", one.name, ": ");
      if (one.opcode == "parameter" && one.parameter_number + 1 == last_parameter) {
        if (entry == Entry::kParameter) {
          if (!is_chain(one.shape)) return cat(place, "the last parameter is not the chain");
          chain = one.id;
        } else {
          if (parameters != 1 || !one.shape.is_tuple || !is_chain(one.shape.tuple.back()))
            return cat(place, "the state has no chain");
          source = one.id;
          parts = one.shape.tuple.size();
        }
      }
      if (source >= 0 && is_last_element(one, source, parts)) {
        chain = one.id;
        source = -1;
      }
      bool calls = false;
      for (std::int64_t called : one.called_computations)
        calls |= communicates(*module_.find(called));
      if (!is_collective(one) && !calls) continue;
      if (chain < 0 || source >= 0) return cat(place, "the chain was not taken on");
      bool in_state = one.opcode == "while" || one.opcode == "conditional";
      for (std::size_t i = one.opcode == "conditional" ? 1 : 0; in_state && i < one.operands.size();
           ++i)
        if (last_part(computation, one.operands[i]) != chain)
          return cat(place, "an operand ends with another value");
      if (!in_state && one.operands.back() != chain)
        return cat(place, "the last operand is another value");
      for (std::size_t k = 0; k < one.called_computations.size() && calls; ++k) {
        Entry how = one.opcode == "call"              ? Entry::kParameter
                    : one.opcode == "while" && k == 1 ? Entry::kCondition
                                                      : Entry::kState;
        std::string inside = follow(*module_.find(one.called_computations[k]), how);
        if (!inside.empty()) return inside;
      }
      source = one.id;
      parts = one.shape.tuple.size();
    }
    if (entry == Entry::kCondition) return {};
    if (source >= 0 || last_part(computation, computation.root) != chain)
      return cat(computation.name, ": the result does not end with the chain");
    return {};
  }

  const HloModule& module_;
  std::unordered_map<std::int64_t, bool> communicates_;
};

}  // namespace meshard
