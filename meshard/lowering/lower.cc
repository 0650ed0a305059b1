#include "meshard/lowering/lower.h"

#include <algorithm>

#include "meshard/graph/annotation.h"
#include "meshard/graph/body.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/lowering/internal/boundary_padding.h"
#include "meshard/lowering/internal/dropped_shardings.h"
#include "meshard/lowering/internal/node_writer.h"
#include "meshard/lowering/internal/partial_sums.h"
#include "meshard/lowering/internal/source_locations.h"
#include "meshard/lowering/program_mesh.h"
#include "meshard/ops/definition/host_call.h"
#include "meshard/sharding/open_dimensions.h"
#include "meshard/stablehlo/module_writer.h"
#include "meshard/stablehlo/types.h"

namespace meshard {
namespace {

using stablehlo::ArgumentText;
using stablehlo::ResultText;
using stablehlo::Typed;
using SsaValue = stablehlo::Value;

bool calls_host(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node* node) {
    auto bodies = bodies_of(*node);
    return is_host_call(*node) || std::any_of(bodies.begin(), bodies.end(), [](const Body& body) {
             return calls_host(body.graph());
           });
  });
}

std::string quoted_attribute(std::string_view name, std::string_view value) {
  std::string text = cat(name, " = ");
  stablehlo::append_quoted(text, value);
  return text;
}

// `<["data"=2], device_ids=[0, 1]>`; empty if there is no mesh.
std::string device_mesh_text(const std::optional<Mesh>& mesh) {
  if (!mesh) return "";
  std::string axes, ids;
  for (const MeshAxis& axis : mesh->axes())
    append(axes, cat(axes.empty() ? "\"" : ", \"", axis.name, "\"=", axis.size));
  for (std::int64_t id : mesh->device_ids()) append(ids, cat(ids.empty() ? "" : ", ", id));
  return cat("<[", axes, "], device_ids=[", ids, "]>");
}

class Lowering {
 public:
  Lowering(const Program& program, const LowerOptions& options, bool to_file = false)
      : program_(program),
        graph_(program.graph),
        for_file_(to_file),
        calls_host_(options.check_nans || calls_host(program.graph)),
        meshes_(program.unsharded ? ProgramMeshes() : ProgramMeshes(program.graph, calls_host_)),
        quirks_(options.quirks ? options.quirks(meshes_.numbering()) : quirks_of("").value()) {
    if (options.check_nans) module_.nan_checks = NanChecks::make();
    module_.calls_host = calls_host_;
  }

  LoweredModule run() {
    module_.name = program_.name;
    module_.mesh = meshes_.numbering();
    module_.meshes = meshes_.all();
    describe_arguments();
    describe_results();
    std::string more;
    if (for_file_) more = quoted_attribute("meshard.mesh", device_mesh_text(module_.mesh));
    stablehlo::ModuleWriter writer(program_.name, module_.num_partitions(), 1, more);
    writer.reserve(128 * graph_.nodes().size() + 4096);
    for (const auto& [name, text] : meshes_.definitions()) writer.mesh(name, text);
    begin_main(writer);
    NodeWriter nodes(graph_, meshes_, writer, module_.nan_checks.get(), quirks_);
    unpad_arguments(writer, nodes);
    nodes.write_nodes();
    end_main(writer, nodes);
    module_.text = std::move(writer).finish();
    return std::move(module_);
  }

 private:
  // ---- Arguments and results.

  LoweredValue describe(const TensorType& type, std::optional<Sharding> sharding) const {
    if (!module_.mesh) sharding.reset();
    // A value without elements is not split: the partitioner silently drops such a sharding.
    if (sharding && type.size() == 0)
      sharding = Sharding::replicated(sharding->mesh(), static_cast<std::size_t>(type.rank()));
    if (sharding) sharding = closed_at_boundary(*sharding, meshes_);
    LoweredValue value{type, type, std::move(sharding)};
    if (value.sharding && module_.num_partitions() > 1)
      value.padded = padded_type(type, *value.sharding);
    return value;
  }

  void describe_arguments() {
    auto add = [&](const Value& leaf) {
      const Sharding* sharding = leaf_sharding(leaf);
      module_.arguments.push_back(
          describe(leaf.type(), sharding ? std::optional(*sharding) : std::nullopt));
    };
    for (const Value& leaf : graph_.parameters()) add(leaf);
    for (const Value& leaf : graph_.captured()) add(leaf);
  }

  void describe_results() {
    std::vector<std::optional<Sharding>> dropped(graph_.results().size());
    if (module_.num_partitions() > 1) dropped = dropped_shardings(graph_, meshes_);
    for (std::size_t i = 0; i < graph_.results().size(); ++i) {
      const Value& result = graph_.results()[i];
      if (const ManualAxes* manual = manual_axes(result))
        throw_invalid(
            result->where(), "[lowering] a program cannot return the local value ", result.type(),
            " ", *manual,
            ": each device holds its own value. Return a result of the manual function instead");
      // The sharding of a marked result is exact. So is that of a parameter that is passed through,
      // and an explicit sharding.
      std::optional<Sharding> sharding = marked_sharding(result);
      if (!sharding)
        if (const Sharding* leaf = leaf_sharding(result)) sharding = *leaf;
      if (!sharding)
        if (const Sharding* part = explicit_sharding(result)) sharding = *part;
      if (!sharding) sharding = std::move(dropped[i]);
      module_.results.push_back(describe(result.type(), std::move(sharding)));
    }
  }

  // ---- Donation: a result may reuse the memory of an argument of the same padded type and
  // sharding.

  void pair_donations(std::vector<ArgumentText>& arguments) const {
    std::vector<bool> taken(module_.results.size(), false);
    for (std::uint32_t donated : program_.donated) {
      const LoweredValue& argument = module_.arguments[donated];
      arguments[donated].donated = true;
      for (std::size_t i = 0; i < module_.results.size(); ++i) {
        const LoweredValue& result = module_.results[i];
        bool known = module_.num_partitions() == 1 || (argument.sharding && result.sharding &&
                                                       *argument.sharding == *result.sharding);
        if (taken[i] || !known || result.padded != argument.padded) continue;
        taken[i] = true;
        arguments[donated].donated = false;
        arguments[donated].aliases_output = static_cast<int>(i);
        break;
      }
    }
  }

  // ---- The function.

  // What a file says about an argument or result in addition.
  static std::string for_file(const LoweredValue& value, const SourceLocation& where) {
    std::string text;
    if (where.known()) text = quoted_attribute("meshard.place", where.to_string());
    if (value.padded != value.type) {
      std::string type;
      stablehlo::append_type(type, value.type);
      append(text, cat(text.empty() ? "" : ", ", quoted_attribute("meshard.type", type)));
    }
    return text;
  }

  void begin_main(stablehlo::ModuleWriter& writer) {
    std::vector<std::string> texts(module_.arguments.size() + module_.results.size());
    std::vector<std::string> more(texts.size()), names(module_.arguments.size());
    std::vector<ArgumentText> arguments;
    for (std::size_t i = 0; i < module_.arguments.size(); ++i) {
      const LoweredValue& argument = module_.arguments[i];
      if (argument.sharding) texts[i] = border_text(*argument.sharding);
      names[i] = cat("n", i);
      if (for_file_) {
        const std::vector<std::string>& given = program_.parameter_names;
        names[i] = i < given.size() ? given[i] : "";
        more[i] = for_file(argument, graph_.source(static_cast<std::uint32_t>(i)));
        if (i >= graph_.parameters().size())
          append(more[i], cat(more[i].empty() ? "" : ", ", "meshard.captured"));
      }
      arguments.push_back({.type = &argument.padded,
                           .sharding = texts[i],
                           .name = names[i],
                           .attributes = more[i]});
    }
    std::vector<ResultText> results;
    for (std::size_t i = 0; i < module_.results.size(); ++i) {
      const LoweredValue& result = module_.results[i];
      std::string& text = texts[module_.arguments.size() + i];
      if (result.sharding) text = border_text(*result.sharding);
      std::string& attributes = more[module_.arguments.size() + i];
      if (for_file_) attributes = for_file(result, graph_.results()[i]->where());
      results.push_back({.type = &result.padded, .sharding = text, .attributes = attributes});
    }
    pair_donations(arguments);
    writer.begin_function("main", arguments, results);
  }

  std::string border_text(const Sharding& sharding) const {
    return meshes_.border_text(has_summands(sharding) ? sharding : summed(sharding));
  }

  // Converts a value at the program's boundary to the device order that is used inside.
  SsaValue in_order(stablehlo::ModuleWriter& writer, SsaValue value, const LoweredValue& lowered) {
    if (!lowered.sharding) return value;
    const Sharding sharding = summed(*lowered.sharding);
    std::string inside = meshes_.sharding_text(sharding);
    if (inside == meshes_.border_text(sharding)) return value;
    SsaValue ordered = writer.temporary();
    writer.sharding_constraint(ordered, value, lowered.padded, inside);
    return ordered;
  }

  void unpad_arguments(stablehlo::ModuleWriter& writer, NodeWriter& nodes) {
    for (std::uint32_t i = 0; i < module_.arguments.size(); ++i) {
      const LoweredValue& argument = module_.arguments[i];
      SsaValue given = SsaValue::argument(static_cast<std::int32_t>(i));
      if (argument.sharding && has_summands(*argument.sharding)) {
        SsaValue whole = writer.temporary();
        writer.sharding_constraint(whole, given, argument.padded,
                                   meshes_.border_text(summed(*argument.sharding)));
        given = whole;
      }
      given = in_order(writer, given, argument);
      nodes.name_leaf(i, nodes.cut(given, argument.padded, argument.type, i));
    }
  }

  void end_main(stablehlo::ModuleWriter& writer, NodeWriter& nodes) {
    std::vector<Typed> returned;
    for (std::size_t i = 0; i < module_.results.size(); ++i) {
      nodes.check_result(i);
      const LoweredValue& result = module_.results[i];
      const Value& value = graph_.results()[i];
      if (result.sharding && has_summands(*result.sharding)) {
        returned.emplace_back(summands(writer, nodes, value, result), result.padded);
        continue;
      }
      SsaValue padded =
          nodes.pad(nodes.value_of(value), result.type, result.padded, graph_.number(value.node()));
      returned.emplace_back(in_order(writer, padded, result), result.padded);
    }
    writer.end_function(returned);
  }

  // An unreduced result.
  SsaValue summands(stablehlo::ModuleWriter& writer, NodeWriter& nodes, const Value& value,
                    const LoweredValue& result) {
    const Sharding& sharding = *result.sharding;
    std::uint32_t number = graph_.number(value.node());
    const Sharding* given = number < graph_.num_leaves() ? leaf_sharding(value) : nullptr;
    if (given && *given == sharding) return SsaValue::argument(static_cast<std::int32_t>(number));
    bool keeps_order = meshes_.sharding_text(sharding) == meshes_.border_text(sharding);
    const Value* unsummed = marked_sharding(value) ? unsummed_operand(*value.node()) : nullptr;
    if (unsummed && keeps_order && result.type == result.padded) {
      SsaValue marked = writer.temporary();
      writer.sharding_constraint(marked, nodes.value_of(*unsummed), result.type,
                                 meshes_.border_text(sharding));
      return marked;
    }
    SsaValue padded = nodes.pad(nodes.value_of(value), result.type, result.padded, number);
    return write_summands(writer, in_order(writer, padded, result), result.padded, sharding,
                          meshes_);
  }

  const Program& program_;
  const Graph& graph_;
  bool for_file_;
  bool calls_host_;
  ProgramMeshes meshes_;
  QuirkSet quirks_;
  LoweredModule module_;
};

}  // namespace

bool LoweredValue::is_exact() const { return sharding && !has_open_dimensions(*sharding); }

LoweredModule lower(const Program& program, const LowerOptions& options) {
  return Lowering(program, options).run();
}

std::string lower_for_file(const Program& program) {
  return with_source_locations(Lowering(program, {}, /*to_file=*/true).run().text, program.graph);
}

}  // namespace meshard
