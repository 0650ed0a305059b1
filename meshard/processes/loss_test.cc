#include "meshard/processes/loss.h"

#include <gtest/gtest.h>

#include "meshard/base/packed_fields.h"
#include "meshard/processes/internal/member_text.h"

namespace meshard {
namespace {

TEST(ProcessLoss, Texts) {
  ProcessLoss loss{
      .rank = 2, .host = "alpha", .pid = 4711, .activity = "all-reduce %12, train.cc:42"};
  loss.in_activity = std::chrono::milliseconds(3249);
  EXPECT_EQ(loss.to_string(),
            "process 2 (pid 4711 on alpha) died; it was last in \"all-reduce %12, train.cc:42\", "
            "3.2 s ago");
  loss.kind = LossKind::kFailed;
  loss.status = 3;
  loss.activity.clear();
  EXPECT_EQ(loss.to_string(), "process 2 (pid 4711 on alpha) ended with status 3");
  loss.kind = LossKind::kStopped;
  EXPECT_EQ(loss.to_string(),
            "process 2 (pid 4711 on alpha) does not run any more: it gives no sign of life");
  loss.kind = LossKind::kOutOfStep;
  loss.difference = "launch 2 is \"a\"";
  EXPECT_EQ(loss.to_string(),
            "process 2 (pid 4711 on alpha) launches other programs: launch 2 is \"a\"");
  loss.kind = LossKind::kGaveUp;
  loss.difference = "a step has failed";
  EXPECT_EQ(loss.to_string(), "process 2 (pid 4711 on alpha) has given up: a step has failed");
  loss.kind = LossKind::kElsewhere;
  loss.difference = "\n  process 1 waits";
  EXPECT_EQ(loss.to_string(),
            "process 2 (pid 4711 on alpha) does not come: it waits elsewhere\n  process 1 waits");
}

TEST(ProcessLoss, IsReadAsWritten) {
  ProcessLoss loss{.rank = 7,
                   .kind = LossKind::kFailed,
                   .status = 3,
                   .host = "alpha",
                   .pid = 4711,
                   .activity = "compile, train.cc:9",
                   .difference = "\n  process 1 waits",
                   .in_activity = std::chrono::milliseconds(1250)};
  std::string bytes = to_packed(loss);
  EXPECT_EQ(from_packed<ProcessLoss>(bytes, "processes").value(), loss);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(from_packed<ProcessLoss>(std::string_view(bytes).substr(0, size), "x").ok());
  EXPECT_FALSE(from_packed<ProcessLoss>(bytes + "x", "processes").ok());
}

TEST(MemberText, Numbers) {
  EXPECT_EQ(internal::read_number("-12").value(), -12);
  for (const char* text : {"", "1 ", "x", "99999999999999999999"})
    EXPECT_FALSE(internal::read_number(text).ok());
}

}  // namespace
}  // namespace meshard
