#include "meshard/target/compiled.h"

#include <gtest/gtest.h>

#include "tests/support/random.h"

namespace meshard {
namespace {

Compiled full() {
  Compiled compiled;
  compiled.optimized_program = std::string("module\0bytes", 12);
  compiled.memory = pjrt::CompiledMemoryStats{.generated_code = 1,
                                              .arguments = 2,
                                              .outputs = std::int64_t{1} << 40,
                                              .aliases = 4,
                                              .temporaries = 5,
                                              .peak = -6,
                                              .host_arguments = 7,
                                              .host_outputs = 8,
                                              .host_temporaries = 9};
  compiled.cost_analysis = {{"flops", 1.5f},
                            {"count", std::int64_t{-3}},
                            {"list", std::vector<std::int64_t>{1, -2, 300}},
                            {"none", std::vector<std::int64_t>{}},
                            {"text", std::string("a\"b")},
                            {"flag", true},
                            {"off", false}};
  compiled.parameter_shardings = {"p0", "", "p2"};
  compiled.output_shardings = {"", "o1"};
  compiled.propagated_program = "propagated";
  compiled.buffer_assignment = "buffers";
  compiled.log = "W full rematerialization\n";
  compiled.platform_version = "TFRT TPU v5 lite";
  compiled.compile_seconds = 12.25;
  return compiled;
}

void expect_equal(const Compiled& a, const Compiled& b) {
  EXPECT_EQ(a.optimized_program, b.optimized_program);
  ASSERT_EQ(a.memory.has_value(), b.memory.has_value());
  if (a.memory) {
    EXPECT_EQ(a.memory->generated_code, b.memory->generated_code);
    EXPECT_EQ(a.memory->arguments, b.memory->arguments);
    EXPECT_EQ(a.memory->outputs, b.memory->outputs);
    EXPECT_EQ(a.memory->aliases, b.memory->aliases);
    EXPECT_EQ(a.memory->temporaries, b.memory->temporaries);
    EXPECT_EQ(a.memory->peak, b.memory->peak);
    EXPECT_EQ(a.memory->host_arguments, b.memory->host_arguments);
    EXPECT_EQ(a.memory->host_outputs, b.memory->host_outputs);
    EXPECT_EQ(a.memory->host_temporaries, b.memory->host_temporaries);
  }
  EXPECT_EQ(a.cost_analysis, b.cost_analysis);
  EXPECT_EQ(a.parameter_shardings, b.parameter_shardings);
  EXPECT_EQ(a.output_shardings, b.output_shardings);
  EXPECT_EQ(a.propagated_program, b.propagated_program);
  EXPECT_EQ(a.buffer_assignment, b.buffer_assignment);
  EXPECT_EQ(a.log, b.log);
  EXPECT_EQ(a.platform_version, b.platform_version);
  EXPECT_EQ(a.compile_seconds, b.compile_seconds);
}

TEST(Compiled, RoundTripOfEverything) {
  auto back = Compiled::deserialize(full().serialize());
  ASSERT_TRUE(back.ok()) << back.error().what();
  expect_equal(*back, full());
  EXPECT_FALSE(back->from_cache);
}

TEST(Compiled, RoundTripOfNothing) {
  auto back = Compiled::deserialize(Compiled().serialize());
  ASSERT_TRUE(back.ok()) << back.error().what();
  expect_equal(*back, Compiled());
}

TEST(Compiled, EveryCutIsDataLoss) {
  std::string bytes = full().serialize();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    auto cut = Compiled::deserialize(std::string_view(bytes).substr(0, size));
    ASSERT_FALSE(cut.ok()) << size << " of " << bytes.size() << " bytes were accepted";
    EXPECT_EQ(cut.error().code(), ErrorCode::kDataLoss);
  }
}

TEST(Compiled, DamagedBytesNeverCrash) {
  TestRandom random;
  std::string whole = full().serialize();
  int refused = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = whole;
    for (int change = 0; change < 3; ++change) {
      auto at = static_cast<std::size_t>(random.between(0, std::ssize(bytes) - 1));
      bytes[at] = static_cast<char>(random.between(0, 255));
    }
    refused += !Compiled::deserialize(bytes).ok();
  }
  EXPECT_GT(refused, 0);
  EXPECT_FALSE(Compiled::deserialize("no such thing").ok());
  EXPECT_FALSE(Compiled::deserialize(whole + "\x78\x01").ok()) << "an unknown field";
}

}  // namespace
}  // namespace meshard
