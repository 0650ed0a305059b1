#include "meshard/explain/cost/custom_calls.h"

#include <gtest/gtest.h>

#include "meshard/explain/cost/module_cost.h"
#include "meshard/hlo/executions.h"
#include "meshard/hlo/hlo_testutil.h"

namespace meshard {
namespace {

HloInstruction make_custom_call(std::int64_t id, std::string target, HloShape shape,
                                std::vector<std::int64_t> operands) {
  HloInstruction one = make_instruction(id, "custom-call", std::move(shape), std::move(operands));
  one.custom_call_target = std::move(target);
  return one;
}

// The backend config that JAX 0.10.2 and libtpu 0.0.51 make for a Pallas matrix product of
// [512,1024] and [1024,512], without its body.
constexpr const char* kEstimate =
    R"({"flag_configs":[],"scoped_memory_configs":[],"custom_call_config":{"body":"TUzv","cost_estimate":{"flops":"536870912","transcendentals":"0","bytes_accessed":"5242880","remote_bytes_transferred":"0"},"needs_layout_passes":true,"allow_input_fusion":[],"serialization_format":"1"},"used_scoped_memory_configs":[{"memory_space":"1","offset":"0","size":"2621440"}]})";
// The same for a kernel with a remote copy, without an estimate.
constexpr const char* kCommunicates =
    R"({"flag_configs":[],"custom_call_config":{"body":"TUzv","has_communication":true,"needs_layout_passes":true,"serialization_format":"1"}})";

HloModule kernels() {
  HloInstruction product = make_custom_call(3, "tpu_custom_call", f32_shape({512, 512}), {1, 2});
  product.name = "mymm.1";
  product.backend_config = kEstimate;
  HloInstruction send = make_custom_call(4, "tpu_custom_call", f32_shape({512, 512}), {3});
  send.name = "shard_map.28";
  send.backend_config = kCommunicates;
  return make_module(
      {{make_parameter(1, 0, f32_shape({512, 1024})), make_parameter(2, 1, f32_shape({1024, 512})),
        product, send, make_custom_call(5, "TopK", f32_shape({512, 4}), {4}),
        make_custom_call(6, "ConcatBitcast", f32_shape({512, 4}), {5})}});
}

TEST(CustomCalls, ReadsTheEstimateOfAKernel) {
  HloModule module = kernels();
  ModuleIndex index(module);
  Executions executions = Executions::of(index).value();
  std::vector<CustomCall> calls = custom_calls_of(executions);
  ASSERT_EQ(calls.size(), 3u);  // ConcatBitcast takes no time
  EXPECT_EQ(calls[0].name, "mymm");
  EXPECT_EQ(calls[0].source, CustomCallSource::kStated);
  EXPECT_EQ(calls[0].operand_bytes, 2 * 4 * 512 * 1024);
  EXPECT_EQ(calls[0].result_bytes, 4 * 512 * 512);
  ASSERT_TRUE(calls[0].cost);
  EXPECT_EQ(*calls[0].cost,
            (CustomCallCost{.flops = 2.0 * 512 * 1024 * 512, .memory_bytes = 5242880.0}));
  EXPECT_FALSE(calls[0].communicates);
  EXPECT_EQ(calls[1].name, "shard_map");
  EXPECT_EQ(calls[1].source, CustomCallSource::kUnknown);
  EXPECT_TRUE(calls[1].communicates);
  EXPECT_EQ(calls[2].name, "TopK");
  EXPECT_EQ(calls[2].cost, std::nullopt);
}

TEST(CustomCalls, CostsAreAddedToTheModule) {
  HloModule module = kernels();
  ModuleIndex index(module);
  Executions executions = Executions::of(index).value();
  ModuleCost without(executions), with(executions, custom_calls_of(executions));
  EXPECT_EQ(without.total().flops(), 0);
  EXPECT_EQ(with.total().matrix_flops(), 536870912);
  // The estimate's bytes are exactly those of operands and results in main memory.
  EXPECT_EQ(with.total().memory_bytes, without.total().memory_bytes);
  // In on-chip memory, the copies to and from there count instead.
  for (HloInstruction& one : module.computations[0].instructions)
    one.shape.layout.emplace().memory_space = 1;
  ModuleIndex on_chip(module);
  Executions same = Executions::of(on_chip).value();
  EXPECT_EQ(ModuleCost(same, custom_calls_of(same)).total().memory_bytes, 0);
}

TEST(CustomCalls, LibrariesAreCountedFromTheirShapes) {
  HloInstruction gemm = make_custom_call(2, "__cublas$gemm", f32_shape({8, 8}), {1, 1});
  gemm.backend_config =
      R"({"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}})";
  HloModule module = make_module({{make_parameter(1, 0, f32_shape({8, 8})), gemm}});
  ModuleIndex index(module);
  Executions executions = Executions::of(index).value();
  std::vector<CustomCall> calls = custom_calls_of(executions);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].source, CustomCallSource::kCounted);
  EXPECT_EQ(ModuleCost(executions, calls).total().matrix_flops(), 2 * 8 * 8 * 8);
}

TEST(CustomCalls, DamagedConfigsSayNothing) {
  for (const char* config :
       {"{\"custom_call_config\":", "custom_call_config", "{\"custom_call_config\":3}",
        "{\"custom_call_config\":{\"cost_estimate\":[],\"has_communication\":1}}"}) {
    HloInstruction one = make_custom_call(2, "tpu_custom_call", f32_shape({8}), {1});
    one.backend_config = config;
    HloModule module = make_module({{make_parameter(1, 0, f32_shape({8})), one}});
    ModuleIndex index(module);
    Executions executions = Executions::of(index).value();
    std::vector<CustomCall> calls = custom_calls_of(executions);
    ASSERT_EQ(calls.size(), 1u);
    EXPECT_FALSE(calls[0].communicates) << config;
    EXPECT_TRUE(!calls[0].cost || calls[0].cost->flops == 0) << config;
  }
}

}  // namespace
}  // namespace meshard
