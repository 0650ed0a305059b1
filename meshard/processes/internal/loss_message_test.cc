#include "meshard/processes/internal/loss_message.h"

#include <gtest/gtest.h>

namespace meshard::internal {
namespace {

TEST(LossMessage, IsReadAsWritten) {
  ProcessLoss loss{.rank = 7,
                   .kind = LossKind::kFailed,
                   .status = 3,
                   .host = "alpha",
                   .pid = 4711,
                   .activity = "compile, train.cc:9",
                   .difference = "\n  process 1 waits",
                   .in_activity = std::chrono::milliseconds(1250)};
  EXPECT_EQ(read_loss(loss_message(loss)).value(), loss);
}

TEST(LossMessage, MalformedOnesAreErrors) {
  Message good = loss_message({.rank = 1, .host = "a"});
  Message other = good;
  other.kind = MessageKind::kBeat;
  EXPECT_FALSE(read_loss(other).ok());
  for (std::size_t size = 0; size < good.value.size(); ++size) {
    Message cut = good;
    cut.value.resize(size);
    EXPECT_FALSE(read_loss(cut).ok()) << size;
  }
  good.value += "x";
  EXPECT_FALSE(read_loss(good).ok());
}

TEST(LossMessage, Numbers) {
  EXPECT_EQ(read_number("-12").value(), -12);
  for (const char* text : {"", "1 ", "x", "99999999999999999999"})
    EXPECT_FALSE(read_number(text).ok());
}

}  // namespace
}  // namespace meshard::internal
