// From a user's function to the module text for the compiler: a training step of 12 layers.
#include <cstdio>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/gpt_model.h"
#include "bench/report.h"
#include "bench/timing.h"
#include "meshard/lowering/lower.h"
#include "meshard/meshard.h"

namespace meshard::bench {
namespace {

struct Phases {
  Least record, lower, all;
  std::size_t nodes = 0, ops = 0, bytes = 0;
};

std::size_t count_text(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t i = text.find(part); i != text.npos; i = text.find(part, i + part.size()))
    ++count;
  return count;
}

// What jit does for a new signature, up to the module text.
double trace_and_lower(Phases& phases, LayerForm form) {
  GptSizes sizes;
  sizes.form = form;
  double begin = now();
  Program program = recorded_step(sizes);
  double middle = now();
  LoweredModule module = lower(program);
  double end = now();
  phases.record.take(middle - begin);
  phases.lower.take(end - middle);
  phases.all.take(end - begin);
  phases.nodes = program.graph.nodes().size();
  phases.ops = count_text(module.text, "stablehlo.");
  phases.bytes = module.text.size();
  return end - begin;
}

// The floor: the same number of nodes in a plain vector, looked up in a hash table, and printed.
double build_and_print(std::size_t ops) {
  struct Node {
    int op, count, operands[3];
    std::vector<long> shape;
    std::string attributes;
  };
  double begin = now();
  std::vector<Node> nodes;
  std::unordered_multimap<std::size_t, int> known;
  for (int i = 0; i < static_cast<int>(ops); ++i) {
    Node node{i % 37, 1 + i % 3, {}, {8, 4, 128, 64}, "contracting_dims = [1] x [0]"};
    std::size_t hash = static_cast<std::size_t>(node.op);
    for (int k = 0; k < node.count; ++k) {
      node.operands[k] = i ? static_cast<int>((long(i) * 7919 + long(k) * 104729) % i) : 0;
      hash = hash * 1000003 + static_cast<std::size_t>(node.operands[k]);
    }
    auto [first, last] = known.equal_range(hash);
    bool found = false;
    for (auto it = first; it != last; ++it) {
      const Node& other = nodes[static_cast<std::size_t>(it->second)];
      found = found || (other.op == node.op && other.shape == node.shape && other.count < 0);
    }
    if (found) continue;
    known.emplace(hash, static_cast<int>(nodes.size()));
    nodes.push_back(std::move(node));
  }
  std::string text;
  char buffer[96];
  auto print = [&](const char* form, auto... values) {
    text.append(buffer,
                static_cast<std::size_t>(std::snprintf(buffer, sizeof buffer, form, values...)));
  };
  static const char* names[] = {"add", "multiply", "dot_general", "broadcast_in_dim"};
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    text += "    %";
    print("%zu = stablehlo.%s ", i, names[node.op & 3]);
    for (int k = 0; k < node.count; ++k) print("%%%d, ", node.operands[k]);
    text += node.attributes + " : (tensor<";
    for (long size : node.shape) print("%ldx", size);
    text += "f32>) -> tensor<";
    for (long size : node.shape) print("%ldx", size);
    text += "f32>\n";
  }
  double time = now() - begin;
  volatile std::size_t kept = text.size();
  (void)kept;
  return time;
}

void step_row(Report& report, const char* name, const char* work, LayerForm form, double bound,
              const char* goal) {
  Phases phases;
  trace_and_lower(phases, form);
  auto [ours, floor] = in_turns(
      20, [&] { return trace_and_lower(phases, form); },
      [&] { return build_and_print(phases.ops); });
  char note[160];
  std::snprintf(note, sizeof note,
                "%zu StableHLO ops, %zu nodes, %zu KB; recording %.1f ms, lowering %.1f ms",
                phases.ops, phases.nodes, phases.bytes / 1000, phases.record.value / 1e3,
                phases.lower.value / 1e3);
  report.add({.name = name,
              .work = work,
              .unit = "ms",
              .ours = ours / 1e3,
              .floor = floor / 1e3,
              .floor_name = "build as many plain nodes and print them",
              .goal = goal,
              .bound = bound,
              .note = note});
}

}  // namespace

void step_rows(Report& report) {
  step_row(report, "step.gpt12", "trace, differentiate and lower a 12-layer GPT's Adam step",
           LayerForm::kPlain, 20, "at most 20 ms");
  step_row(report, "step.gpt12.repeat", "the same with the layers in repeat()", LayerForm::kRepeat,
           5, "at most 5 ms");
}

}  // namespace meshard::bench
