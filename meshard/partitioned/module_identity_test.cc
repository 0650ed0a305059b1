#include <gmock/gmock.h>

#include "meshard/hlo/hlo_builder_testutil.h"
#include "meshard/partitioned/partition.h"

namespace meshard {
namespace {

using testing::HasSubstr;

struct Program {
  std::int64_t first_id = 50;
  std::string reduction = "add";
  std::string file = "train.cc";
  std::int64_t line = 42;
  std::vector<Ids> groups = {{0, 1, 2, 3}};
  std::string last = "negate";
  std::int64_t size = 4;

  std::string hlo() const {
    std::int64_t id = first_id;
    ModuleBytes module;
    module.reduction(1, reduction);
    module.add(
        5,
        {parameter_bytes(id, 0, f32_bytes({size})),
         InstructionBytes(id + 1, "all-reduce", f32_bytes({size}), {id})
             .calls({1})
             .channel()
             .global_ids()
             .groups(groups)
             .source("n17", file, line),
         InstructionBytes(id + 2, last, f32_bytes({size}), {id + 1}).source("n18", file, line + 1)},
        id + 2, {f32_bytes({size})}, f32_bytes({size}));
    return rewrite_collectives(module.bytes(), {.partitions = 4, .ranks = {}}).value().hlo;
  }
};

std::string difference(const Program& a, const Program& b) {
  auto found = first_difference(a.hlo(), b.hlo()).value();
  EXPECT_EQ(!found, module_fingerprint(a.hlo()).value() == module_fingerprint(b.hlo()).value());
  return found ? found->to_string() : "";
}

TEST(ModuleIdentity, NamesIdsAndSourceLinesDoNotMatter) {
  EXPECT_EQ(difference({}, {}), "");
  EXPECT_EQ(difference({}, {.first_id = 70}), "");
  EXPECT_EQ(difference({}, {.file = "other.cc", .line = 7}), "");
}

TEST(ModuleIdentity, TheFirstDifferenceHasBothLines) {
  EXPECT_THAT(difference({}, {.line = 7, .last = "abs"}),
              HasSubstr("negate n18 f32[4] (train.cc:43) in the first, abs n18 f32[4] (train.cc:8) "
                        "in the second"));
  EXPECT_THAT(difference({}, {.size = 5}),
              testing::AllOf(HasSubstr("parameter parameter.50 f32[4]"), HasSubstr("f32[5]")));
}

TEST(ModuleIdentity, CollectivesDifferInTheirAttributes) {
  std::string text = difference({}, {.reduction = "maximum"});
  EXPECT_THAT(text, HasSubstr("n17"));
  EXPECT_THAT(text, HasSubstr("(train.cc:42)"));
  EXPECT_THAT(text, HasSubstr("reduction = 0"));
  EXPECT_THAT(text, HasSubstr("reduction = 3"));
  EXPECT_THAT(difference({}, {.groups = {{0, 1}, {2, 3}}}), HasSubstr("sizes = array<i32: 2>"));
}

// The difference is in the body of a loop, which comes before the loop itself.
TEST(ModuleIdentity, EntersComputations) {
  auto loop = [](const std::string& op) {
    std::string array = f32_bytes(), pred = array_bytes(kPredElement, {});
    ModuleBytes module;
    module.add(1,
               {parameter_bytes(10, 0, array),
                InstructionBytes(11, op, array, {10}).source(op, "l.cc", 3)},
               11);
    module.add(2, {parameter_bytes(20, 0, array), InstructionBytes(21, "constant", pred)}, 21,
               {array}, pred);
    module.add(
        5,
        {parameter_bytes(50, 0, array), InstructionBytes(51, "while", array, {50}).calls({1, 2})},
        51);
    return module.bytes();
  };
  auto found = first_difference(loop("negate"), loop("abs")).value();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->first, "negate negate f32[4] (l.cc:3)");
  EXPECT_EQ(found->second, "abs abs f32[4] (l.cc:3)");
}

TEST(ModuleIdentity, OneIsLonger) {
  auto chain = [](int length) {
    ModuleBytes module;
    std::vector<InstructionBytes> all = {parameter_bytes(50, 0, f32_bytes())};
    for (int k = 1; k <= length; ++k)
      all.push_back(InstructionBytes(50 + k, "negate", f32_bytes(), {49 + k}));
    module.add(5, all, 50 + length);
    return module.bytes();
  };
  auto found = first_difference(chain(2), chain(3)).value();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->first, "the end of the computation");
  EXPECT_EQ(found->second, "negate negate.53 f32[4]");
  EXPECT_FALSE(first_difference("nonsense", chain(2)).ok());
}

}  // namespace
}  // namespace meshard
