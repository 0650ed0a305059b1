#include "meshard/plan/explicit_shardings.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "meshard/base/cat.h"
#include "meshard/base/json_fields.h"
#include "meshard/explain/byte_text.h"
#include "meshard/explain/report_of.h"
#include "meshard/plan/internal/chosen_values.h"
#include "meshard/plan/internal/constraint_text.h"
#include "meshard/plan/module_template.h"
#include "meshard/stablehlo/module_reader.h"
#include "meshard/stablehlo/shardy_text.h"
#include "meshard/stablehlo/value_shardings.h"
#include "meshard/target/compile_workers.h"

namespace meshard {
namespace {

using internal::ChosenValue;
using internal::ChosenValues;

// The collectives of a program, as far as constraints must not change them, with their numbers.
using Traffic = std::map<std::string, std::int64_t>;

Traffic traffic_of(const ProgramReport& report) {
  Traffic traffic;
  for (const LogicalCollective& one : report.logical_collectives()) {
    const Collective& whole = one.whole;
    std::string axes = whole.axes ? to_string(*whole.axes) : "unknown axes";
    ++traffic[cat(enum_name(whole.kind), " over ", axes, ", ", byte_text(whole.bytes_in), " in, ",
                  byte_text(whole.bytes_out), " out",
                  repetition_text(whole.executions, whole.executions_known, whole.conditional))];
  }
  return traffic;
}

std::string difference_of(const Traffic& before, const Traffic& after) {
  std::vector<std::string> parts;
  auto missing_in = [&](const Traffic& one, const Traffic& other, std::string_view what) {
    for (const auto& [collective, count] : one) {
      auto found = other.find(collective);
      std::int64_t more = count - (found == other.end() ? 0 : found->second);
      if (more > 0) parts.push_back(cat(more, " ", what, " ", collective));
    }
  };
  missing_in(after, before, "more");
  missing_in(before, after, "fewer");
  return join(parts, "; ");
}

class ExplicitSearch {
 public:
  ExplicitSearch(ModuleTemplate module, const Target& target,
                 const ExplicitShardingsOptions& options)
      : module_(std::move(module)), target_(target), options_(options) {
    options_.explain.entry.clear();  // the text has its entry
    if (!options_.explain.compile.workers)
      options_.explain.compile.workers = std::make_shared<CompileWorkers>();
  }

  ExplicitShardings run() {
    const std::string text(module_.module().text());
    stablehlo::ModuleFacts facts = stablehlo::read_module(text).value();
    if (!options_.explain.use_shardy.value_or(facts.is_for_shardy()))
      throw Error(ErrorCode::kUnimplemented,
                  "[explicit] the module's shardings are for the older partitioner (GSPMD): only "
                  "Shardy's constraints are written");
    CompiledModule compiled = compile(text);
    ProgramReport report = report_of(compiled).value();
    if (!report.mesh())
      throw Error(ErrorCode::kInvalidArgument,
                  "[explicit] the program has no mesh, so nothing is sharded");
    before_ = traffic_of(report);
    CompiledModule numbered = compile(stablehlo::with_numbered_ops(module_.module()));
    found_ = internal::find_chosen_values(module_, compiled, numbered, report).value();
    find_mesh_name();
    ExplicitShardings out{.name = report.name(),
                          .determined = found_.determined,
                          .collectives = std::ssize(report.logical_collectives()),
                          .collective_bytes = report.collective_bytes(),
                          .notes = found_.notes};
    difference_.resize(found_.all.size());
    std::vector<std::size_t> all(found_.all.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    std::vector<std::size_t> kept = largest_part({}, all);
    out.module = with(kept);
    describe(facts, kept, out);
    out.compiles = compiles_;
    return out;
  }

 private:
  CompiledModule compile(const std::string& text) {
    ++compiles_;
    CompiledModule made = compile_module(text, target_, options_.explain).value();
    if (!made.compiled.ok()) throw made.compiled.error();
    return made;
  }

  // Choices name the axes of the first mesh that has any.
  void find_mesh_name() {
    for_each_op(module_.module().ops(), [&](const stablehlo::ModuleOp& op) {
      if (op.mnemonic == "sdy.mesh" && mesh_name_.empty() &&
          stablehlo::find_attribute(op.attributes, "") != "<[]>")
        mesh_name_ = op.symbol;
    });
  }

  // The text with these choices as constraints.
  std::string with(const std::vector<std::size_t>& choices) const {
    std::vector<std::string> texts;
    std::vector<const ChosenValue*> values, boundary;
    for (std::size_t i : choices)
      (found_.all[i].shown.part == ShardedPart::kValue ? values : boundary)
          .push_back(&found_.all[i]);
    for (const ChosenValue* each : values)
      texts.push_back(shardy_text(each->sharding, mesh_name_).substr(kAttribute.size()));
    std::vector<stablehlo::ValueSharding> constraints;
    for (std::size_t i = 0; i < values.size(); ++i)
      constraints.push_back({static_cast<int>(values[i]->number), texts[i]});
    std::string text = stablehlo::with_constraints(module_.module(), constraints);
    if (boundary.empty()) return text;
    ModuleTemplate again = ModuleTemplate::parse(std::move(text)).value();
    BoundarySpecs specs = again.given();
    for (const ChosenValue* each : boundary)
      (each->shown.part == ShardedPart::kArgument ? specs.arguments : specs.results)[each->number] =
          each->shown.spec;
    return again.with(std::nullopt, specs);
  }

  // How the collectives change with these choices; empty: they do not.
  std::string change_with(const std::vector<std::size_t>& choices) {
    if (choices.empty()) return {};
    Result<ProgramReport> report = report_of(compile(with(choices)));
    return difference_of(before_, traffic_of(report.value()));
  }

  // The largest part of `choices` that is found to change nothing beside those that are kept.
  std::vector<std::size_t> largest_part(const std::vector<std::size_t>& kept,
                                        const std::vector<std::size_t>& choices) {
    if (choices.empty()) return {};
    std::vector<std::size_t> all = kept;
    all.insert(all.end(), choices.begin(), choices.end());
    if (compiles_ >= options_.most_compiles) {
      for (std::size_t i : choices)
        difference_[i] = cat("not known after ", options_.most_compiles, " compiles");
      return {};
    }
    std::string change = change_with(all);
    if (change.empty()) return choices;
    if (choices.size() == 1) {
      difference_[choices[0]] = std::move(change);
      return {};
    }
    auto middle = choices.begin() + std::ssize(choices) / 2;
    std::vector<std::size_t> first = largest_part(kept, {choices.begin(), middle});
    std::vector<std::size_t> before = kept;
    before.insert(before.end(), first.begin(), first.end());
    std::vector<std::size_t> second = largest_part(before, {middle, choices.end()});
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

  // Lists the choices: alike ones of one line together.
  void describe(const stablehlo::ModuleFacts& facts, const std::vector<std::size_t>& kept,
                ExplicitShardings& out) {
    ConstraintWords words = options_.words.value_or(
        facts.origin == stablehlo::ModuleOrigin::kMeshard ? ConstraintWords::kMeshard
                                                          : ConstraintWords::kJax);
    std::map<std::pair<std::string, std::int64_t>, std::int64_t> of_line;
    for (const ChosenValue& each : found_.all) ++of_line[{each.shown.file, each.shown.line}];
    std::vector<bool> is_kept(found_.all.size());
    for (std::size_t i : kept) is_kept[i] = true;
    for (std::size_t i = 0; i < found_.all.size(); ++i) {
      ChosenSharding& shown = found_.all[i].shown;
      shown.difference = difference_[i];
      bool is_alone = of_line[{shown.file, shown.line}] == 1;
      internal::write_constraint(found_.all[i].sharding, words, is_alone, shown);
      std::vector<ChosenSharding>& list = is_kept[i] ? out.offered : out.dropped;
      auto alike = std::ranges::find_if(list, [&](const ChosenSharding& other) {
        return shown.part == ShardedPart::kValue && other.part == shown.part && shown.line > 0 &&
               std::tie(other.file, other.line, other.op, other.phase, other.type, other.spec,
                        other.difference) == std::tie(shown.file, shown.line, shown.op, shown.phase,
                                                      shown.type, shown.spec, shown.difference);
      });
      if (alike == list.end())
        list.push_back(shown);
      else
        ++alike->count;
    }
  }

  static constexpr std::string_view kAttribute = "#sdy.sharding";

  ModuleTemplate module_;
  const Target& target_;
  ExplicitShardingsOptions options_;
  ChosenValues found_;
  std::string mesh_name_;
  Traffic before_;
  std::vector<std::string> difference_;  // by choice: why it is not offered
  std::int64_t compiles_ = 0;
};

struct ExplicitJson : JsonForms {
  using JsonForms::write;
  void write(JsonWriter& json, const TensorType& type) const { json.value(type.to_string()); }
  void write(JsonWriter& json, const PartitionSpec& spec) const { json.value(spec.to_string()); }
};

std::string counted(std::int64_t count, std::string_view one, std::string_view several) {
  return cat(count, " ", count == 1 ? one : several);
}

}  // namespace

std::string ExplicitShardings::to_string() const {
  std::int64_t values = 0;
  for (const ChosenSharding& each : offered) values += each.count;
  std::string out = cat("program ", name, ": the compiler chose ",
                        counted(values, "sharding", "shardings"), " that can be written down; ",
                        determined, determined == 1 ? " follows" : " follow", " from others\n");
  for (const ChosenSharding& each : offered) append(out, "  ", each, "\n");
  append(out, offered.empty() ? "the program has " : "with these, the program has the same ",
         counted(collectives, "collective", "collectives"), ", ", byte_text(collective_bytes),
         " per device\n");
  if (!dropped.empty())
    append(out, "not offered, because ", dropped.size() == 1 ? "it changes" : "they change",
           " the collectives:\n");
  for (const ChosenSharding& each : dropped) append(out, "  ", each, "\n");
  for (const std::string& note : notes) append(out, "note: ", note, "\n");
  return out;
}

std::string to_json(const ExplicitShardings& found, std::size_t indent) {
  JsonWriter json(indent);
  json.begin_object();
  json.key("schema").value("meshard.explicit");
  json.key("version").value(1);
  write_json_members(json, found, ExplicitJson());
  json.end_object();
  return std::move(json).text();
}

ExplicitShardings explicit_shardings(std::string_view module, const Target& target,
                                     const ExplicitShardingsOptions& options,
                                     SourceLocation where) try {
  ModuleTemplate parsed = ModuleTemplate::parse(std::string(module), options.explain.entry).value();
  return ExplicitSearch(std::move(parsed), target, options).run();
} catch (const Error& error) {
  throw error.at(where);
}

}  // namespace meshard
