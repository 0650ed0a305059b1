#include "meshard/explain/program_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unordered_map>

#include "meshard/base/cat.h"
#include "meshard/topology/hybrid_mesh.h"

namespace meshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Target facts_target(std::string_view name) { return Target::parse(name).value(); }

stablehlo::ModuleFacts module_facts(std::string_view header, std::string_view attributes = "") {
  return stablehlo::read_module(cat("module @m ", attributes, " {\n", header, "\n}")).value();
}

stablehlo::ModuleFacts two_axes(int data, int model) {
  return module_facts(cat("sdy.mesh @mesh = <[\"data\"=", data, ", \"model\"=", model, R"(]>
    func.func @main(%arg0: tensor<16x32xbf16> {sdy.sharding = #sdy.sharding<@mesh,
        [{"data"}p1, {"model", ?}]>, tf.aliasing_output = 0 : i32} loc("w"), %arg1: tensor<i4>)
        -> tensor<16x32xbf16> {)",
                          "}"));
}

std::string facts_error(const stablehlo::ModuleFacts& module, std::string_view target,
                        const ModuleLayout& layout = {}) {
  Result<ProgramFacts> facts = facts_of_module(module, facts_target(target), layout);
  return facts.ok() ? "" : facts.error().message();
}

TEST(ProgramFacts, ArgumentsAndTheirShardings) {
  ProgramFacts facts = facts_of_module(two_axes(2, 2), facts_target("v5e:2x2")).value();
  ASSERT_EQ(facts.program.arguments.size(), 2u);
  EXPECT_EQ(facts.program.arguments[0].type, (TensorType{DType::bf16, Shape{16, 32}}));
  ASSERT_TRUE(facts.program.arguments[0].sharding.has_value());
  EXPECT_EQ(facts.program.arguments[0].sharding->shard_shape(Shape{16, 32}), (IntVector{8, 16}));
  EXPECT_FALSE(facts.program.arguments[0].is_exact());  // dimension 1 is open
  EXPECT_THAT(facts.argument_names, ElementsAre("w", ""));
  EXPECT_THAT(facts.donated, ElementsAre(true, false));
  // meshard has no 4-bit type: the argument is shown as an 8-bit one, with a note.
  EXPECT_EQ(facts.program.arguments[1].type.dtype, DType::u8);
  ASSERT_EQ(facts.notes.size(), 1u);
  EXPECT_THAT(facts.notes[0], HasSubstr("i4"));
}

TEST(ProgramFacts, TheFirstAxesRunOverSlices) {
  Target target = facts_target("v5e:4x4*2");
  ProgramFacts facts = facts_of_module(two_axes(8, 4), target).value();
  const Mesh& mesh = *facts.program.mesh;
  std::unordered_map<std::int64_t, std::int64_t> slice;
  for (const DeviceAttributes& device : target.topology().devices())
    slice[device.id] = device.slice_index.value();
  for (std::int64_t position = 0; position < 32; ++position)
    EXPECT_EQ(slice.at(mesh.device_id(position)), position / 16) << position;
}

TEST(ProgramFacts, OrderOfTheDevices) {
  Target target = facts_target("v5e:4x4");
  std::vector<MeshAxis> axes = {{"data", 2}, {"model", 8}};
  EXPECT_EQ(mesh_on_target(axes, target, DeviceOrder::kTorus).value(),
            torus_mesh(target.topology(), {2, 8}, {{"data", "model"}}));
  Mesh ids = mesh_on_target(axes, target, DeviceOrder::kIds).value();
  for (std::int64_t i = 0; i < 16; ++i) EXPECT_EQ(ids.device_id(i), i);
  EXPECT_EQ(mesh_on_target({{"x", 4}}, target, DeviceOrder::kTorus, 4).value().size(), 4);
}

TEST(ProgramFacts, HowManyDevices) {
  EXPECT_THAT(facts_error(two_axes(4, 4), "v5e:2x2"), HasSubstr("16 devices, but v5e:2x2 has 4"));
  EXPECT_THAT(facts_error(two_axes(2, 2), "v5e:4x4"), HasSubstr("--devices"));
  EXPECT_EQ(facts_error(two_axes(2, 2), "v5e:4x4", {.part_of_target = true}), "");
  EXPECT_THAT(facts_error(two_axes(2, 2), "v5e:2x2", {.axes = {{"x", 8}}}),
              HasSubstr("the mesh x=8 has 8"));
  // Without a mesh, the number of devices comes from the tile assignments or from num_partitions.
  stablehlo::ModuleFacts tiled = module_facts(
      "func.func @main(%a: tensor<8xf32> {mhlo.sharding = \"{devices=[4]<=[4]}\"}) {}");
  ProgramFacts facts = facts_of_module(tiled, facts_target("cpu:4")).value();
  EXPECT_EQ(facts.program.mesh->size(), 4);
  EXPECT_THAT(facts.notes.at(0), HasSubstr("defines no mesh"));
  stablehlo::ModuleFacts counted = module_facts("func.func @main(%a: tensor<8xf32>) {}",
                                                "attributes {mhlo.num_partitions = 8 : i32}");
  EXPECT_EQ(facts_of_module(counted, facts_target("cpu:8"), {.axes = {{"x", 2}, {"y", 4}}})
                .value()
                .program.mesh->axis_size("y"),
            4);
  EXPECT_EQ(facts_of_module(module_facts("func.func @main() {}"), facts_target("cpu:1"))
                .value()
                .program.mesh,
            std::nullopt);
}

TEST(ProgramFacts, TypesThatCannotBeTold) {
  EXPECT_THAT(facts_error(module_facts("func.func @main(%a: tensor<?x4xf32>) {}"), "cpu:1"),
              HasSubstr("dynamic dimension"));
  EXPECT_THAT(facts_error(module_facts("func.func @main(%a: tensor<4294967296x4294967296xf32>) {}"),
                          "cpu:1"),
              testing::Not(""));
}

}  // namespace
}  // namespace meshard
