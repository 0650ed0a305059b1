#include "meshard/runtime/internal/repeated_compiles.h"

#include <algorithm>
#include <utility>

#include "meshard/base/advice.h"
#include "meshard/base/cat.h"
#include "meshard/graph/op_def.h"

namespace meshard {
namespace {

std::string place_text(const SourceLocation& where) {
  return where.line ? cat(" from ", where) : std::string();
}

std::string text_of(const ProgramOutline::Step& step) {
  return cat(step.op ? step.op->name : "an input", " ", step.type);
}

}  // namespace

ProgramOutline outline_of(const Graph& graph) {
  ProgramOutline outline;
  for (const Value& leaf : graph.captured())
    outline.steps.push_back({nullptr, leaf.type(), {}, leaf->where()});
  for (const Node* node : graph.nodes()) {
    ProgramOutline::Step step{&node->op(), node->type(), {}, node->where()};
    if (node->attributes()) node->attributes()->print(step.attributes);
    outline.steps.push_back(std::move(step));
  }
  return outline;
}

std::string difference(const ProgramOutline& now, const ProgramOutline& before) {
  const std::size_t count = std::min(now.steps.size(), before.steps.size());
  for (std::size_t i = 0; i < count; ++i) {
    const ProgramOutline::Step &step = now.steps[i], &was = before.steps[i];
    if (step.op != was.op)
      return cat(text_of(step), place_text(step.where), " is where ", text_of(was),
                 place_text(was.where), " was");
    if (step.type != was.type)
      return cat(step.op ? step.op->name : "the input", place_text(step.where), " is ", step.type,
                 ", was ", was.type);
    if (step.attributes != was.attributes)
      return cat(step.op->name, place_text(step.where), " has ", step.attributes, ", had ",
                 was.attributes);
  }
  if (now.steps.size() != before.steps.size())
    return cat("it has ", now.steps.size(), " inputs and operations, the one before had ",
               before.steps.size());
  return "its inputs are sharded otherwise, or other values of it are still in use";
}

void RepeatedCompiles::note(const LoadedProgram* program, const Graph& graph,
                            SourceLocation where) {
  if (where.line == 0) return;  // a read of the library itself
  std::unique_lock lock(mutex_);
  Reads& reads = places_[{where.file, where.line}];
  if (reads.programs.size() == kMany ||
      std::find(reads.programs.begin(), reads.programs.end(), program) != reads.programs.end())
    return;
  reads.programs.push_back(program);
  if (reads.programs.size() + 1 == kMany) reads.last = outline_of(graph);
  if (reads.programs.size() != kMany) return;
  std::string reason = difference(outline_of(graph), std::exchange(reads.last, {}));
  lock.unlock();
  internal::advise({"lazy.compiles",
                    cat("[lazy] what is read here was compiled as ", kMany,
                        " programs, the last time because ", reason,
                        ". Keep shapes and the order of operations the same in each step, and pass "
                        "integers that "
                        "vary as tensors"),
                    where});
}

}  // namespace meshard
