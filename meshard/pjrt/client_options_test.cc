#include <gtest/gtest.h>

#include "meshard/pjrt/named_value.h"
#include "tests/support/matchers.h"

namespace meshard::pjrt {
namespace {

auto checks(std::vector<NamedValue> options) {
  return [options = std::move(options)] { check_client_options(options).value(); };
}

TEST(ClientOptions, KnownOnesOfTheRightKindPass) {
  checks({{"cpu_device_count", std::int64_t{2048}}})();
  checks({{"memory_fraction", 0.5f}, {"visible_devices", std::vector<std::int64_t>{0, 1}}})();
  ClientOptionSpec more{"my_option", "string", "mine"};
  NamedValue mine{"my_option", std::string("x")};
  EXPECT_TRUE(check_client_options({&mine, 1}, {&more, 1}).ok());
  EXPECT_FALSE(check_client_options({&mine, 1}).ok());
}

TEST(ClientOptions, TheKnownOnesAreListed) {
  EXPECT_TRUE(throws_error(checks({{"no_option", true}}), ErrorCode::kInvalidArgument,
                           {"cpu_device_count", "process_id", "visible_devices", "num_nodes",
                            "max_inflight_computations", "ml_framework_name"}));
}

TEST(ClientOptions, OthersAreRefusedByName) {
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error(checks({{"cpu_device_count", std::string("4")}}), invalid,
                           {"cpu_device_count", "int64", "string \"4\""}));
  EXPECT_TRUE(throws_error(checks({{"cpu_device_count", std::int64_t{2049}}}), invalid,
                           {"2049", "1..2048"}));
  EXPECT_TRUE(throws_error(checks({{"preallocate", true}, {"preallocate", true}}), invalid,
                           {"preallocate", "twice"}));
  EXPECT_TRUE(throws_error(checks({{"nonsense", true}}), invalid, {"\"nonsense\"", "num_nodes"}));
}

TEST(NamedValue, PrintsEveryKind) {
  EXPECT_EQ((NamedValue{"a", std::string("b")}.to_string()), "a = \"b\"");
  EXPECT_EQ((NamedValue{"a", std::int64_t{-3}}.to_string()), "a = -3");
  EXPECT_EQ((NamedValue{"a", std::vector<std::int64_t>{1, 2}}.to_string()), "a = [1, 2]");
  EXPECT_EQ((NamedValue{"a", 0.5f}.to_string()), "a = 0.5");
  EXPECT_EQ((NamedValue{"a", true}.to_string()), "a = true");
}

}  // namespace
}  // namespace meshard::pjrt
