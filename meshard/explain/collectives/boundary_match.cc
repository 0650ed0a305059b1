#include "meshard/explain/collectives/boundary_match.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/explain/collectives/op_scope.h"
#include "meshard/explain/collectives/purposes.h"

namespace meshard {
namespace {

using pjrt::HloInstruction;
using pjrt::HloModule;
using pjrt::HloShape;

std::size_t common_end(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::size_t count = 0;
  while (count < a.size() && count < b.size() && a[a.size() - 1 - count] == b[b.size() - 1 - count])
    ++count;
  return count;
}

const HloShape* result_shape(const HloModule& module, std::size_t result) {
  if (!module.result.is_tuple) return result == 0 ? &module.result : nullptr;
  return result < module.result.tuple.size() ? &module.result.tuple[result] : nullptr;
}

bool same_shard(const HloShape& a, const HloShape& b) {
  return a.element == b.element && a.dimensions == b.dimensions;
}

std::int64_t elements(const HloShape& shape) {
  std::int64_t count = 1;
  for (std::int64_t size : shape.dimensions) count *= std::max<std::int64_t>(size, 1);
  return count;
}

// Ops that a model applies to a parameter and an optimizer does not.
bool is_of_model(const HloInstruction& one) {
  if (phase_of_op(one.metadata.op_name) != ProgramPhase::kUnknown) return true;
  return one.opcode == "dot" || one.opcode == "convolution" || one.opcode == "gather" ||
         one.opcode == "broadcast";
}

}  // namespace

BoundaryMatch::BoundaryMatch(const Executions& executions, const BoundaryNames& names)
    : executions_(executions), argument_names_(names.arguments), result_names_(names.results) {
  const HloModule& module = executions.module().module();
  const InstructionIndex& entry = executions.module().entry();
  argument_names_.resize(std::max(argument_names_.size(), module.parameters.size()));
  ValueFlow flow(executions);
  read_by_model_.assign(module.parameters.size(), false);
  for (const HloInstruction& each : entry.computation().instructions) {
    auto number = static_cast<std::size_t>(each.parameter_number);
    if (each.opcode != "parameter" || each.parameter_number < 0 || number >= read_by_model_.size())
      continue;
    std::string& name = argument_names_[number];
    if (name.empty() && each.metadata.op_name.find('/') == std::string::npos)
      for (char c : each.metadata.op_name)
        if (c != '\\') name.push_back(c);
    ValueUses uses = flow.uses({&entry, &each}, -1, false);
    read_by_model_[number] =
        std::any_of(uses.consumers.begin(), uses.consumers.end(),
                    [](const LocatedInstruction& user) { return is_of_model(*user.instruction); });
  }
  std::size_t results = module.result.is_tuple ? module.result.tuple.size() : 1;
  result_names_.resize(std::max(result_names_.size(), results));
  for (std::size_t i = 0; i < results; ++i) replaced_.push_back(replaced(i));
}

std::string BoundaryMatch::argument_name(std::int64_t argument) const {
  auto i = static_cast<std::size_t>(argument);
  if (i < argument_names_.size() && !argument_names_[i].empty()) return argument_names_[i];
  return cat("argument ", argument);
}

std::string BoundaryMatch::result_name(std::int64_t result) const {
  auto i = static_cast<std::size_t>(result);
  if (i < result_names_.size() && !result_names_[i].empty()) return result_names_[i];
  return cat("result ", result);
}

bool BoundaryMatch::is_read_by_model(std::int64_t argument) const {
  auto i = static_cast<std::size_t>(argument);
  return argument >= 0 && i < read_by_model_.size() && read_by_model_[i];
}

// The argument that a result replaces; -1: none.
std::int64_t BoundaryMatch::replaced(std::size_t result) const {
  const HloModule& module = executions_.module().module();
  const HloShape* shape = result_shape(module, result);
  if (!shape) return -1;
  std::vector<std::string> keys = tree_keys(result_names_[result]);
  std::size_t longest = 0;
  std::int64_t best = -1;
  for (std::size_t i = 0; i < module.parameters.size(); ++i) {
    auto number = static_cast<std::int64_t>(i);
    if (!is_read_by_model(number) || !same_shard(module.parameters[i], *shape)) continue;
    std::size_t common = common_end(keys, tree_keys(argument_names_[i]));
    if (common > longest) {
      longest = common;
      best = number;
    } else if (common == longest) {
      best = -1;
    }
  }
  if (best >= 0) return best;
  for (const pjrt::HloAlias& alias : module.aliases) {
    std::int64_t output = alias.output_index.empty() ? 0 : alias.output_index[0];
    if (output == static_cast<std::int64_t>(result) && is_read_by_model(alias.parameter))
      return alias.parameter;
  }
  return -1;
}

std::vector<std::int64_t> BoundaryMatch::replaced_by(const std::vector<std::int64_t>& results,
                                                     const HloShape& value) const {
  std::vector<std::int64_t> found;
  for (std::int64_t result : results) {
    auto i = static_cast<std::size_t>(result);
    if (i >= replaced_.size() || replaced_[i] < 0) continue;
    if (std::find(found.begin(), found.end(), replaced_[i]) == found.end())
      found.push_back(replaced_[i]);
  }
  std::sort(found.begin(), found.end());
  if (found.size() < 2) return found;
  // Compilers pack small gradients into one buffer and take it apart again.
  const std::vector<HloShape>& parameters = executions_.module().module().parameters;
  std::vector<std::int64_t> fitting;
  for (std::int64_t argument : found) {
    std::int64_t count = elements(parameters[static_cast<std::size_t>(argument)]);
    std::int64_t own = elements(value);
    if (count % own == 0 || own % count == 0) fitting.push_back(argument);
  }
  return fitting.empty() ? found : fitting;
}

bool BoundaryMatch::is_updated(std::int64_t argument) const {
  return std::find(replaced_.begin(), replaced_.end(), argument) != replaced_.end();
}

}  // namespace meshard
