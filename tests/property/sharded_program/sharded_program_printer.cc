// Writes three programs as C++, which sharded_program_test compiles and runs: what the printer
// prints must be the program.
//
// usage: sharded_program_printer VALUES.cc GRADIENT.cc COLLECTIVES.cc
#include <algorithm>
#include <fstream>

#include "tests/property/sharded_program/program.h"

namespace meshard::property {
namespace {

Step step(const char* name, std::vector<Ref> operands,
          std::vector<std::vector<std::int64_t>> lists = {}) {
  Step step;
  step.operation = find_operation(name);
  step.operands = std::move(operands);
  step.lists = std::move(lists);
  return step;
}

Step placed(const char* name, Ref operand, int mesh, PartitionSpec spec) {
  Step placed = step(name, {operand});
  placed.placement = {mesh, std::move(spec)};
  return placed;
}

Ref x(int index) { return {true, index}; }
Ref t(int index) { return {false, index}; }

// Everything that the printer knows, in one program.
Program values() {
  Program program;
  program.meshes = {
      {MeshSpec::kRoot, {{"x", 2}, {"y", 4}}, {3, 1, 0, 2, 7, 5, 6, 4}, -1},
      {MeshSpec::kFlat, {{"a", 4}, {"b", 2}}, {0, 1, 2, 3, 4, 5, 6, 7}, -1},
      {MeshSpec::kRoot, {{"a", 2}, {"b", 3}}, {5, 1, 2, 6, 3, 4}, -1},
      {MeshSpec::kSubmesh, {{"b", 3}}, {6, 3, 4}, 2},
  };
  program.inputs = {
      {{DType::f32, {4, 6}},
       1,
       Placement{0, P(AxisRef("y", 2, 2), axes("x", AxisRef("y", 1, 2)))},
       false},
      {{DType::f32, {6, 3}}, 2, Placement{1, P("f")}, true},
      {{DType::i32, {5}}, 3, Placement{0, P(DimensionSpec(AxisList{"x"}, true))}, false},
      {{DType::bool_, {4, 3}}, 4, std::nullopt, false},
  };
  program.steps = {
      step("einsum of two", {x(0), x(1)}, {{0}}),
      step("where", {t(0), t(0), x(3)}),
      step("sum", {t(1)}, {{1}, {1}}),
      step("reshape", {t(1)}, {{2, 6}}),
      step("take", {t(3), x(2)}, {{1}}),
      placed("mark_sharding", t(4), 0, P(unconstrained, "y")),
      step("astype", {x(2)}, {{static_cast<std::int64_t>(DType::i64)}}),
      step("add in place", {t(5), t(5)}),
      step("clear_sharding", {t(7)}),
      step("assign", {x(1)}, {{6}}),
      placed("transfer", t(8), 3, P(none, "b")),
      step("softmax", {t(10)}, {{1}}),
  };
  program.steps[7].look = Step::kSync;
  program.steps[8].look = Step::kRead;
  program.results = {t(2), t(6), t(9), t(11)};
  program.jit_steps = 6;
  program.sync_results = true;
  program.retarget = {1, 0, 4, 2, 3, 7, 6, 5};
  return program;
}

Program gradient() {
  Program program;
  program.meshes = {{MeshSpec::kRoot, {{"x", 3}}, {4, 0, 2}, -1}};
  program.inputs = {{{DType::f64, {4, 5}}, 1, Placement{0, P("x")}, false},
                    {{DType::f64, {5}}, 2, Placement{0, P("x")}, false}};
  program.steps = {step("matmul", {x(0), x(1)}), step("tanh", {t(0)})};
  program.results = {t(1)};
  program.jit_steps = 2;
  program.gradient = true;
  return program;
}

// A stage for each device along "x" and "y", split over "z", with a branch that varies.
Step stages(int input) {
  Step stages = placed("stages", x(input), 0, P(axes("x", "y")));
  stages.operands.push_back(x(input));
  stages.lists = {{0, 1}};
  TensorType row{DType::f32, {8}};
  Body& body = stages.bodies.emplace_back();
  body.parameters = {row, {DType::i32, {}}, {DType::f32, {4, 8}}};
  Step branches = step("cond", {{true, 1, 1}, {false, 0, 1}});
  branches.bodies = {{{row}, {step("roll", {{true, 0, 2}}, {{1}, {0}})}, {{false, 0, 2}}},
                     {{row}, {step("tanh", {{true, 0, 2}})}, {{false, 0, 2}}}};
  body.steps = {placed("mark_sharding", {true, 0, 1}, 0, P("z")), std::move(branches)};
  body.results = {{false, 1, 1}};
  return stages;
}

// Every collective, in a manual function, and stages.
Program collectives() {
  Program program;
  program.meshes = {
      {MeshSpec::kRoot, {{"x", 2}, {"y", 2}, {"z", 2}}, {6, 3, 1, 0, 2, 7, 5, 4}, -1}};
  TensorType type{DType::f32, {8, 4}};
  program.inputs = {{type, 1, std::nullopt, false}, {{DType::f32, {4, 8}}, 2, std::nullopt, false}};
  Step manual = placed("manual", x(0), 0, P(axes("x", "y")));
  manual.lists = {{}};
  Body& body = manual.bodies.emplace_back();
  body.parameters = {type};
  const std::vector<std::int64_t> along_x{0, 1, 2, 2, 2}, along_y{0, 2, 2, 1, 2},
      along_z{-1, 1, 2, 1, 1};
  auto inside = [](int index) { return Ref{index < 0, std::max(index, 0), 1}; };
  auto add = [&](const char* name, std::vector<std::vector<std::int64_t>> lists) {
    body.steps.push_back(
        step(name, {inside(static_cast<int>(body.steps.size()) - 1)}, std::move(lists)));
  };
  add("all_reduce", {along_x, {0}});
  add("all_reduce", {along_z, {2}});
  add("plus axis_index", {along_y, {1}});
  add("all_reduce of maxima", {along_y, {1}});
  add("plus axis_index", {along_x, {0}});
  add("plus all_reduce", {along_y, {1}});
  add("ring_shift", {along_x, {0}, {1}});
  add("minus mean of all", {{0, 1}, {32}});
  add("reduce_scatter of all_gather", {along_y, {1}});
  for (std::int64_t form : {0, 1, 2}) {
    std::vector<std::int64_t> blocks = along_x;
    blocks.insert(blocks.end(), {form, 1});
    add("reversed along an axis", {blocks, {0}});
  }
  body.results = {inside(static_cast<int>(body.steps.size()) - 1)};
  program.steps = {std::move(manual), stages(1)};
  program.results = {t(0), t(1)};
  return program;
}

}  // namespace
}  // namespace meshard::property

int main(int argc, char** argv) {
  using namespace meshard::property;
  if (argc != 4) return 2;
  std::ofstream(argv[1]) << to_code(values());
  std::ofstream(argv[2]) << to_code(gradient());
  std::ofstream(argv[3]) << to_code(collectives());
  return 0;
}
