// Large programs: record, differentiate and lower up to 100,000 ops, and chains of lazy values.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/scale/curve.h"
#include "meshard/autodiff/backward.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/graph/superseded.h"
#include "meshard/lowering/lower.h"
#include "meshard/meshard.h"
#include "meshard/ops/rolling/rolling_advice.h"

namespace meshard::bench {
namespace {

constexpr int kGraphSizes[] = {1000, 10000, 100000};

// What a program of `ops` ops computes from its parameters.
using Form = Tensor (*)(int ops, const std::vector<Tensor>& parameters, const Mesh& mesh);

// Each op uses the result of the one before. Every tenth op marks a sharding.
Tensor deep(int ops, const std::vector<Tensor>& parameters, const Mesh& mesh) {
  Tensor y = parameters[0];
  for (int i = 0; i < ops; ++i) {
    if (i % 10 == 9)
      y = mark_sharding(y, mesh, P("dp", none));
    else if (i % 2 == 0)
      y = y * parameters[1];
    else
      y = tanh(y);
  }
  return sum(y);
}

// One value has half as many users as there are ops.
Tensor shared(int ops, const std::vector<Tensor>& parameters, const Mesh&) {
  Tensor y = parameters[1];
  for (int i = 0; i < ops / 2; ++i) y = y + tanh(parameters[0] * y);
  return sum(y);
}

// Independent branches whose results are added pairwise.
Tensor wide(int ops, const std::vector<Tensor>& parameters, const Mesh&) {
  std::vector<Tensor> level;
  for (int i = 0; i < ops / 3; ++i) level.push_back(parameters[0] * static_cast<float>(i));
  for (Tensor& each : level) each = tanh(each);
  while (level.size() > 1) {
    std::vector<Tensor> next;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) next.push_back(level[i] + level[i + 1]);
    if (level.size() % 2 == 1) next.push_back(level.back());
    level = std::move(next);
  }
  return sum(level[0]);
}

// Equal layers, each with two parameters of its own: 8 ops in a layer.
Tensor layered(int ops, const std::vector<Tensor>& parameters, const Mesh&) {
  Tensor y = parameters[0];
  for (std::size_t i = 0; i < static_cast<std::size_t>(ops / 8); ++i) {
    const Tensor &scale = parameters[2 + 2 * i], &shift = parameters[3 + 2 * i];
    Tensor inner = tanh(y * scale + shift);
    y = y + inner * scale * inner - shift * y;
  }
  return sum(y);
}

// A piece of the input for each op, put together again.
Tensor sliced(int ops, const std::vector<Tensor>& parameters, const Mesh&) {
  std::vector<Tensor> pieces;
  Tensor row = reshape(parameters[0], {64});
  for (int i = 0; i < ops / 2; ++i) pieces.push_back(tanh(slice(row, {i % 63}, {i % 63 + 1})));
  return sum(concat(pieces, 0));
}

// The times of as many plain nodes as a program of `ops` ops and its gradient have. All are linear,
// but for the machine's caches.
struct PlainTimes {
  double make = 0;
  double print = 0;  // with numbers from a hash table
  double release = 0;
};

PlainTimes plain_nodes(int ops) {
  struct Plain {
    Plain* operands[2];
    char rest[320];
  };
  PlainTimes times;
  std::vector<std::unique_ptr<Plain>> nodes;
  times.make = milliseconds_of([&] {
    for (int i = 0; i < 3 * ops; ++i) {
      nodes.push_back(std::make_unique<Plain>());
      Plain* before = nodes[static_cast<std::size_t>(std::max(i - 1, 0))].get();
      *nodes.back() = {{before, nodes[static_cast<std::size_t>(i / 2)].get()}, {}};
    }
  });
  times.print = milliseconds_of([&] {
    std::unordered_map<const Plain*, std::size_t> numbers;
    for (const auto& node : nodes) numbers.emplace(node.get(), numbers.size());
    std::string text;
    char line[160];
    for (const auto& node : nodes) {
      int length = std::snprintf(
          line, sizeof line, "%%%zu = stablehlo.multiply %%%zu, %%%zu : tensor<8x8xf32>\n",
          numbers.at(node.get()), numbers.at(node->operands[0]), numbers.at(node->operands[1]));
      text.append(line, static_cast<std::size_t>(length));
    }
    volatile std::size_t kept = text.size();
    (void)kept;
  });
  times.release = milliseconds_of([&] { nodes.clear(); });
  return times;
}

struct Phase {
  double record = 0, differentiate = 0, lower = 0, key = 0, search = 0, release = 0;
};

Phase measure_once(Form form, int ops, bool many) {
  Phase phase;
  Mesh mesh({{"dp", 2}, {"tp", 4}});
  double begin = now(), end = 0;
  auto lap = [&](double& into) {
    end = now();
    into += (end - begin) / 1e3;
    begin = end;
  };
  {
    Program program;
    {
      internal::TraceScope scope;
      std::vector<Tensor> parameters;
      std::vector<Value> values;
      for (int i = 0; i < (many ? 2 + 2 * (ops / 8) : 2); ++i) {
        parameters.push_back(make_parameter({DType::f32, {8, 8}}, std::nullopt, {}));
        values.push_back(parameters.back().value());
      }
      Tensor loss = form(ops, parameters, mesh);
      lap(phase.record);
      Tensor one = ones({});
      std::vector<Tensor> results =
          backward(std::span(&loss, 1), std::span(&one, 1), parameters, {});
      lap(phase.differentiate);
      results.push_back(loss);
      std::vector<Value> outputs;
      for (const Tensor& each : results) outputs.push_back(each.value());
      program.graph = Graph::build(values, outputs, scope.trace());
      lap(phase.record);
    }
    Fingerprint key = program.graph.fingerprint();
    lap(phase.key);
    std::optional<RollingAdvice> advice = rolling_advice(program.graph);
    bool any = !superseded_nodes(program.graph).empty();
    lap(phase.search);
    LoweredModule module = lower(program);
    lap(phase.lower);
    volatile bool kept = any || advice.has_value() || module.text.empty() || key == Fingerprint();
    (void)kept;
  }
  lap(phase.release);
  return phase;
}

void graph_curve(Report& report, const std::string& name, const std::string& work, Form form,
                 bool many = false) {
  constexpr std::size_t kSizes = std::size(kGraphSizes);
  std::vector<Phase> phases(kSizes, {1e300, 1e300, 1e300, 1e300, 1e300, 1e300});
  std::vector<PlainTimes> floors(kSizes, {1e300, 1e300, 1e300});
  // The sizes take turns, as in least_of_sizes().
  for (int turn = 0; turn < 8; ++turn)
    for (std::size_t i = 0; i < kSizes; ++i) {
      const int ops = kGraphSizes[i];
      if (ops > 50000 && turn >= 3) continue;
      Phase once = measure_once(form, ops, many);
      PlainTimes plain = plain_nodes(ops);
      for (double PlainTimes::*part : {&PlainTimes::make, &PlainTimes::print, &PlainTimes::release})
        floors[i].*part = std::min(floors[i].*part, plain.*part);
      for (double Phase::*part : {&Phase::record, &Phase::differentiate, &Phase::lower, &Phase::key,
                                  &Phase::search, &Phase::release})
        phases[i].*part = std::min(phases[i].*part, once.*part);
    }
  auto add = [&](const char* part, const char* what, double Phase::*value,
                 double PlainTimes::*floor, const char* floor_name) {
    Curve curve{.name = "scale.graph." + name + "." + part,
                .work = what + work,
                .of = "ops",
                .floor_name = floor_name};
    for (std::size_t i = 0; i < phases.size(); ++i)
      curve.points.push_back(
          {static_cast<double>(kGraphSizes[i]), phases[i].*value, floors[i].*floor});
    add_curve(report, curve);
  };
  const char *make = "make as many plain nodes", *print = "number and print as many plain nodes",
             *release = "release as many plain nodes";
  add("record", "record ", &Phase::record, &PlainTimes::make, make);
  add("grad", "differentiate ", &Phase::differentiate, &PlainTimes::make, make);
  add("lower", "lower the program and its gradient: ", &Phase::lower, &PlainTimes::print, print);
  add("key", "the cache key of ", &Phase::key, &PlainTimes::print, print);
  add("search", "search for equal layers in ", &Phase::search, &PlainTimes::print, print);
  add("release", "release ", &Phase::release, &PlainTimes::release, release);
}

// A chain of lazy values, of which only the last has a handle; and the same chain released.
void lazy_curves(Report& report) {
  Curve record{.name = "scale.lazy.record", .work = "record a chain of lazy values", .of = "ops"},
      release{.name = "scale.lazy.release", .work = "release the chain", .of = "ops"};
  for (int ops : {10000, 100000, 1000000}) {
    Tensor x = from_host(HostArray::full<float>({8, 8}, 1.0f));
    Least recorded, released;
    for (int turn = 0; turn < 3; ++turn) {
      Tensor y = x;
      recorded.take(milliseconds_of([&] {
        for (int i = 0; i < ops; ++i) y = y + x;
      }));
      released.take(milliseconds_of([&] { y = Tensor(); }));
    }
    record.points.push_back({static_cast<double>(ops), recorded.value});
    release.points.push_back({static_cast<double>(ops), released.value});
  }
  add_curve(report, record);
  add_curve(report, release);
}

}  // namespace

void graph_curves(Report& report) {
  graph_curve(report, "deep", "a chain of ops", deep);
  graph_curve(report, "shared", "ops that share an operand", shared);
  graph_curve(report, "wide", "independent branches", wide);
  graph_curve(report, "layered", "equal layers with parameters of their own", layered, true);
  graph_curve(report, "sliced", "slices that are concatenated", sliced);
  lazy_curves(report);
}

}  // namespace meshard::bench
