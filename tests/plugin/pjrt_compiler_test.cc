// What meshard/pjrt requires of plugins that compile and compute.
#include "meshard/hlo/module.h"
#include "meshard/pjrt/topology.h"
#include "tests/plugin/fixture.h"
#include "tests/support/matchers.h"

namespace meshard::pjrt {
namespace {

std::string sum_over_devices() {
  return R"(module { sdy.mesh @m = <["x"=8]>
    func.func public @main(%a: tensor<32xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>})
        -> (tensor<f32> {sdy.sharding = #sdy.sharding<@m, []>}) {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %sum = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0]
          : (tensor<32xf32>, tensor<f32>) -> tensor<f32> loc("n17")
      return %sum : tensor<f32> } })";
}

class CompilerTest : public PluginTest {
 protected:
  void SetUp() override {
    if (GetParam().is_fake) GTEST_SKIP() << "the fake plugin does not compute";
    PluginTest::SetUp();
  }
};
INSTANTIATE_TEST_SUITE_P(Plugins, CompilerTest, ::testing::ValuesIn(subjects()),
                         [](const auto& one) { return one.param.name; });

TEST_P(CompilerTest, CollectivesGiveTheSumAndTheirGroups) {
  auto program = client().compile(sum_over_devices(), on_first(8)).value();
  EXPECT_EQ(program.signature().to_string(), "(f32[4]) -> (f32[]) with collectives");
  Arguments arguments(client(), program);
  std::vector<BufferList> outputs(1);
  for (int i = 0; i < 50; ++i) (void)program.execute(arguments.pointers, outputs).value();
  // Devices k = 0..7 hold 100 k + {0, 1, 2, 3}.
  for (std::size_t k = 0; k < 8; ++k)
    EXPECT_EQ(read_all<float>(outputs[0][k])[0], 100.0f * 28 * 4 + 8 * 6);

  auto module = HloModule::from_bytes(program.executable().optimized_program().value()).value();
  int reduces = 0;
  for (const HloComputation& computation : module.computations)
    for (const HloInstruction& one : computation.instructions)
      if (one.opcode == "all-reduce") {
        ++reduces;
        std::vector<std::vector<std::int64_t>> all = {{0, 1, 2, 3, 4, 5, 6, 7}};
        EXPECT_EQ(one.groups.expand().value(), all);
        EXPECT_EQ(one.metadata.op_name, "n17");
        EXPECT_EQ(one.operands.size(), 1u);
      }
  EXPECT_EQ(reduces, 1);
  ASSERT_EQ(module.parameter_shardings.size(), 1u);
  EXPECT_EQ(module.parameter_shardings[0].to_string(), "{devices=[8]<=[8]}");
}

TEST_P(CompilerTest, CollectivesAreNotRunDeviceByDevice) {
  auto program = client().compile(sum_over_devices(), on_first(8)).value();
  if (program.can_run_device_by_device()) GTEST_SKIP() << "this plugin may";
  Arguments arguments(client(), program);
  std::vector<BufferList> outputs(1);
  EXPECT_TRUE(
      throws_error([&] { (void)program.execute_each_device(arguments.pointers, outputs).value(); },
                   ErrorCode::kFailedPrecondition, {"wait for each other", "use execute"}));
}

// Twice the f32[32] argument, split over 8 devices. The argument has this sharding.
std::string doubled_program(const std::string& sharding) {
  bool donates = !sharding.empty();
  return "module { sdy.mesh @m = <[\"x\"=8]>\n func.func public @main(%a: tensor<32xf32> {" +
         std::string(donates ? "tf.aliasing_output = 0 : i32, " : "") +
         "sdy.sharding = #sdy.sharding<@m, [{" + sharding + R"(}]>})
        -> (tensor<32xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) {
      %sum = stablehlo.add %a, %a : tensor<32xf32>
      return %sum : tensor<32xf32> } })";
}

TEST_P(CompilerTest, PartsWithoutCollectivesAreProgramsOfTheirOwn) {
  auto program =
      client().compile(doubled_program("\"x\""), on_devices({3, 1, 0, 2, 7, 6, 5, 4})).value();
  std::string bytes = program.executable().serialize().value();
  auto loaded = client().load_for_each(bytes, program.signature(), program.device_list());
  if (!loaded.ok() && !client().rules().loaded_parts_run_inline)
    GTEST_SKIP() << "this plugin cannot: " << loaded.error().message();
  LoadedExecutable each = *std::move(loaded);
  EXPECT_TRUE(each.can_run_device_by_device());
  EXPECT_EQ(&each.device_list(), &program.device_list());
  EXPECT_EQ(each.signature().to_string(), "(f32[4] donated) -> (f32[4])");
  Arguments arguments(client(), program);
  // In turns with the whole program, so that each waits for results of the other.
  for (int i = 0; i < 5; ++i)
    for (const LoadedExecutable* one : {&each, &program, &each, &each}) {
      std::vector<BufferList> outputs(1);
      (void)one->execute(arguments.pointers, outputs, {.track = i % 2 == 0}).value();
      EXPECT_TRUE(arguments.lists[0].is_donated()) << "donated";
      arguments.lists[0] = std::move(outputs[0]);
    }
  for (std::size_t k = 0; k < 8; ++k) {
    EXPECT_EQ(&arguments.lists[0][k].device(), program.devices()[k]);
    std::vector<float> expected = Arguments::values(k, 0);
    for (float& value : expected) value *= 1 << 20;
    EXPECT_EQ(read_all<float>(arguments.lists[0][k]), expected);
  }
}

TEST_P(CompilerTest, PartsThatDifferAreNotLoadedAlone) {
  auto sums = client().compile(sum_over_devices(), on_first(8)).value();
  // Every device takes its own part of a replicated value.
  auto slices = client().compile(doubled_program(""), on_first(8)).value();
  EXPECT_EQ(slices.signature().to_string(), "(f32[32]) -> (f32[4]) reading the partition id");
  auto refused = [&](const LoadedExecutable& program, const char* why) {
    std::string bytes = program.executable().serialize().value();
    EXPECT_TRUE(throws_error(
        [&] { client().load_for_each(bytes, program.signature(), program.device_list()).value(); },
        ErrorCode::kFailedPrecondition, {"[load_for_each]", why}));
  };
  refused(sums, "has collectives");
  refused(slices, "reads the partition id");
}

TEST_P(CompilerTest, CompilesForItsOwnTopology) {
  auto topology = TopologyDescription::of(client());
  if (!topology.ok()) GTEST_SKIP() << topology.error().message();
  EXPECT_EQ(topology.value().devices().size(), 8u);
  auto compiled = topology.value().compile(sum_over_devices(), on_first(8));
  // The CPU plugin of API 0.81 has no compiler for absent devices.
  if (!compiled.ok() && (compiled.error().code() == ErrorCode::kUnimplemented ||
                         compiled.error().code() == ErrorCode::kNotFound))
    GTEST_SKIP() << compiled.error().message();
  EXPECT_EQ(compiled.value().output_types().value(),
            (std::vector<ArrayType>{{ElementType::kF32, {}}}));
  EXPECT_FALSE(topology.value().compile(sum_over_devices(), on_devices({0, 77})).ok());
}

TEST_P(CompilerTest, StatisticsAndOverrides) {
  CompileOptions options = on_first(8);
  options.overrides["xla_cpu_enable_fast_math"] = true;
  auto program = client().compile(sum_over_devices(), options).value();
  auto stats = program.executable().memory_stats();
  if (stats.ok()) {
    EXPECT_EQ(stats.value().arguments, 16);
    EXPECT_EQ(stats.value().outputs, 4);
  }
  auto cost = program.executable().cost_analysis();
  if (cost.ok()) {
    EXPECT_NE(find_value<float>(cost.value(), "flops"), nullptr);
  }
  EXPECT_FALSE(program.executable().fingerprint().value_or("-").empty());
  options.overrides["xla_there_is_no_such_flag"] = true;
  EXPECT_FALSE(client().compile(sum_over_devices(), options).ok());
}

}  // namespace
}  // namespace meshard::pjrt
