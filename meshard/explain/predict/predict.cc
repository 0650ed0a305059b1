#include "meshard/explain/predict/predict.h"

#include <algorithm>

#include "meshard/explain/byte_text.h"
#include "meshard/explain/predict/op_moves.h"
#include "meshard/explain/predict/predict_shardings.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/lowering/program_mesh.h"

namespace meshard {

std::string PredictedMove::to_string() const {
  std::string text(meshard::to_string(kind));
  if (!axes.empty())
    append(text, cat(axes.size() == 1 ? " on axis " : " on axes ",
                     axes.size() == 1 ? axes[0].to_string() : meshard::to_string(axes)));
  append(text, cat(", ", byte_text(bytes)));
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
  for (const PredictedMove& move : moves) sum += move.bytes;
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
  internal::TraceScope scope;
  std::vector<Tensor> parameters;
  std::vector<Value> values, results;
  for (const Tensor& argument : arguments) {
    const Sharding* sharding = leaf_sharding(argument.value());
    std::optional<Sharding> said =
        sharding ? std::optional(*sharding) : marked_sharding(argument.value());
    parameters.push_back(make_parameter(argument.type(), std::move(said), argument.where()));
    values.push_back(parameters.back().value());
  }
  for (const Tensor& result : f(parameters)) results.push_back(result.value());
  return Graph::build(values, results, scope.trace());
}

Prediction predict(const Graph& graph) {
  std::optional<Mesh> mesh = ProgramMeshes(graph).numbering();
  if (!mesh) return {.moves = {}, .results = {}, .notes = {"no value is sharded"}};
  GraphProgram program = program_of_graph(graph);
  std::vector<PartialSharding> values = starting_shardings(graph, *mesh, program);
  propagate_program(*mesh, program.rules.ops, values);
  Prediction made;
  std::size_t left_out =
      graph.nodes().size() - program.rules.ops.size() +
      predict_moves(*mesh, program.rules, values, [&](std::size_t, PredictedMove move) {
        made.moves.push_back(std::move(move));
      });
  for (const Value& result : graph.results())
    made.results.push_back(values[program.number(graph, result)].sharding(*mesh));
  if (left_out > 0)
    made.notes.push_back(cat(left_out, " of ", graph.nodes().size(),
                             " ops are left out: they are inside manual regions, or their "
                             "values are on a mesh other than ",
                             *mesh));
  return made;
}

}  // namespace meshard
