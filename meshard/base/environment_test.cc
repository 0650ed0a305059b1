#include "meshard/base/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace meshard {
namespace {

constexpr const char* kName = "MESHARD_ENVIRONMENT_TEST";

Result<std::int64_t> integer_of(const char* text) {
  ::setenv(kName, text, 1);
  Result<std::int64_t> number = environment_integer(kName, 8, 1, 100);
  ::unsetenv(kName);
  return number;
}

Result<double> number_of(const char* text) {
  ::setenv(kName, text, 1);
  Result<double> number = environment_number(kName, 60, 0, 1000);
  ::unsetenv(kName);
  return number;
}

TEST(Environment, WhatIsNotSetOrEmptyIsTheDefault) {
  ::unsetenv(kName);
  EXPECT_EQ(environment_integer(kName, 8, 1, 100).value(), 8);
  EXPECT_EQ(environment_number(kName, 0.5, 0, 1).value(), 0.5);
  EXPECT_EQ(integer_of("").value(), 8);
}

TEST(Environment, NumbersWithinTheBounds) {
  EXPECT_EQ(integer_of("1").value(), 1);
  EXPECT_EQ(integer_of("100").value(), 100);
  EXPECT_EQ(number_of("0").value(), 0);
  EXPECT_EQ(number_of("2.5").value(), 2.5);
}

TEST(Environment, OtherTextsAreErrorsThatNameTheVariable) {
  for (const char* text : {" 1", "1 ", "0", "101", "-1", "x", "1e1", "99999999999999999999"}) {
    Result<std::int64_t> number = integer_of(text);
    ASSERT_FALSE(number.ok()) << text;
    EXPECT_EQ(number.error().code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(number.error().message(), std::string("[environment] MESHARD_ENVIRONMENT_TEST is '") +
                                            text + "': expected a whole number from 1 to 100");
  }
  for (const char* text : {" ", "nan", "inf", "-0.5", "1001", "2,5"})
    EXPECT_FALSE(number_of(text).ok()) << text;
}

TEST(Environment, VariablesThatNothingReadsAreNamedWithTheNearestOne) {
  const char* environment[] = {"PATH=/bin",
                               "MESHARD_PLUGIN=/p.so",
                               "MESHARD_PLUGN=/p.so",
                               "MESHARD_QUIRK=-all",
                               "MESHARD_TEST_SEED=1",
                               "MESHARD_PLUGIN_CUDA=/cuda.so",
                               "MESHARD_PLUGIN_LOGS=0",
                               "OTHER_MESHARD_QUIRK=1",
                               nullptr};
  auto is = [](const std::string& name, const std::string& nearest) {
    return "[environment] " + name +
           " is set, but meshard reads no such variable; the nearest name is \"" + nearest + "\"";
  };
  EXPECT_THAT(unknown_variables(environment),
              testing::ElementsAre(is("MESHARD_PLUGN", "MESHARD_PLUGIN"),
                                   is("MESHARD_QUIRK", "MESHARD_QUIRKS"),
                                   is("MESHARD_PLUGIN_LOGS", "MESHARD_PLUGIN_LOG")));
}

TEST(Environment, TheyAreReportedOnce) {
  auto report = [] {
    testing::internal::CaptureStderr();
    report_unknown_variables();
    return testing::internal::GetCapturedStderr();
  };
  ::setenv("MESHARD_QUIRK", "-all", 1);
  EXPECT_THAT(report(), testing::HasSubstr("meshard: [environment] MESHARD_QUIRK is set"));
  EXPECT_EQ(report(), "");
  ::unsetenv("MESHARD_QUIRK");
}

TEST(Environment, ValuesThatWouldHaveNoEffectAreErrors) {
  EXPECT_TRUE(check_environment().ok());
  auto message_of = [](const char* name, const char* value) {
    ::setenv(name, value, 1);
    Result<void> checked = check_environment();
    ::unsetenv(name);
    return checked.ok() ? "" : checked.error().message();
  };
  EXPECT_EQ(message_of("MESHARD_CHECK_NANS", "1"), "");
  EXPECT_EQ(message_of("MESHARD_CHECK_NANS", "true"),
            "[environment] MESHARD_CHECK_NANS is 'true': expected a whole number from 0 to 1");
  EXPECT_EQ(message_of("MESHARD_PLUGIN_LOG", "4"),
            "[environment] MESHARD_PLUGIN_LOG is '4': expected a whole number from 0 to 3");
  for (const char* name : {"MESHARD_ADVICE", "MESHARD_TRUST_FILES", "MESHARD_LOG"})
    EXPECT_THAT(message_of(name, "yes"), testing::HasSubstr(name));
}

}  // namespace
}  // namespace meshard
