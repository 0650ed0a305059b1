// Tested in meshard/explain/explain_for_test.cc.
#include "meshard/explain/report_of.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "meshard/base/cat.h"
#include "meshard/explain/collectives/collectives.h"
#include "meshard/explain/collectives/logical.h"
#include "meshard/explain/collectives/origin.h"
#include "meshard/explain/cost/memory_use.h"
#include "meshard/explain/cost/schedule.h"
#include "meshard/graph/op_def.h"
#include "meshard/hlo/executions.h"
#include "meshard/ops/rolling/rolling_advice.h"
#include "meshard/target/target.h"

namespace meshard {
namespace {

bool gives_shards(const Sharding& sharding, const TensorType& padded, const HloShape* shape) {
  if (!shape) return true;
  IntVector shard = sharding.shard_shape(padded.shape);
  return std::ranges::equal(shard, shape->dimensions);
}

TensorType padded_by(const Sharding& sharding, const TensorType& type) {
  Dimensions sizes;
  for (std::int64_t size : sharding.padded_shape(type.shape)) sizes.push_back(size);
  return {type.dtype, Shape(std::move(sizes))};
}

// One sharding for each value, from the module or from the plugin's extension.
std::vector<std::optional<HloSharding>> shardings_of_values(
    const std::vector<HloSharding>& in_module, const std::vector<std::string>& in_extension,
    std::size_t count) {
  std::vector<std::optional<HloSharding>> found(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (i < in_module.size()) {
      found[i] = in_module[i];
    } else if (i < in_extension.size()) {
      Result<HloSharding> read = HloSharding::from_bytes(in_extension[i]);
      if (read.ok()) found[i] = *std::move(read);
    }
  }
  return found;
}

std::optional<std::int64_t> capacity_of(const ProgramFacts& facts) {
  return facts.target() ? device_memory(*facts.target()) : std::nullopt;
}

std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::ranges::replace(text, '\n', ' ');
  return text;
}

class ReportMaker {
 public:
  ReportMaker(const Compiled& compiled, const ProgramFacts& facts)
      : compiled_(compiled), facts_(facts) {}

  Result<ProgramReport> make(const ChosenShardings* chosen) {
    MESHARD_ASSIGN_OR_RETURN(module_, HloModule::from_bytes(compiled_.optimized_program));
    name_by_lines(facts_.op_names.by_line, module_);
    parts_.name = module_.name.empty() ? facts_.program.name : module_.name;
    describe_program(facts_, parts_);
    parts_.target.compiler = one_line(compiled_.platform_version);
    parts_.target.compile_seconds = compiled_.from_cache ? 0 : compiled_.compile_seconds;
    place_boundary(chosen);
    ModuleIndex index(module_);
    MESHARD_ASSIGN_OR_RETURN(Executions executions, Executions::of(index));
    MESHARD_ASSIGN_OR_RETURN(std::vector<Collective> found, collectives_of(executions));
    std::vector<LogicalCollective> logical = find_logical_collectives(executions, found);
    MESHARD_RETURN_IF_ERROR(estimate(executions, found));
    read_propagated(whole_collectives(logical));
    read_memory();
    read_buffers(executions);
    add_collectives(std::move(found), std::move(logical));
    add_notes(index);
    return ProgramReport(std::move(parts_));
  }

  // Sets the parts that do not need a compiler.
  static void describe_program(const ProgramFacts& facts, ProgramReport::Parts& parts) {
    parts.mesh = facts.program.mesh;
    parts.num_captured = facts.num_captured;
    parts.notes = facts.notes;
    parts.target = facts.hardware;
    if (facts.target()) {
      parts.target.name = facts.target()->name();
      parts.target.device_kind = facts.target()->topology().kind();
      parts.target.devices = facts.target()->size();
      parts.topology = facts.target()->topology();
    }
    if (facts.processes && facts.program.mesh)
      if (MeshProcesses found = facts.processes->of_mesh(*facts.program.mesh); found.count > 1)
        parts.processes = std::move(found);
  }

  static std::string name_at(const std::vector<std::string>& names, std::size_t i) {
    return i < names.size() ? names[i] : std::string();
  }

  static void add_places(const ProgramFacts& facts, ProgramReport::Parts& parts) {
    for (std::size_t i = 0; i < parts.arguments.size(); ++i) {
      parts.arguments[i].donated = i < facts.donated.size() && facts.donated[i];
      parts.arguments[i].place =
          facts.graph ? facts.graph->source(static_cast<std::uint32_t>(i)).to_string()
                      : name_at(facts.argument_places, i);
    }
    if (!facts.graph) {
      for (std::size_t i = 0; i < parts.results.size(); ++i)
        parts.results[i].place = name_at(facts.result_places, i);
      return;
    }
    for (std::size_t i = 0; i < parts.results.size() && i < facts.graph->results().size(); ++i)
      parts.results[i].place = facts.graph->results()[i]->where().to_string();
  }

 private:
  void place_boundary(const ChosenShardings* chosen) {
    std::vector<const HloShape*> arguments, results;
    for (const HloShape& shape : module_.parameters) arguments.push_back(&shape);
    if (module_.result.is_tuple)
      for (const HloShape& shape : module_.result.tuple) results.push_back(&shape);
    else
      results.push_back(&module_.result);
    place(facts_.program.arguments, arguments, module_.parameter_shardings,
          compiled_.parameter_shardings, chosen ? &chosen->arguments : nullptr,
          facts_.argument_names, parts_.arguments);
    const std::optional<HloSharding>& output = module_.output_sharding;
    place(facts_.program.results, results,
          output ? output->of_values(results.size()) : std::vector<HloSharding>(),
          compiled_.output_shardings, chosen ? &chosen->results : nullptr, facts_.result_names,
          parts_.results);
    add_places(facts_, parts_);
    mark_memory(arguments, parts_.arguments);
    mark_memory(results, parts_.results);
    for (const HloAlias& alias : module_.aliases)
      if (alias.parameter >= 0 &&
          alias.parameter < static_cast<std::int64_t>(parts_.arguments.size()))
        parts_.arguments[static_cast<std::size_t>(alias.parameter)].donated = true;
  }

  void place(const std::vector<LoweredValue>& values, const std::vector<const HloShape*>& shapes,
             const std::vector<HloSharding>& in_module,
             const std::vector<std::string>& in_extension,
             const std::vector<std::optional<Sharding>>* chosen,
             const std::vector<std::string>& names, std::vector<ValuePlacement>& to) {
    auto shardings = shardings_of_values(in_module, in_extension, values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (chosen) {
        to.push_back({.name = name_at(names, i),
                      .type = values[i].type,
                      .padded = values[i].padded,
                      .sharding = (*chosen)[i],
                      .chosen_by_compiler = (*chosen)[i].has_value() && !values[i].is_exact()});
      } else {
        to.push_back(placement_of(values[i], i < shapes.size() ? shapes[i] : nullptr,
                                  shardings[i] ? &*shardings[i] : nullptr, facts_.program,
                                  name_at(names, i), parts_.notes));
      }
    }
  }

  // Marks the values in host memory, which compilers call space 5 (xla/layout.h).
  static void mark_memory(const std::vector<const HloShape*>& shapes,
                          std::vector<ValuePlacement>& values) {
    constexpr std::int64_t kHostMemory = 5;
    for (std::size_t i = 0; i < std::min(shapes.size(), values.size()); ++i)
      if (shapes[i]->layout && shapes[i]->layout->memory_space == kHostMemory)
        values[i].memory_kind = "pinned_host";
  }

  const Graph* graph() const { return facts_.graph ? &*facts_.graph : nullptr; }

  // The collective instructions, with their purposes.
  Result<std::vector<Collective>> collectives_of(const Executions& executions) const {
    const std::optional<Mesh>& mesh = facts_.program.mesh;
    std::optional<SliceNumbering> slices;
    if (mesh && facts_.target())
      slices = SliceNumbering::of(module_, *mesh, facts_.target()->topology());
    MESHARD_ASSIGN_OR_RETURN(std::vector<Collective> found,
                             find_collectives(executions, mesh, graph(), slices, facts_.op_names));
    if (facts_.processes)
      for (Collective& one : found) one.across_processes = facts_.processes->crosses(mesh, one);
    return with_purposes(executions, {facts_.argument_names, facts_.result_names},
                         facts_.graph ? ProgramPhases(*facts_.graph) : ProgramPhases(),
                         std::move(found));
  }

  // The instructions and what they implement, with what they move.
  void add_collectives(std::vector<Collective> found, std::vector<LogicalCollective> logical) {
    const auto moved = [&](std::vector<Collective> list) {
      return with_moves(std::move(list), parts_.reshards, parts_.intermediates, graph());
    };
    parts_.collectives = moved(std::move(found));
    std::vector<Collective> wholes = moved(whole_collectives(logical));
    for (std::size_t i = 0; i < wholes.size(); ++i) logical[i].whole = std::move(wholes[i]);
    parts_.logical_collectives = std::move(logical);
  }

  // Sets operation counts, traffic and, if the hardware or its links are known, the time bounds.
  // @error invalid argument: a cost is given for a custom call that there is not
  Result<void> estimate(const Executions& executions, const std::vector<Collective>& collectives) {
    std::vector<CustomCall> calls = custom_calls_of(executions);
    MESHARD_RETURN_IF_ERROR(give_costs(facts_.costs, calls));
    parts_.custom_calls = group_custom_calls(executions, calls, graph());
    ModuleCost cost(executions, calls);
    parts_.cost = program_cost(cost);
    std::optional<LinkModel> links;
    std::optional<HardwareFigures> figures;
    std::optional<Topology> topology = facts_.topology;
    if (facts_.target()) {
      topology = facts_.target()->topology();
      figures = hardware_figures(*topology);
    }
    bool given = facts_.links.between_devices || facts_.links.between_processes;
    if (figures || given) {
      links.emplace(figures.value_or(HardwareFigures{}), facts_.program.mesh, topology,
                    facts_.processes, facts_.links);
    }
    std::vector<Collective> loading = collectives_on_links(executions, collectives, calls);
    StepCosts costs(executions, cost, loading, links ? &*links : nullptr);
    std::optional<SimulatedSchedule> simulated;
    if (links) {
      parts_.roofline = roofline_of(parts_.cost, loading, *links);
      parts_.roofline->rates_known = figures.has_value();
      if (figures) simulated = simulate_schedule(costs, loading, *parts_.roofline);
    }
    if (simulated) parts_.schedule = simulated->schedule;
    if (HostTransfers moved = host_transfers_of(costs); moved.executions > 0)
      parts_.host_transfers = moved;
    parts_.timeline = timeline_of(costs, simulated ? &*simulated : nullptr, graph());
    if (facts_.measured) {
      MESHARD_ASSIGN_OR_RETURN(parts_.measured,
                               measure(*facts_.measured, costs, loading, parts_.timeline));
    }
    return {};
  }

  void read_propagated(const std::vector<Collective>& wholes) {
    std::optional<HloModule> propagated;
    if (!compiled_.propagated_program.empty())
      if (auto read = HloModule::from_bytes(compiled_.propagated_program); read.ok())
        propagated = *std::move(read);
    if (propagated) {
      name_by_lines(facts_.op_names.by_line, *propagated);
      parts_.intermediates = find_intermediates(*propagated, facts_);
    } else if (facts_.program.mesh && facts_.target()) {
      parts_.notes.push_back(
          "the compiler wrote no module after sharding propagation: intermediate values are not "
          "reported");
    }
    parts_.reshards = find_reshards(module_, wholes, propagated ? &*propagated : nullptr, facts_);
    for (Reshard& remade : rematerializations_in_log(compiled_.log))
      parts_.reshards.push_back(std::move(remade));
  }

  void read_memory() {
    if (!compiled_.memory) {
      parts_.notes.push_back("the compiler did not report the program's memory");
      return;
    }
    const pjrt::CompiledMemoryStats& stats = *compiled_.memory;
    parts_.memory = MemoryUse{.arguments = stats.arguments,
                              .outputs = stats.outputs,
                              .aliased = stats.aliases,
                              .temporaries = stats.temporaries,
                              .code = stats.generated_code,
                              .peak = stats.peak,
                              .host_arguments = stats.host_arguments,
                              .host_outputs = stats.host_outputs,
                              .host_temporaries = stats.host_temporaries,
                              .capacity = capacity_of(facts_)};
  }

  void read_buffers(const Executions& executions) {
    std::vector<std::string> names;
    for (const ValuePlacement& each : parts_.arguments) names.push_back(each.name);
    if (!compiled_.buffer_assignment.empty())
      if (auto largest = largest_buffers(compiled_.buffer_assignment, graph(), names);
          largest.ok()) {
        parts_.largest_buffers = *std::move(largest);
        return;
      }
    parts_.largest_buffers = estimated_buffers(executions, graph(), names);
    parts_.notes.push_back(
        "the compiler did not report a buffer assignment: the largest buffers are estimated from "
        "the order of the instructions, without shared memory");
  }

  void add_notes(const ModuleIndex& index) {
    std::size_t windowed = 0, across = 0;
    for (const Collective& one : parts_.collectives) {
      windowed += one.form == CollectiveForm::kWindowedEinsum;
      across += one.form == CollectiveForm::kAcrossSlices;
    }
    if (windowed > 0)
      parts_.notes.push_back(cat(windowed,
                                 " permutations are steps of gathers or scatters that the compiler "
                                 "overlaps with matrix products (windowed einsum)"));
    if (across > 0)
      parts_.notes.push_back(
          cat(across, " sends and receives are parts of collectives across slices"));
    const auto add = [&](const std::vector<std::string>& notes) {
      parts_.notes.insert(parts_.notes.end(), notes.begin(), notes.end());
    };
    if (parts_.roofline) add(custom_call_notes(parts_.custom_calls));
    add(notes_on_missing_handlers(module_, compiled_.missing_handlers));
    if (facts_.target() && facts_.target()->platform() == "cpu")
      add(notes_on_widening(index, parts_.collectives));
    if (!facts_.graph) return add(notes_on_lines(module_, parts_.collectives));
    if (std::optional<RollingAdvice> advice = rolling_advice(*facts_.graph))
      parts_.notes.push_back(advice->to_string());
    for (const UnrolledLayers& layers : facts_.graph->unrolled_layers())
      parts_.notes.push_back(layers.to_string());
  }

  const Compiled& compiled_;
  const ProgramFacts& facts_;
  HloModule module_;
  ProgramReport::Parts parts_;
};

using pjrt::ElementType;

bool is_narrow(ElementType type) { return type == ElementType::kBf16 || type == ElementType::kF16; }

// True if the value is a conversion from a 16-bit float, alone or as the result of a fusion.
bool is_widened(const ModuleIndex& index, const InstructionIndex& computation,
                const HloInstruction* value) {
  if (!value) return false;
  const InstructionIndex* inside = &computation;
  if (value->opcode == "fusion") {
    inside = index.called(*value);
    value = inside ? inside->root() : nullptr;
  }
  if (!value || value->opcode != "convert" || value->shape.element != ElementType::kF32)
    return false;
  const HloInstruction* from = inside->operand(*value, 0);
  return from && is_narrow(from->shape.element);
}

// True if XLA widened the sum: it then names the function that adds two numbers so
// (xla/service/all_reduce_promotion.cc).
bool is_promoted(const ModuleIndex& index, const HloInstruction& instruction) {
  const InstructionIndex* adds = index.called(instruction);
  return adds && adds->computation().name.ends_with("_promoted");
}

}  // namespace

ValuePlacement placement_of(const LoweredValue& asked, const HloShape* shape,
                            const HloSharding* compiled, const LoweredModule& program,
                            std::string name, std::vector<std::string>& notes) {
  ValuePlacement placed{.name = std::move(name),
                        .type = asked.type,
                        .padded = asked.padded,
                        .sharding = std::nullopt};
  if (!program.mesh) return placed;
  std::size_t rank = static_cast<std::size_t>(asked.type.rank());
  const auto use = [&](const Sharding& sharding) {
    TensorType padded = padded_by(sharding, asked.type);
    if (!gives_shards(sharding, padded, shape)) return false;
    placed.padded = std::move(padded);
    placed.sharding = sharding;
    return true;
  };
  // The requested sharding is reported if its shards agree with the compiled program: the compiler
  // may express it over other axes of the same sizes.
  if (asked.is_exact() && use(*asked.sharding)) return placed;
  placed.chosen_by_compiler = !asked.is_specified_otherwise;
  if (compiled) {
    Result<Sharding> read = sharding_of(*compiled, program, rank);
    if (read.ok() && use(*read)) {
      if (asked.is_exact())
        notes.push_back(cat(placed.name.empty() ? "a value" : placed.name, " ", asked.type,
                            ": the compiler does not keep the sharding ", asked.sharding->spec(),
                            " that the module specifies; it uses ", placed.sharding->spec()));
      return placed;
    }
  }
  if (use(Sharding::replicated(*program.mesh, rank))) return placed;
  notes.push_back(cat(placed.name.empty() ? "a value" : placed.name, " ", asked.type,
                      ": its sharding is not known"));
  return placed;
}

Result<ProgramReport> report_of(const Compiled& compiled, const ProgramFacts& facts,
                                const ChosenShardings* chosen) {
  return caught([&] { return ReportMaker(compiled, facts).make(chosen); });
}

Result<ProgramReport> report_of(const CompiledModule& module) {
  if (module.compiled.ok()) return report_of(*module.compiled, module.facts);
  const Error& error = module.compiled.error();
  if (error.code() == ErrorCode::kResourceExhausted) return report_of_refused(error, module.facts);
  return error;
}

ProgramReport report_of_refused(const Error& error, const ProgramFacts& facts) {
  ProgramReport::Parts parts;
  parts.name = facts.program.name;
  ReportMaker::describe_program(facts, parts);
  MemoryUse memory{.capacity = capacity_of(facts)};
  const auto place = [&](const std::vector<LoweredValue>& values,
                         const std::vector<std::string>& names, std::vector<ValuePlacement>& to,
                         std::int64_t& bytes) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      to.push_back(placement_of(values[i], nullptr, nullptr, facts.program,
                                ReportMaker::name_at(names, i), parts.notes));
      bytes += to.back().shard().bytes();
    }
  };
  place(facts.program.arguments, facts.argument_names, parts.arguments, memory.arguments);
  place(facts.program.results, facts.result_names, parts.results, memory.outputs);
  ReportMaker::add_places(facts, parts);
  for (const ValuePlacement& argument : parts.arguments)
    if (argument.donated) memory.aliased += argument.shard().bytes();
  memory.aliased = std::min(memory.aliased, memory.outputs);
  if (std::optional<MemoryShortage> shortage = memory_shortage(error.message())) {
    memory.capacity = shortage->available;
    std::int64_t boundary = memory.arguments + memory.outputs - memory.aliased;
    memory.temporaries = shortage->temporaries_only
                             ? shortage->needed
                             : std::max<std::int64_t>(0, shortage->needed - boundary);
  }
  parts.memory = memory;
  parts.out_of_memory = error.message();
  return ProgramReport(std::move(parts));
}

std::vector<std::string> notes_on_lines(const HloModule& module,
                                        const std::vector<Collective>& collectives) {
  if (collectives.empty()) return {};
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& instruction : computation.instructions)
      // Without locations in a text, MLIR's parser sets those of the text itself, in the file `-`.
      if (const std::string& file = instruction.metadata.source_file; !file.empty() && file != "-")
        return {};
  return {
      "the module has no source lines, so collectives are shown by the names of ops, or by lines "
      "of "
      "the module's text (-:5). Write it with debug information: in JAX "
      "lowered.as_text(debug_info=True), in MLIR --mlir-print-debuginfo"};
}

std::vector<std::string> notes_on_missing_handlers(const HloModule& module,
                                                   const std::vector<std::string>& targets) {
  std::size_t count = 0;
  std::set<std::string> called;
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& each : computation.instructions) {
      if (each.opcode != "custom-call" ||
          std::ranges::find(targets, each.custom_call_target) == targets.end())
        continue;
      ++count;
      called.insert(each.custom_call_target);
    }
  if (count == 0) return {};
  return {cat(count, count == 1 ? " custom call has" : " custom calls have", " no handler here (",
              join(called, ", "),
              "): the program is explained, but it runs only where the handlers are")};
}

std::vector<std::string> notes_on_widening(const ModuleIndex& index,
                                           const std::vector<Collective>& collectives) {
  std::unordered_set<std::string_view> names;
  for (const Collective& one : collectives) names.insert(one.instruction);
  std::size_t widened = 0;
  for (const HloComputation& computation : index.module().computations) {
    const InstructionIndex* found = index.find(computation.id);
    for (const HloInstruction& instruction : computation.instructions) {
      if (!found || !names.contains(instruction.name)) continue;
      std::vector<const HloInstruction*> operands = found->operands(instruction);
      widened += is_promoted(index, instruction) ||
                 std::ranges::any_of(operands, [&](const HloInstruction* operand) {
                   return is_widened(index, *found, operand);
                 });
    }
  }
  if (widened == 0) return {};
  return {cat(widened, widened == 1 ? " collective moves" : " collectives move",
              " 16-bit floats as f32, because the CPU compiler widens them: other hardware mostly "
              "moves half of these bytes")};
}

}  // namespace meshard
