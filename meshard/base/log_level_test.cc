#include <gmock/gmock.h>

#include <cstdlib>

#include "meshard/base/environment.h"

namespace meshard {
namespace {

class LogLevels : public testing::Test {
 protected:
  void TearDown() override {
    ::unsetenv("MESHARD_LOG");
    set_log_level(LogLevel::kError);
  }
};

TEST_F(LogLevels, ComeFromTheEnvironmentUntilOneIsSet) {
  // The first test of the program: no level is set yet.
  EXPECT_EQ(log_level(), LogLevel::kError);
  ::setenv("MESHARD_LOG", "info", 1);
  EXPECT_EQ(log_level(), LogLevel::kInfo);
  EXPECT_TRUE(check_log_variable().ok());
  ::setenv("MESHARD_LOG", "loud", 1);
  EXPECT_EQ(log_level(), LogLevel::kError);
  EXPECT_EQ(check_log_variable().error().message(),
            "[environment] MESHARD_LOG is 'loud': expected off, error, warning or info");
  ::setenv("MESHARD_LOG", "info", 1);
  set_log_level(LogLevel::kOff);
  EXPECT_EQ(log_level(), LogLevel::kOff);
}

TEST_F(LogLevels, NamesAreParsed) {
  for (LogLevel level : {LogLevel::kOff, LogLevel::kError, LogLevel::kWarning, LogLevel::kInfo})
    EXPECT_EQ(parse_log_level(to_string(level)).value(), level);
  EXPECT_THAT(parse_log_level("WARNING").error().message(), testing::HasSubstr("\"WARNING\""));
}

}  // namespace
}  // namespace meshard
