#include "meshard/pjrt/internal/plugin_log.h"

#include <gtest/gtest.h>

#include <map>

namespace meshard::pjrt {
namespace {

std::map<std::string, std::string> chosen(std::int64_t asked,
                                          std::map<std::string, std::string> variables = {},
                                          LogLevel level = LogLevel::kError) {
  choose_plugin_log(asked, level, [&](const char* name, const std::string& value) {
    variables.emplace(name, value);
  });
  return variables;
}

TEST(PluginLog, OneSettingForAllPlugins) {
  EXPECT_EQ(chosen(0).at("TF_CPP_MIN_LOG_LEVEL"), "0");
  EXPECT_EQ(chosen(3).at("TF_CPP_MIN_LOG_LEVEL"), "3");
  EXPECT_EQ(chosen(1).at("TPU_STDERR_LOG_LEVEL"), "1");
}

TEST(PluginLog, QuietByDefault) { EXPECT_EQ(chosen(-1).at("TF_CPP_MIN_LOG_LEVEL"), "3"); }

TEST(PluginLog, TheLogLevelDecidesWithoutTheVariable) {
  EXPECT_EQ(chosen(-1, {}, LogLevel::kInfo).at("TF_CPP_MIN_LOG_LEVEL"), "0");
  EXPECT_EQ(chosen(-1, {}, LogLevel::kWarning).at("TF_CPP_MIN_LOG_LEVEL"), "1");
  EXPECT_EQ(chosen(-1, {}, LogLevel::kOff).at("TF_CPP_MIN_LOG_LEVEL"), "3");
  EXPECT_EQ(chosen(2, {}, LogLevel::kInfo).at("TF_CPP_MIN_LOG_LEVEL"), "2");
}

TEST(PluginLog, WhatTheUserSetStays) {
  auto variables = chosen(3, {{"TF_CPP_MIN_LOG_LEVEL", "0"}});
  EXPECT_EQ(variables.at("TF_CPP_MIN_LOG_LEVEL"), "0");
  EXPECT_EQ(variables.at("TPU_MIN_LOG_LEVEL"), "3");
}

}  // namespace
}  // namespace meshard::pjrt
