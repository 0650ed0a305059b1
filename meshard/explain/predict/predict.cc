#include "meshard/explain/predict/predict.h"

#include <charconv>

#include "meshard/explain/byte_text.h"
#include "meshard/explain/predict/module_program.h"
#include "meshard/explain/predict/op_moves.h"
#include "meshard/graph/abstract_tensor.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/lowering/lower.h"
#include "meshard/trace/trace_function.h"

namespace meshard {
namespace {

// What `n7` or `n7.0.3` in a lowered module stands for: a node, as Graph::find takes it.
std::optional<ModulePlace> place_in(const Graph& graph, std::string_view name) {
  if (!name.starts_with('n')) return std::nullopt;
  name.remove_prefix(1);
  std::uint32_t number = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc()) return std::nullopt;
  const Node* node = graph.find(name);
  if (!node)
    return ModulePlace{
        {number, cat("argument ", number), graph.source(number).to_string(), std::string(name)}};
  bool is_mark = marked_sharding(Value(const_cast<Node*>(node))).has_value();
  return ModulePlace{
      {number, std::string(node->op().name), node->where().to_string(), std::string(name)},
      is_mark};
}

// Sets the shardings of main's arguments or results. Those over another mesh are not known.
void set_shardings(const Mesh& mesh, const std::vector<LoweredValue>& lowered,
                   const std::vector<std::optional<std::size_t>>& numbers,
                   std::vector<PartialSharding>& values) {
  for (std::size_t i = 0; i < lowered.size() && i < numbers.size(); ++i) {
    const std::optional<Sharding>& sharding = lowered[i].sharding;
    if (!numbers[i] || !sharding) continue;
    PartialSharding& value = values[*numbers[i]];
    value = sharding->mesh() == mesh ? PartialSharding::of(*sharding, value.axes.size())
                                     : PartialSharding();
  }
}

}  // namespace

std::string PredictedMove::to_string() const {
  std::string text(meshard::to_string(kind));
  if (!axes.empty())
    append(text, cat(axes.size() == 1 ? " on axis " : " on axes ",
                     axes.size() == 1 ? axes[0].to_string() : meshard::to_string(axes)));
  append(text,
         cat(", ", byte_text(bytes), repetition_text(executions, executions_known, conditional)));
  if (full_rematerialization) append(text, " (the whole value on every device)");
  append(text, cat(", of ", type));
  if (from) append(text, cat(" ", from->spec()));
  if (to && from && *to != *from) append(text, cat(" to ", to->spec()));
  append(text, cat(", from ", origin.to_string()));
  if (!cause.empty()) append(text, cat(": ", cause));
  if (!suggestion.empty()) append(text, cat("; ", suggestion));
  return text;
}

std::vector<PredictedMove> Prediction::of(CollectiveKind kind) const {
  std::vector<PredictedMove> found;
  for (const PredictedMove& move : moves)
    if (move.kind == kind) found.push_back(move);
  return found;
}

std::int64_t Prediction::bytes() const {
  std::int64_t sum = 0;
  for (const PredictedMove& move : moves) sum = saturating_add(sum, move.total_bytes());
  return sum;
}

std::string Prediction::to_string() const {
  std::string text = cat(moves.size(), moves.size() == 1 ? " collective" : " collectives",
                         " predicted, ", byte_text(bytes()), " per device\n");
  for (const PredictedMove& move : moves) append(text, cat("  ", move, "\n"));
  for (const std::string& note : notes) append(text, cat("note: ", note, "\n"));
  return text;
}

Graph internal::graph_for_prediction(
    std::span<const Tensor> arguments,
    const std::function<std::vector<Tensor>(std::span<const Tensor> parameters)>& f) {
  // Only the types and shardings of the arguments matter.
  std::vector<Tensor> abstract;
  for (const Tensor& argument : arguments) {
    const Sharding* sharding = leaf_sharding(argument.value());
    abstract.push_back(abstract_tensor(
        argument.type(), sharding ? std::optional(*sharding) : marked_sharding(argument.value()),
        argument.where()));
  }
  std::vector<const Tensor*> given;
  for (const Tensor& argument : abstract) given.push_back(&argument);
  return trace_function(given, [&](std::span<const Tensor> parameters) { return f(parameters); },
                        {});
}

Prediction predict(const Graph& graph) {
  Program traced;
  traced.name = "main";
  traced.graph = graph;
  LoweredModule lowered = lower(traced);
  if (!lowered.mesh) return {.moves = {}, .results = {}, .notes = {"no value is sharded"}};
  const Mesh& mesh = *lowered.mesh;
  stablehlo::Module module = stablehlo::Module::parse(std::move(lowered.text)).value();
  ModuleProgram program = ModuleProgram::of(module, [&](std::string_view name) {
                            return place_in(graph, name);
                          }).value();
  std::vector<PartialSharding> values = program.given_shardings(mesh);
  set_shardings(mesh, lowered.arguments, program.arguments(), values);
  set_shardings(mesh, lowered.results, program.results(), values);
  propagate_program(mesh, program.rules().ops, values);
  ProgramMoves found = predict_moves(mesh, program.rules(), values);
  Prediction made{.moves = std::move(found.moves), .results = {}, .notes = {}};
  for (const std::optional<std::size_t>& result : program.results())
    made.results.push_back(result ? values[*result].sharding(mesh) : std::nullopt);
  if (std::size_t left_out = program.all_ops() - program.known_ops() + found.left_out; left_out > 0)
    made.notes.push_back(cat(left_out, " of ", program.all_ops(),
                             " operations are left out: they have no sharding rule, or their "
                             "values are on a mesh other than ",
                             mesh));
  return made;
}

}  // namespace meshard
