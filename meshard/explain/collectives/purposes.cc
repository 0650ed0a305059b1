#include <algorithm>
#include <optional>
#include <unordered_map>

#include "meshard/base/cat.h"
#include "meshard/explain/collectives/collectives.h"
#include "meshard/explain/collectives/origin.h"
#include "meshard/explain/collectives/value_flow.h"
#include "meshard/hlo/executions.h"

namespace meshard {
namespace {

// Sums of scalars, such as the loss, are not activations.
bool is_scalar(const HloInstruction& one) {
  const HloShape& shape = one.shape;
  return !shape.is_tuple &&
         std::ranges::all_of(shape.dimensions, [](std::int64_t size) { return size == 1; });
}

class PurposeFinder {
 public:
  PurposeFinder(const Executions& executions, const BoundaryNames& names,
                const ProgramPhases& phases)
      : executions_(executions),
        phases_(phases),
        flow_(executions),
        boundary_(executions, names, phases),
        places_(executions.module().module()) {
    for (const ReachedComputation& reached : executions.calls().callers_first())
      for (const HloInstruction& each : reached.index->computation().instructions) {
        if (each.opcode != "parameter") instructions_[each.name] = {reached.index, &each};
        if (phases_.of_op(each.metadata.op_name) == ProgramPhase::kBackward) has_backward_ = true;
      }
  }

  void set(Collective& one) const {
    auto found = instructions_.find(one.instruction);
    if (found == instructions_.end()) return;
    const LocatedInstruction& at = found->second;
    CollectivePurpose& purpose = one.purpose;
    purpose.phase = own_phase(one);
    ValueUses taken = uses_of(at, -1, false);
    if (one.kind == CollectiveKind::kReceive)
      received(one, at);
    else if (is_reduction(one.kind) || is_sum_over_slices(*at.instruction))
      reduction(one, at);
    else
      movement(one, at, taken);
    if (purpose.kind == PurposeKind::kUnknown) rest(one, at);
    // A compiler may name a gather after the weight's use in the other pass.
    bool is_input = purpose.kind == PurposeKind::kWeight || purpose.kind == PurposeKind::kArgument;
    if (is_input || purpose.phase == ProgramPhase::kUnknown)
      if (ProgramPhase users = phase_of_users(purpose, taken); users != ProgramPhase::kUnknown)
        purpose.phase = users;
    if (names_only_arguments(one)) name_user(one, taken);
    purpose.layer = layer(one, at, taken);
    if (purpose.kind != PurposeKind::kUnknown && purpose.certainty == PurposeCertainty::kUnknown)
      purpose.certainty = PurposeCertainty::kExact;
  }

 private:
  static bool is_sum_over_slices(const HloInstruction& one) {
    return one.opcode == "send" &&
           !one.frontend_attribute("_xla_megascale_reduce_operation").empty();
  }

  ProgramPhase own_phase(const Collective& one) const {
    for (const OriginPlace& place : one.origin.places) {
      ProgramPhase phase = phases_.of_op(place.node           ? cat("n", place.path)
                                         : place.path.empty() ? place.op
                                                              : place.path);
      if (phase != ProgramPhase::kUnknown) return phase;
    }
    return ProgramPhase::kUnknown;
  }

  // The uses of the result. The fragments of a collective over several fusions have one result,
  // which the users of the last one get.
  ValueUses uses_of(const LocatedInstruction& at, std::int64_t element, bool arithmetic) const {
    return flow_.uses(received_for(at), element, arithmetic);
  }

  // What is sent to other slices comes back in the receive of the same transfer.
  static LocatedInstruction received_for(const LocatedInstruction& at) {
    const HloInstruction* received =
        at.instruction->opcode == "send" ? transfer_partner(*at.index, *at.instruction) : nullptr;
    return received ? LocatedInstruction{at.index, received} : at;
  }

  // The name of the op that computed an operand; empty if none is known.
  std::string producer(LocatedInstruction at, std::size_t number) const {
    const InstructionIndex* index = at.index;
    const HloInstruction* one = index->operand(*at.instruction, number);
    std::int64_t element = -1;  // of the tuple that `one` makes
    for (int step = 0; one && step < 32; ++step) {
      if (one->opcode == "parameter") {
        const ReachedComputation* reached = executions_.calls().find(index->computation().id);
        if (!reached || !reached->caller || reached->kind != CallKind::kFusion) return "";
        auto parameter = static_cast<std::size_t>(one->parameter_number);
        index = reached->caller;
        one = index->operand(*reached->call, parameter);
        continue;
      }
      if (is_of_model(phases_.of_op(one->metadata.op_name))) return one->metadata.op_name;
      if (one->opcode == "fusion") {
        index = executions_.module().called(*one);
        one = index ? index->root() : nullptr;
        if (one && one->opcode == "tuple" && element >= 0)
          one = index->operand(*one, static_cast<std::size_t>(element));
        continue;
      }
      if (one->opcode == "get-tuple-element") element = one->tuple_index;
      if (one->operands.size() != 1) return "";
      one = index->operand(*one, 0);
    }
    return "";
  }

  // The arguments that the value of each operand is, or nothing if any of it is computed.
  std::vector<std::int64_t> arguments_moved(const LocatedInstruction& at) const {
    std::vector<std::int64_t> all;
    bool data_only_first =
        at.instruction->opcode == "ragged-all-to-all" || at.instruction->opcode == "send";
    std::size_t count = data_only_first ? 1 : at.instruction->operands.size();
    for (std::size_t i = 0; i < count; ++i) {
      ValueSources sources = flow_.sources(at, i);
      if (sources.computed || sources.parameters.empty()) return {};
      all.insert(all.end(), sources.parameters.begin(), sources.parameters.end());
    }
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  void movement(Collective& one, const LocatedInstruction& at, const ValueUses& taken) const {
    if (of_arguments(one, at)) return;
    reached_results(one, at, taken.results.empty());
    if (one.purpose.kind == PurposeKind::kUnknown) of_function_of_weight(one, at);
  }

  // Sets the purpose if the operands are arguments.
  bool of_arguments(Collective& one, const LocatedInstruction& at) const {
    std::vector<std::int64_t> arguments = arguments_moved(at);
    if (arguments.empty()) return false;
    bool updated = true;
    for (std::int64_t argument : arguments) {
      add_once(one.purpose.names, boundary_.argument_name(argument));
      updated = updated && boundary_.is_updated(argument);
    }
    one.purpose.kind = updated ? PurposeKind::kWeight : PurposeKind::kArgument;
    return true;
  }

  // Sets the purpose if what is moved is made of a weight element by element: scaled, normalized,
  // or changed by a step that is not the program's result. Other operands may take part.
  void of_function_of_weight(Collective& one, const LocatedInstruction& at) const {
    std::vector<std::string> names;
    bool computed = false;
    std::size_t count = at.instruction->opcode == "send" ? 1 : at.instruction->operands.size();
    for (std::size_t i = 0; i < count; ++i) {
      const HloInstruction* operand = at.index->operand(*at.instruction, i);
      if (!operand || operand->shape.is_tuple) return;
      ValueSources sources = flow_.sources(at, i, true, true);
      std::erase_if(sources.parameters, [&](std::int64_t argument) {
        return !boundary_.is_updated(argument) ||
               !boundary_.has_elements(argument, operand->shape.element_count());
      });
      if (sources.parameters.size() != 1) return;
      add_once(names, boundary_.argument_name(sources.parameters[0]));
      computed = computed || sources.computed;
    }
    one.purpose.kind = PurposeKind::kWeight;
    one.purpose.names = std::move(names);
    if (computed) one.purpose.certainty = PurposeCertainty::kInferred;
  }

  void reduction(Collective& one, const LocatedInstruction& at) const {
    // Partitioners gather a small value as the sum of what each device has of it, among zeros.
    if (one.cause != CollectiveCause::kAsked && of_arguments(one, at)) return;
    reached_results(one, at, true);
    if (one.purpose.kind == PurposeKind::kUnknown) gradients_by_op(one, at);
    if (one.purpose.kind != PurposeKind::kUnknown || !is_scalar(*at.instruction)) return;
    std::vector<std::int64_t> results = uses_of(at, -1, true).results;
    if (results.empty()) return;
    for (std::int64_t result : results) add_once(one.purpose.names, boundary_.result_name(result));
    one.purpose.kind = PurposeKind::kResult;
  }

  // Gradients that reach no result through the optimizer's element-wise operations, because the
  // program computes with them, are known by their ops and shapes.
  void gradients_by_op(Collective& one, const LocatedInstruction& at) const {
    if (one.purpose.phase != ProgramPhase::kBackward) return;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < at.instruction->operands.size(); ++i) {
      const HloInstruction* operand = at.index->operand(*at.instruction, i);
      if (!operand || is_scalar(*operand)) continue;
      std::string op = producer(at, i);
      if (phases_.of_op(op) != ProgramPhase::kBackward) return;
      std::vector<std::int64_t> arguments = boundary_.gradient_of(op, operand->shape);
      if (arguments.size() != 1) return;
      add_once(names, boundary_.argument_name(arguments[0]));
    }
    if (names.empty()) return;
    one.purpose.kind = PurposeKind::kGradient;
    one.purpose.certainty = PurposeCertainty::kInferred;
    one.purpose.names = std::move(names);
  }

  // What is received is what was sent.
  void received(Collective& one, const LocatedInstruction& at) const {
    LocatedInstruction sent{at.index, transfer_partner(*at.index, *at.instruction)};
    if (!sent.instruction) return;
    if (is_sum_over_slices(*sent.instruction))
      reduction(one, sent);
    else
      movement(one, sent, uses_of(at, -1, false));
  }

  // Sets the purpose if the value reaches new values of arguments, through the optimizer.
  void reached_results(Collective& one, const LocatedInstruction& at, bool arithmetic) const {
    if (one.purpose.phase == ProgramPhase::kForward || !has_backward_) return;
    std::size_t count = at.instruction->opcode == "send" ? 1 : at.instruction->operands.size();
    std::vector<std::string> names;
    bool reached = false, certain = true;
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t element = count > 1 ? static_cast<std::int64_t>(i) : -1;
      std::vector<std::int64_t> arguments =
          boundary_.replaced_by(uses_of(at, element, arithmetic).results);
      reached = reached || !arguments.empty();
      if (arguments.size() > 1) {
        // A compiler packed this value with others, and took them apart again. The op tells which
        // it is; a buffer that no op made holds all of them.
        certain = false;
        if (std::string op = producer(at, i); !op.empty())
          arguments = boundary_.used_by(op, arguments);
      }
      for (std::int64_t argument : arguments) add_once(names, boundary_.argument_name(argument));
    }
    if (!reached) return;
    CollectivePurpose& purpose = one.purpose;
    bool backward = purpose.phase == ProgramPhase::kBackward;
    purpose.kind =
        backward || is_reduction(one.kind) ? PurposeKind::kGradient : PurposeKind::kUpdate;
    bool own = one.origin.certainty == OriginCertainty::kExact ||
               one.origin.certainty == OriginCertainty::kMerged;
    purpose.certainty = own && (backward || purpose.kind == PurposeKind::kUpdate) && certain
                            ? PurposeCertainty::kExact
                            : PurposeCertainty::kInferred;
    purpose.names = std::move(names);
    if (purpose.kind == PurposeKind::kUpdate) purpose.phase = ProgramPhase::kOptimizer;
  }

  void rest(Collective& one, const LocatedInstruction& at) const {
    CollectivePurpose& purpose = one.purpose;
    if (one.cause == CollectiveCause::kAsked) {
      purpose.kind = PurposeKind::kUser;
      return;
    }
    bool in_model = is_of_model(purpose.phase) || !has_backward_;
    if (one.origin.places.empty() || !in_model || is_scalar(*at.instruction)) return;
    purpose.kind = PurposeKind::kActivations;
    if (one.origin.certainty == OriginCertainty::kInferred)
      purpose.certainty = PurposeCertainty::kInferred;
  }

  // The first phase in which the result is used; for a weight, that is the phase of the gather.
  ProgramPhase phase_of_users(const CollectivePurpose& purpose, const ValueUses& taken) const {
    ProgramPhase found = ProgramPhase::kUnknown;
    for (const LocatedInstruction& user : taken.consumers) {
      ProgramPhase phase = phases_.of_op(user.instruction->metadata.op_name);
      if (phase == ProgramPhase::kForward) return phase;
      if (phase != ProgramPhase::kUnknown) found = phase;
    }
    if (found == ProgramPhase::kUnknown && purpose.kind == PurposeKind::kGradient && has_backward_)
      return ProgramPhase::kBackward;
    return found;
  }

  // Compilers name a gather of an argument after the argument, which has no line.
  static bool names_only_arguments(const Collective& one) {
    const CollectivePurpose& purpose = one.purpose;
    if (purpose.kind != PurposeKind::kWeight && purpose.kind != PurposeKind::kArgument)
      return false;
    return !one.origin.places.empty() &&
           std::ranges::all_of(one.origin.places, [](const OriginPlace& place) {
             return !place.node && place.place.empty() && place.op.find('/') == std::string::npos;
           });
  }

  // Takes the op that uses the result as the origin.
  void name_user(Collective& one, const ValueUses& taken) const {
    for (const LocatedInstruction& user : taken.consumers) {
      const HloMetadata& metadata = user.instruction->metadata;
      if (metadata.op_name.find('/') == std::string::npos) continue;
      if (phases_.of_op(metadata.op_name) != one.purpose.phase) continue;
      SourcePlace place = places_.of(metadata);
      if (place.place.empty()) continue;
      one.origin.certainty = OriginCertainty::kInferred;
      one.origin.places = {foreign_place(metadata.op_name, std::move(place))};
      return;
    }
  }

  std::string layer(const Collective& one, const LocatedInstruction& at,
                    const ValueUses& taken) const {
    std::optional<std::string> folder;  // of the parameters
    bool several = false;
    if (one.purpose.kind != PurposeKind::kResult)
      for (const std::string& name : one.purpose.names) {
        std::string own = scope_of_parameter(name);
        several = several || (folder && *folder != own);
        folder = folder ? common_scope(*folder, own) : own;
      }
    std::string scope = scope_of(one, taken);
    std::optional<std::string> in_model;  // where the model uses the arguments
    switch (one.purpose.kind) {
      case PurposeKind::kWeight:
      case PurposeKind::kArgument:
        if (one.purpose.names.size() == 1)
          if (std::string users = scope_of_users(one.purpose.phase, taken); !users.empty())
            in_model = std::move(users);
        [[fallthrough]];
      case PurposeKind::kGradient:
      case PurposeKind::kUpdate:
        if (!in_model) in_model = boundary_.layer_of(one.purpose.names, scope);
        break;
      default: break;
    }
    // A name of several collectives may be that of one of the ops. Where the scopes of several
    // arguments have nothing in common, their folders may.
    if (in_model)
      scope = *in_model;
    else if (several)
      scope.clear();
    if (scope.ends_with('/')) scope.pop_back();
    if (scope.empty() && folder) scope = *folder;
    const ComputationRuns* runs = executions_.find(at.index->computation().id);
    if (!runs || runs->loop_depth == 0) return scope;
    return scope.empty() ? "loop" : cat("loop/", scope);
  }

  // The scope of the op that uses the result: a product in this phase, else another op in it, else
  // any op of the model.
  std::string scope_of_users(ProgramPhase phase, const ValueUses& taken) const {
    for (int turn = 0; turn < 3; ++turn)
      for (const LocatedInstruction& user : taken.consumers) {
        const HloInstruction& op = *user.instruction;
        ProgramPhase own = phases_.of_op(op.metadata.op_name);
        if (turn < 2 && own != phase) continue;
        if ((turn == 0 && !is_product(op)) || (turn == 2 && !is_of_model(own))) continue;
        if (std::string scope = op_scope(op.metadata.op_name); !scope.empty()) return scope;
      }
    return "";
  }

  // The scope of the ops, or the common part of their scopes.
  std::string scope_of(const Collective& one, const ValueUses& taken) const {
    std::optional<std::string> common;
    for (const OriginPlace& place : one.origin.places) {
      std::string scope = op_scope(place.op);
      if (scope.empty()) continue;
      common = common ? common_scope(*common, scope) : scope;
    }
    if (common) return *common;
    // A gather serves the ops that use its result; the optimizer's ops are in no layer.
    if (!is_reduction(one.kind))
      for (const LocatedInstruction& user : taken.consumers)
        if (is_of_model(phases_.of_op(user.instruction->metadata.op_name)))
          if (std::string scope = op_scope(user.instruction->metadata.op_name); !scope.empty())
            return scope;
    return "";
  }

  const Executions& executions_;
  const ProgramPhases& phases_;
  ValueFlow flow_;
  BoundaryMatch boundary_;
  SourcePlaces places_;
  std::unordered_map<std::string, LocatedInstruction> instructions_;
  bool has_backward_ = false;
};

}  // namespace

std::vector<Collective> with_purposes(const Executions& executions, const BoundaryNames& names,
                                      const ProgramPhases& phases,
                                      std::vector<Collective> collectives) {
  if (collectives.empty()) return collectives;
  PurposeFinder finder(executions, names, phases);
  for (Collective& one : collectives) finder.set(one);
  return collectives;
}

}  // namespace meshard
