#include "meshard/base/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "meshard/base/outer_line.h"
#include "meshard/base/result.h"

namespace meshard {
namespace {

TEST(Error, SaysWhereWhatAndTheNotes) {
  SourceLocation where{"/home/user/train.cc", "main", 42};
  Error error(ErrorCode::kInvalidArgument, "[add] shapes differ", where);
  EXPECT_STREQ(error.what(), "train.cc:42: invalid argument: [add] shapes differ");
  Error noted = error.with_note("lhs was made at a.cc:1").with_note("rhs was made at b.cc:2");
  EXPECT_STREQ(noted.what(),
               "train.cc:42: invalid argument: [add] shapes differ\n"
               "  note: lhs was made at a.cc:1\n  note: rhs was made at b.cc:2");
  EXPECT_TRUE(error.notes().empty()) << "with_note returns a copy";
}

TEST(Error, KeepsItsFirstPlace) {
  Error nowhere(ErrorCode::kNotFound, "x");
  EXPECT_FALSE(nowhere.where().known());
  Error somewhere = nowhere.at(SourceLocation{"a.cc", "f", 7});
  EXPECT_EQ(somewhere.where().line, 7u);
  EXPECT_EQ(somewhere.at(SourceLocation{"b.cc", "g", 9}).where().line, 7u);
}

TEST(Error, HasNoLineOfTheLibrary) {
  std::string file = __FILE__;  // that of a test counts
  EXPECT_TRUE(Error(ErrorCode::kNotFound, "x", {file.c_str(), "f", 7}).where().known());
  file.replace(file.find("error_test.cc"), std::string::npos, "base.cc");
  Error error(ErrorCode::kNotFound, "x", {file.c_str(), "f", 7});
  EXPECT_FALSE(error.where().known());
  EXPECT_EQ(error.at({"a.cc", "f", 7}).where().line, 7u);
}

TEST(Error, HasTheOuterLineIfThereIsOne) {
  static const SourceLocation outer{"model.cc", "in nn::linear", 40};
  internal::set_outer_line([] { return &outer; });
  Error error(ErrorCode::kNotFound, "x", {"linear.cc", "f", 7});
  internal::set_outer_line(nullptr);
  EXPECT_STREQ(error.what(), "model.cc:40, in nn::linear: not found: x");
}

TEST(Result, ValueAddsTheLine) {
  Result<int> failed = Error(ErrorCode::kNotFound, "x");
  const std::uint32_t line = __LINE__ + 2;
  try {
    (void)failed.value();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.where().line, line);
  }
  EXPECT_THROW(Result<void>(Error(ErrorCode::kNotFound, "x")).value(), Error);
}

TEST(Error, CodesAreThoseOfPjrt) {
  EXPECT_EQ(static_cast<int>(ErrorCode::kInvalidArgument), 3);
  EXPECT_EQ(static_cast<int>(ErrorCode::kUnimplemented), 12);
  EXPECT_EQ(static_cast<int>(ErrorCode::kUnauthenticated), 16);
}

TEST(InternalError, AsksForAReport) {
  try {
    internal_check(false, "modes out of order");
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("bug in meshard"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("error_test.cc"), std::string::npos);
  }
}

Result<int> half(int n) {
  if (n % 2 != 0) return Error(ErrorCode::kInvalidArgument, cat(n, " is odd"));
  return n / 2;
}
Result<int> quarter(int n) {
  MESHARD_ASSIGN_OR_RETURN(int h, half(n));
  return half(h);
}

TEST(Result, HoldsAValueOrAnError) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).error().message(), "3 is odd");
  EXPECT_THROW((void)quarter(5).value(), Error);
  EXPECT_EQ(quarter(5).value_or(-1), -1);
}

TEST(Result, OfNothing) {
  Result<void> fine;
  EXPECT_TRUE(fine.ok());
  Result<void> bad = Error(ErrorCode::kAborted, "stopped");
  EXPECT_THROW(bad.value(), Error);
}

}  // namespace
}  // namespace meshard
