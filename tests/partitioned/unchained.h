// Breaks the order of a rewritten module, to show that tests notice it.
#pragma once
#include <algorithm>
#include <vector>

#include "meshard/partitioned/internal/edited_module.h"
#include "meshard/partitioned/partition.h"
#include "tests/support/random.h"

namespace meshard {

inline bool takes_chain(const internal::EditedInstruction& instruction) {
  return instruction.opcode == "custom-call" && instruction.operands.size() > 1;
}

/// The same module, but each collective of the entry computation takes the first value of the chain
/// instead of the one before, so nothing orders them.
inline RewrittenModule unchained(const RewrittenModule& module) {
  auto edited = internal::EditedModule::from_bytes(module.hlo).value();
  internal::EditedComputation& entry = *edited.find(edited.entry);
  std::int64_t chain = -1;
  for (internal::EditedInstruction& each : entry.instructions) {
    if (!takes_chain(each)) continue;
    if (chain < 0) chain = each.operands.back();
    each.operands.back() = chain;
  }
  RewrittenModule broken = module;
  broken.hlo = edited.bytes();
  return broken;
}

/// The same module, but the chain goes through the collectives of the entry computation in another
/// order. @pre they do not depend on one another
inline RewrittenModule rechained(const RewrittenModule& module, TestRandom& random) {
  auto edited = internal::EditedModule::from_bytes(module.hlo).value();
  internal::EditedComputation& entry = *edited.find(edited.entry);
  // The chain's values in the order of the collectives, and the end.
  std::vector<std::int64_t> values;
  std::vector<std::size_t> order;
  for (const internal::EditedInstruction& each : entry.instructions)
    if (takes_chain(each)) {
      values.push_back(each.operands.back());
      order.push_back(order.size());
    }
  std::int64_t end = entry.find(entry.root)->operands.back();
  values.push_back(end);
  std::shuffle(order.begin(), order.end(), random);
  std::size_t call = 0;
  std::vector<std::int64_t> taken(order.size());
  for (std::size_t k = 0; k < order.size(); ++k)
    taken[order[k]] = k == 0 ? values[0] : values[order[k - 1] + 1];
  for (internal::EditedInstruction& each : entry.instructions) {
    if (takes_chain(each)) each.operands.back() = taken[call++];
    if (each.id == entry.root) each.operands.back() = values[order.back() + 1];
  }
  // Operands precede their users again.
  std::vector<internal::EditedInstruction> sorted, open = entry.instructions;
  std::vector<std::int64_t> ready;
  while (!open.empty())
    for (std::size_t i = 0; i < open.size();) {
      bool good =
          std::all_of(open[i].operands.begin(), open[i].operands.end(), [&](std::int64_t id) {
            return std::find(ready.begin(), ready.end(), id) != ready.end();
          });
      if (!good) {
        ++i;
        continue;
      }
      ready.push_back(open[i].id);
      sorted.push_back(open[i]);
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(i));
    }
  entry.instructions = std::move(sorted);
  RewrittenModule broken = module;
  broken.hlo = edited.bytes();
  return broken;
}

}  // namespace meshard
