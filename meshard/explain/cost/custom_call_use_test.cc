#include "meshard/explain/cost/custom_call_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/hlo/executions.h"
#include "meshard/hlo/hlo_testutil.h"

namespace meshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Called {
  HloModule module;
  ModuleIndex index;
  Executions executions;
  std::vector<CustomCall> calls;
  Called()
      : module(made()),
        index(module),
        executions(Executions::of(index).value()),
        calls(custom_calls_of(executions)) {}
  // Two calls of `kernel`, the second in a loop of 3, and one of `sort`.
  static HloModule made() {
    auto call = [](std::int64_t id, std::int64_t of, const char* target) {
      HloInstruction one = make_instruction(id, "custom-call", f32_shape({256}), {of});
      one.custom_call_target = target;
      return one;
    };
    HloInstruction loop = calling(make_instruction(3, "while", f32_shape({256}), {2}), {1, 2});
    loop.backend_config = R"({"known_trip_count":{"n":"3"}})";
    return make_module(
        {{make_parameter(1, 0, f32_shape({256})), call(2, 1, "kernel"), loop, call(4, 3, "sort")},
         {make_parameter(11, 0, f32_shape({256})), call(12, 11, "kernel")},
         {make_constant(21, 1)}});
  }
};

TEST(CustomCallUse, GroupsByName) {
  Called made;
  std::vector<CustomCallUse> uses = group_custom_calls(made.executions, made.calls, nullptr);
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].to_string(),
            "2 custom calls kernel, 4 executions, operands 4 KiB, results 4 KiB, cost unknown");
  EXPECT_EQ(uses[1].to_string(), "1 custom call sort, operands 1 KiB, results 1 KiB, cost unknown");
  EXPECT_THAT(custom_call_notes(uses), ElementsAre(HasSubstr("(kernel, sort)")));
}

TEST(CustomCallUse, GivenCostsApplyByNameOrInstruction) {
  Called made;
  ASSERT_TRUE(give_costs({GivenCost::parse("kernel=2e6,1KiB,512").value(),
                          GivenCost::parse("custom-call.4=0,0").value()},
                         made.calls)
                  .ok());
  std::vector<CustomCallUse> uses = group_custom_calls(made.executions, made.calls, nullptr);
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].to_string(),
            "2 custom calls kernel, 4 executions, operands 4 KiB, results 4 KiB, given 8 Mflop and "
            "4 KiB, sends 2 KiB");
  EXPECT_EQ(uses[1].source, CustomCallSource::kGiven);
  EXPECT_TRUE(custom_call_notes(uses).empty());
  Result<void> unknown = give_costs({GivenCost::parse("other=1,1").value()}, made.calls);
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message(),
              HasSubstr("`other`, but the program has only the custom calls kernel, sort"));
  std::vector<CustomCall> none;
  EXPECT_THAT(give_costs({GivenCost::parse("a=1,1").value()}, none).error().message(),
              HasSubstr("no custom calls"));
}

TEST(CustomCallUse, SaysThatItSends) {
  CustomCallUse use{.name = "ring", .target = "tpu_custom_call", .communicates = true, .place = ""};
  use.count = use.executions = 1;
  EXPECT_EQ(use.to_string(),
            "1 custom call ring (tpu_custom_call), operands 0 B, results 0 B, cost unknown, sends "
            "data to other devices");
  EXPECT_THAT(custom_call_notes({use}),
              ElementsAre(HasSubstr("unknown"), HasSubstr("do not say how much")));
}

TEST(CustomCallUse, ParsesUnits) {
  auto bytes = [](const char* text) {
    return *GivenCost::parse(std::string("k=0,") + text).value().cost.memory_bytes;
  };
  EXPECT_EQ(bytes("7"), 7);
  EXPECT_EQ(bytes("7 B"), 7);
  EXPECT_EQ(bytes("1.5KB"), 1500);
  EXPECT_EQ(bytes("2MiB"), 2 * 1024 * 1024);
  EXPECT_EQ(bytes(" 1 GiB "), 1024.0 * 1024 * 1024);
  EXPECT_EQ(
      GivenCost::parse("a=b=2e9,64MiB,1MB").value(),
      (GivenCost{"a=b", {.flops = 2e9, .memory_bytes = 64.0 * 1024 * 1024, .link_bytes = 1e6}}));
  for (const char* wrong : {"", "k", "k=", "=1,1", "k=1", "k=1,2,3,4", "k=-1,2", "k=1,2XB",
                            "k=1flop,2", "k=nan,1", "k=1,inf"})
    EXPECT_FALSE(GivenCost::parse(wrong).ok()) << wrong;
}

}  // namespace
}  // namespace meshard
