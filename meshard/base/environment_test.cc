#include "meshard/base/environment.h"

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

}  // namespace
}  // namespace meshard
