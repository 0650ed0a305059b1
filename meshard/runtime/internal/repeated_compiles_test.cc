#include "meshard/runtime/internal/repeated_compiles.h"

#include <gmock/gmock.h>

#include "meshard/base/advice.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/from_host.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/plugin_testutil.h"

namespace meshard {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

Tensor ones_of(std::int64_t size) {
  return from_host(std::vector<float>(static_cast<std::size_t>(size), 1), {size});
}

ProgramOutline outline_of(const Tensor& result) {
  return outline_of(Graph::build({}, std::vector{result.value()}, 0));
}

TEST(ProgramOutline, FirstDifferenceIsNamed) {
  Tensor x = ones_of(2), y = ones_of(3);
  EXPECT_THAT(difference(outline_of(exp(y)), outline_of(exp(x))),
              AllOf(HasSubstr("the input"), HasSubstr("is f32[3], was f32[2]")));
  EXPECT_THAT(difference(outline_of(exp(x)), outline_of(log(x))),
              AllOf(HasSubstr("exp f32[2] from repeated_compiles_test.cc"), HasSubstr("log")));
  EXPECT_THAT(difference(outline_of(sum(y, {0})), outline_of(max(y, {0}))), HasSubstr("sum"));
  EXPECT_THAT(difference(outline_of(flip(reshape(y, {3, 1}), {0})),
                         outline_of(flip(reshape(y, {3, 1}), {1}))),
              AllOf(HasSubstr("0"), HasSubstr("had"), HasSubstr("1")));
  EXPECT_THAT(difference(outline_of(exp(exp(x))), outline_of(exp(x))),
              HasSubstr("it has 3 inputs and operations, the one before had 2"));
}

struct RepeatedCompilesTest : OnPlugin {
  std::vector<std::string> heard;
  RepeatedCompilesTest() {
    set_advice_handler([this](const Advice& advice) {
      if (advice.topic == "lazy.compiles") heard.push_back(advice.to_string());
    });
  }
  ~RepeatedCompilesTest() override { set_advice_handler(nullptr); }
};

TEST_F(RepeatedCompilesTest, ALineThatCompilesEachTimeIsReportedOnce) {
  // Sizes that no other test of this program compiles.
  for (std::int64_t size = 201; size < 220; ++size) (void)(ones_of(size) + 1).to_host();
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_THAT(heard[0], AllOf(HasSubstr("repeated_compiles_test.cc:"),
                              HasSubstr("is f32[216], was f32[215]")));
}

TEST_F(RepeatedCompilesTest, ReadsOfTheLibraryItselfAreNot) {
  for (std::int64_t size = 301; size < 320; ++size) compute({ones_of(size) + 1}, SourceLocation{});
  EXPECT_THAT(heard, IsEmpty());
}

TEST_F(RepeatedCompilesTest, EqualProgramsAreNot) {
  for (int i = 0; i < 20; ++i) (void)(ones_of(4) * static_cast<float>(i)).to_host();
  EXPECT_THAT(heard, IsEmpty());
}

}  // namespace
}  // namespace meshard
