#include "meshard/base/source_location.h"

#include <gtest/gtest.h>

#include <string>

namespace meshard {
namespace {

SourceLocation here(SourceLocation where = SourceLocation::current()) { return where; }

TEST(SourceLocation, IsTheCallers) {
  SourceLocation where = here();
  EXPECT_EQ(where.line, static_cast<unsigned>(__LINE__ - 1));
  EXPECT_EQ(where.to_string(), "source_location_test.cc:" + std::to_string(where.line));
  EXPECT_EQ(SourceLocation{}.to_string(), "");
}

}  // namespace
}  // namespace meshard
