// Tested in meshard/lowering/lower_test.cc.
#include "meshard/lowering/internal/source_locations.h"

#include "meshard/base/cat.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/program_phases.h"
#include "meshard/stablehlo/types.h"

namespace meshard {
namespace {

// Names of JAX's transformations, which readers of other modules know, too.
std::string_view prefix_of(ProgramPhase phase) {
  switch (phase) {
    case ProgramPhase::kUnknown: break;
    case ProgramPhase::kForward: return "jvp()/";
    case ProgramPhase::kBackward: return "transpose(jvp())/";
    case ProgramPhase::kOptimizer: return "optimizer()/";
  }
  return "";
}

// The location of an op, without `loc(` and `)`. The ops that remove an argument's padding have the
// number of the argument: they are nobody's.
std::string location_of(const Graph& graph, const GraphPhases& phases, std::string_view path) {
  const Node* node = graph.find(path);
  if (!node) return "unknown";
  std::string text;
  stablehlo::append_quoted(text, cat(prefix_of(phases.of(path)), node->op().name));
  if (!node->where().known()) return text;
  text.push_back('(');
  stablehlo::append_quoted(text, node->where().file);
  return cat(text, ":", node->where().line, ":1)");
}

}  // namespace

std::string with_source_locations(std::string_view text, const Graph& graph) {
  // No constant and no name contains these characters: quotes in them are escaped.
  constexpr std::string_view kLocation = "loc(\"n";
  const GraphPhases phases(graph);
  std::string out;
  out.reserve(text.size() * 2);
  std::size_t done = 0;
  for (std::size_t at = text.find(kLocation); at != std::string_view::npos;
       at = text.find(kLocation, at + 1)) {
    std::size_t path = at + kLocation.size(), end = text.find_first_not_of("0123456789.", path);
    if (end == std::string_view::npos || end == path || text[end] != '"') continue;
    out.append(text, done, at + 4 - done);
    out.append(location_of(graph, phases, text.substr(path, end - path)));
    done = end + 1;
  }
  out.append(text, done);
  return out;
}

}  // namespace meshard
