#include "meshard/base/print.h"

#include <gtest/gtest.h>

#include <iomanip>
#include <map>
#include <sstream>
#include <vector>

#include "meshard/base/error.h"

namespace other {

struct Stranger {
  std::string to_string() const { return "stranger"; }
};

}  // namespace other

namespace meshard {

struct WithMember {
  int number = 0;
  std::string to_string(int base = 10) const { return std::to_string(number + base - 10); }
};
enum class WithFunction { kOne, kTwo };
std::string_view to_string(WithFunction value) {
  return value == WithFunction::kOne ? "one" : "two";
}
struct WithoutText {};

namespace {

template <class T>
concept Printable = requires(std::ostream& stream, const T& value) {
  stream << value;
};

template <class T>
std::string printed(const T& value) {
  std::ostringstream stream;
  stream << value;
  return stream.str();
}

TEST(Print, ClassesAndEnums) {
  EXPECT_EQ(printed(WithMember{7}), "7");
  EXPECT_EQ(to_string(WithMember{7}), "7");
  EXPECT_EQ(printed(WithFunction::kTwo), "two");
  EXPECT_EQ(printed(ErrorCode::kNotFound), "not found");
  EXPECT_EQ(testing::PrintToString(WithMember{7}), "7");
  EXPECT_EQ(testing::PrintToString(std::vector{WithFunction::kOne}), "{ one }");
}

TEST(Print, FollowsTheFormatOfTheStream) {
  std::ostringstream stream;
  stream << std::setw(5) << WithFunction::kTwo << '|' << std::left << std::setw(4) << WithMember{1}
         << '|';
  EXPECT_EQ(stream.str(), "  two|1   |");
}

// Types of others, and of std, print as they did.
TEST(Print, LeavesOtherTypesAlone) {
  static_assert(!Printable<WithoutText>);
  static_assert(!Printable<other::Stranger>);
  static_assert(!Printable<std::map<int, WithMember>>);
  EXPECT_EQ(printed(5), "5");
  EXPECT_EQ(printed(std::string("text")), "text");
  EXPECT_EQ(printed("text"), "text");
  EXPECT_EQ(printed(true), "1");
  std::ostringstream stream;
  stream << std::hex << 255 << std::ios_base::dec;
  EXPECT_EQ(stream.str().substr(0, 2), "ff");
}

}  // namespace
}  // namespace meshard
