#include "meshard/pipeline/schedule/action.h"

#include <gtest/gtest.h>

#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(PipelineAction, PrintsAndParses) {
  const std::pair<PipelineAction, const char*> kCases[] = {
      {{PipelineWork::kForward, 2, 5}, "2F5"},
      {{PipelineWork::kBackward, 0, 12}, "0B12"},
      {{PipelineWork::kInputGradient, 10, 0}, "10I0"},
      {{PipelineWork::kWeightGradient, 1, 3}, "1W3"},
      {{PipelineWork::kUpdate, 3, 0}, "3U"},
      {{PipelineWork::kSendForward, 0, 1}, "0SEND_F1"},
      {{PipelineWork::kSendBackward, 7, 2}, "7SEND_B2"},
  };
  for (const auto& [action, text] : kCases) {
    EXPECT_EQ(action.to_string(), text);
    EXPECT_EQ(PipelineAction::parse(text).value(), action) << text;
  }
}

TEST(PipelineAction, TextThatIsNoAction) {
  for (const char* text :
       {"", "F0", "0F", "0X1", "0F1x", "-1F0", "0U1", "U", "1", "0 F1", "99999999999F0", "0F0B0"}) {
    Result<PipelineAction> read = PipelineAction::parse(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code(), ErrorCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace meshard
