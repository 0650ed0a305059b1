#include "meshard/lowering/nan_checks.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

NanCheck of(std::string op, std::size_t result = 0) {
  return {.op = std::move(op), .result = result, .type = {}, .where = {}};
}

TEST(NanChecks, TheFirstOfEachKindIsFound) {
  std::shared_ptr<NanChecks> checks = NanChecks::make();
  std::size_t log = checks->add(of("log")), divide = checks->add(of("divide"));
  std::size_t result = checks->add(of("", 1));
  auto running = checks->begin();
  EXPECT_FALSE(checks->found().operation || checks->found().result);
  checks->report(divide);
  checks->report(log);
  checks->report(result);
  EXPECT_EQ(checks->found().operation->op, "log");
  EXPECT_EQ(checks->found().result->result, 1u);
}

TEST(NanChecks, ALaunchForgetsEarlierReports) {
  std::shared_ptr<NanChecks> checks = NanChecks::make();
  checks->report(checks->add(of("log")));
  auto running = checks->begin();
  EXPECT_FALSE(checks->found().operation);
}

TEST(NanChecks, AreFoundByNumberWhileTheyLive) {
  std::shared_ptr<NanChecks> checks = NanChecks::make(), others = NanChecks::make();
  EXPECT_NE(checks->number(), others->number());
  EXPECT_EQ(NanChecks::find(checks->number()), checks);
  std::int64_t number = checks->number();
  checks = nullptr;
  EXPECT_EQ(NanChecks::find(number), nullptr);
  EXPECT_EQ(NanChecks::find(-1), nullptr);
}

}  // namespace
}  // namespace meshard
