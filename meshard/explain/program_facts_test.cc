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

std::vector<std::int64_t> devices_of(const Mesh& mesh) {
  std::vector<std::int64_t> ids;
  for (std::int64_t id : mesh.device_ids()) ids.push_back(id);
  return ids;
}

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
  ASSERT_EQ(facts.notes.size(), 2u);
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

// The rule of JAX (get_prop_to_input_output in jax/_src/interpreters/pxla.py): what has no sharding
// in the module is left to the compiler.
TEST(ProgramFacts, TheCompilerMayChooseWhatHasNoSharding) {
  constexpr std::string_view kFunction = R"(sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
                    %b: tensor<8xf32>)
        -> (tensor<8xf32> {INFO}, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {})";
  const auto facts_with = [&](std::string_view info, std::string_view attributes) {
    std::string text(kFunction);
    text.replace(text.find("INFO"), 4, info);
    return facts_of_module(module_facts(text, attributes), facts_target("cpu:2")).value();
  };
  ProgramFacts of_jax = facts_with("jax.result_info = \"r\"", "");
  EXPECT_THAT(of_jax.request->options.propagate_to_parameters, ElementsAre(false, true));
  EXPECT_THAT(of_jax.request->options.propagate_to_outputs, ElementsAre(true, false));
  EXPECT_TRUE(of_jax.request->as_jax);
  EXPECT_TRUE(of_jax.notes.empty());
  ProgramFacts unknown = facts_with("", "");
  EXPECT_EQ(unknown.request->options.propagate_to_outputs,
            of_jax.request->options.propagate_to_outputs);
  ASSERT_EQ(unknown.notes.size(), 1u);
  EXPECT_THAT(unknown.notes[0], HasSubstr("as with JAX"));
  EXPECT_THAT(unknown.notes[0], HasSubstr("the shardings of 2 arguments and results"));
  ProgramFacts own = facts_with("", "attributes {meshard.mesh = \"\"}");
  EXPECT_TRUE(own.request->options.propagate_to_parameters.empty() &&
              own.request->options.propagate_to_outputs.empty());
  EXPECT_FALSE(own.request->as_jax);
}

// The tiles of GSPMD number the positions of the mesh: [2,1,2]<=[2,2]T(1,0) splits dimension 0 over
// the inner axis.
TEST(ProgramFacts, ShardingsOfTheOlderPartitioner) {
  stablehlo::ModuleFacts module = module_facts(R"(func.func @main(
      %a: tensor<8x4xf32> {mhlo.sharding = "{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}"},
      %b: tensor<8xf32> {mhlo.sharding = "{devices=[4]0,3,1,2}"}, %c: tensor<8xf32>)
        -> (tensor<8xf32> {mhlo.sharding = "{replicated}"}) {})");
  ProgramFacts facts =
      facts_of_module(module, facts_target("cpu:4"), {.axes = {{"x", 2}, {"y", 2}}}).value();
  const std::vector<LoweredValue>& arguments = facts.program.arguments;
  EXPECT_EQ(arguments[0].sharding->spec(), P("y", none));
  // No order of the axes gives these devices; and yet the compiler has no choice.
  EXPECT_FALSE(arguments[1].sharding.has_value());
  EXPECT_TRUE(arguments[1].is_specified_otherwise);
  EXPECT_FALSE(arguments[2].is_specified_otherwise);
  EXPECT_TRUE(facts.program.results[0].is_exact());
  EXPECT_THAT(facts.request->options.propagate_to_parameters, ElementsAre(false, false, true));
  EXPECT_THAT(facts.request->options.propagate_to_outputs, ElementsAre(false));
}

TEST(ProgramFacts, DevicesInTheUsersOrder) {
  ModuleLayout layout{.device_ids = {3, 1, 0, 2}};
  ProgramFacts facts = facts_of_module(two_axes(2, 2), facts_target("v5e:2x2"), layout).value();
  EXPECT_THAT(devices_of(*facts.program.mesh), ElementsAre(3, 1, 0, 2));
  EXPECT_EQ(facts.program.arguments[0].sharding->mesh(), *facts.program.mesh);
  // A part of the target needs no other permission.
  layout.device_ids = {12, 1, 0, 2};
  facts = facts_of_module(two_axes(2, 2), facts_target("v5e:4x4"), layout).value();
  EXPECT_EQ(facts.program.mesh->device_id(0), 12);
  const auto error_for = [](std::vector<std::int64_t> ids) {
    return facts_error(two_axes(2, 2), "v5e:2x2", {.device_ids = std::move(ids)});
  };
  EXPECT_THAT(error_for({3, 1, 0}), HasSubstr("3 device ids for the 4 devices"));
  EXPECT_THAT(error_for({3, 1, 0, 2, 4}), HasSubstr("5 device ids"));
  EXPECT_THAT(error_for({3, 1, 0, 7}), HasSubstr("device 7 is not a device of v5e:2x2"));
  EXPECT_THAT(error_for({3, 1, 0, 1}), HasSubstr("device 1 is twice"));
}

// Logical device i of a mesh with device ids is position i of the main mesh.
TEST(ProgramFacts, AMeshWithDeviceIds) {
  stablehlo::ModuleFacts module = module_facts(R"(sdy.mesh @mesh = <["x"=4]>
    sdy.mesh @other = <["x"=4], device_ids=[2, 3, 0, 1]>
    func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@other, [{"x"}]>}) {})");
  ModuleLayout layout{.device_ids = {13, 10, 12, 11}};
  ProgramFacts facts = facts_of_module(module, facts_target("v5e:4x4"), layout).value();
  ASSERT_EQ(facts.program.meshes.size(), 2u);
  EXPECT_THAT(devices_of(facts.program.meshes[1]), ElementsAre(12, 11, 13, 10));
}

// If the only mesh lists its devices, logical device 2 is at its position 0.
TEST(ProgramFacts, OnlyAMeshWithDeviceIds) {
  stablehlo::ModuleFacts module =
      module_facts(R"(sdy.mesh @mesh = <["x"=4], device_ids=[2, 3, 0, 1]>
    func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {})");
  ProgramFacts facts =
      facts_of_module(module, facts_target("v5e:2x2"), {.device_ids = {3, 0, 2, 1}}).value();
  EXPECT_THAT(devices_of(*facts.program.mesh), ElementsAre(3, 0, 2, 1));
  ASSERT_TRUE(facts.program.arguments[0].sharding.has_value());
  EXPECT_THAT(devices_of(facts.program.arguments[0].sharding->mesh()), ElementsAre(2, 1, 3, 0));
}

// A file of meshard names the devices that its mesh had.
TEST(ProgramFacts, TheDevicesOfAFile) {
  const auto module = [](std::string_view mesh) {
    return module_facts(R"(sdy.mesh @mesh = <["x"=4]>
      func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>,
                                         meshard.place = "step.cc:7"},
                      %b: tensor<8xf32> {meshard.captured, meshard.type = "tensor<7xf32>"})
          -> (tensor<8xf32> {meshard.place = "step.cc:9"}) {})",
                        cat("attributes {meshard.mesh = \"", mesh, "\"}"));
  };
  ProgramFacts facts =
      facts_of_module(module("<[\\\"x\\\"=4], device_ids=[2, 3, 1, 0]>"), facts_target("v5e:2x2"))
          .value();
  EXPECT_THAT(devices_of(*facts.program.mesh), ElementsAre(2, 3, 1, 0));
  EXPECT_THAT(facts.argument_places, ElementsAre("step.cc:7", ""));
  EXPECT_THAT(facts.result_places, ElementsAre("step.cc:9"));
  EXPECT_EQ(facts.num_captured, 1u);
  EXPECT_EQ(facts.program.arguments[1].type.shape, Shape{7});
  EXPECT_EQ(facts.program.arguments[1].padded.shape, Shape{8});
  // The target does not have these devices.
  facts =
      facts_of_module(module("<[\\\"x\\\"=4], device_ids=[2, 3, 1, 8]>"), facts_target("v5e:2x2"))
          .value();
  EXPECT_EQ(*facts.program.mesh, torus_mesh(facts_target("v5e:2x2").topology(), {4}, {{"x"}}));
}

}  // namespace
}  // namespace meshard
