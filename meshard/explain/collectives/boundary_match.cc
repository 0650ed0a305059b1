// Tested in meshard/explain/collectives/purposes_test.cc.
#include <algorithm>
#include <optional>

#include "meshard/base/cat.h"
#include "meshard/base/saturating.h"
#include "meshard/explain/collectives/collective.h"
#include "meshard/explain/collectives/collectives.h"
#include "meshard/explain/collectives/value_flow.h"
#include "meshard/hlo/executions.h"

namespace meshard {
namespace {

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

bool is_differentiated(const HloModule& module, const ProgramPhases& phases) {
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& one : computation.instructions)
      if (phases.of_op(one.metadata.op_name) == ProgramPhase::kBackward) return true;
  return false;
}

// The scopes of the ops of the model among these, those of products first. In a program that is
// differentiated, the model's ops have a phase.
std::vector<std::string> scopes_of(const std::vector<LocatedInstruction>& users,
                                   bool differentiated, const ProgramPhases& phases) {
  std::vector<std::string> scopes;
  for (bool products : {true, false})
    for (const LocatedInstruction& user : users) {
      const std::string& op_name = user.instruction->metadata.op_name;
      if (is_product(*user.instruction) != products ||
          (differentiated && !is_of_model(phases.of_op(op_name))))
        continue;
      if (std::string scope = op_scope(op_name); !scope.empty()) add_once(scopes, std::move(scope));
    }
  return scopes;
}

// True if each dimension of `value` is a multiple of that of the shard, in this order or reversed.
bool consists_of_shards(std::vector<std::int64_t> value, std::vector<std::int64_t> shard) {
  std::erase(value, 1);
  std::erase(shard, 1);
  if (value.size() != shard.size() || value.empty()) return false;
  auto multiples = [&] {
    for (std::size_t d = 0; d < value.size(); ++d)
      if (shard[d] == 0 || value[d] % shard[d] != 0) return false;
    return true;
  };
  if (multiples()) return true;
  std::ranges::reverse(value);
  return multiples();
}

// Ops that a model applies to a parameter and an optimizer does not.
bool is_of_model(const HloInstruction& one, const ProgramPhases& phases) {
  if (is_of_model(phases.of_op(one.metadata.op_name))) return true;
  return is_product(one) || one.opcode == "gather" || one.opcode == "broadcast";
}

}  // namespace

bool is_product(const HloInstruction& one) {
  return one.opcode == "dot" || one.opcode == "convolution";
}

BoundaryMatch::BoundaryMatch(const Executions& executions, const BoundaryNames& names,
                             const ProgramPhases& phases)
    : executions_(executions), argument_names_(names.arguments), result_names_(names.results) {
  const HloModule& module = executions.module().module();
  const InstructionIndex& entry = executions.module().entry();
  argument_names_.resize(std::max(argument_names_.size(), module.parameters.size()));
  ValueFlow flow(executions);
  const bool differentiated = is_differentiated(module, phases);
  read_by_model_.assign(module.parameters.size(), false);
  ops_.resize(module.parameters.size());
  scopes_.resize(module.parameters.size());
  for (const HloInstruction& each : entry.computation().instructions) {
    auto number = static_cast<std::size_t>(each.parameter_number);
    if (each.opcode != "parameter" || each.parameter_number < 0 || number >= read_by_model_.size())
      continue;
    std::string& name = argument_names_[number];
    if (name.empty() && each.metadata.op_name.find('/') == std::string::npos)
      for (char c : each.metadata.op_name)
        if (c != '\\') name.push_back(c);
    ValueUses uses = flow.uses({&entry, &each}, -1, false);
    for (const LocatedInstruction& user : uses.consumers) {
      const std::string& op_name = user.instruction->metadata.op_name;
      if (std::string used = op_in_layer(op_name); !used.empty())
        ops_[number].push_back(std::move(used));
    }
    scopes_[number] = scopes_of(uses.consumers, differentiated, phases);
    read_by_model_[number] = std::ranges::any_of(
        uses.consumers,
        [&](const LocatedInstruction& user) { return is_of_model(*user.instruction, phases); });
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
  for (const HloAlias& alias : module.aliases) {
    std::int64_t output = alias.output_index.empty() ? 0 : alias.output_index[0];
    if (output == static_cast<std::int64_t>(result) && is_read_by_model(alias.parameter))
      return alias.parameter;
  }
  return -1;
}

std::vector<std::int64_t> BoundaryMatch::replaced_by(
    const std::vector<std::int64_t>& results) const {
  std::vector<std::int64_t> found;
  for (std::int64_t result : results) {
    auto i = static_cast<std::size_t>(result);
    if (i < replaced_.size() && replaced_[i] >= 0) add_once(found, replaced_[i]);
  }
  std::ranges::sort(found);
  return found;
}

std::vector<std::int64_t> BoundaryMatch::used_by(const std::string& op_name,
                                                 const std::vector<std::int64_t>& arguments) const {
  std::vector<std::int64_t> found;
  std::string op = op_in_layer(op_name);
  for (std::int64_t argument : arguments) {
    const std::vector<std::string>& ops = ops_[static_cast<std::size_t>(argument)];
    if (std::ranges::find(ops, op) != ops.end()) found.push_back(argument);
  }
  return found;
}

std::vector<std::int64_t> BoundaryMatch::gradient_of(const std::string& op_name,
                                                     const HloShape& shape) const {
  std::vector<std::int64_t> found;
  if (shape.is_tuple) return found;
  const std::vector<HloShape>& parameters = executions_.module().module().parameters;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    auto argument = static_cast<std::int64_t>(i);
    if (is_updated(argument) && !parameters[i].is_tuple && parameters[i].dimensions.size() > 1 &&
        consists_of_shards(shape.dimensions, parameters[i].dimensions))
      found.push_back(argument);
  }
  return used_by(op_name, found);
}

std::optional<std::string> BoundaryMatch::layer_of(const std::vector<std::string>& names,
                                                   const std::string& own) const {
  std::optional<std::string> common;
  for (std::size_t i = 0; i < scopes_.size(); ++i) {
    const std::vector<std::string>& scopes = scopes_[i];
    std::string name = argument_name(static_cast<std::int64_t>(i));
    if (scopes.empty() || std::ranges::find(names, name) == names.end()) continue;
    auto fits = std::ranges::find(scopes, own);
    if (fits == scopes.end())
      fits = std::ranges::find_if(
          scopes, [&](const std::string& scope) { return scope.starts_with(own + "/"); });
    const std::string& scope = fits == scopes.end() ? scopes.front() : *fits;
    common = common ? common_scope(*common, scope) : scope;
  }
  return common;
}

bool BoundaryMatch::has_elements(std::int64_t argument, std::int64_t count) const {
  const HloShape& shape =
      executions_.module().module().parameters[static_cast<std::size_t>(argument)];
  if (shape.is_tuple) return false;
  if (count == shape.element_count()) return true;
  std::int64_t layer = 1;
  for (std::size_t d = 1; d < shape.dimensions.size(); ++d)
    layer = saturating_multiply(layer, shape.dimensions[d]);
  return shape.dimensions.size() > 1 && count == layer;
}

bool BoundaryMatch::is_updated(std::int64_t argument) const {
  return std::ranges::find(replaced_, argument) != replaced_.end();
}

}  // namespace meshard
