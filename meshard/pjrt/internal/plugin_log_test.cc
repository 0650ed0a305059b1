#include "meshard/pjrt/internal/plugin_log.h"

#include <gtest/gtest.h>

#include <map>

namespace meshard::pjrt {
namespace {

std::map<std::string, std::string> chosen(const char* asked,
                                          std::map<std::string, std::string> variables = {},
                                          LogLevel level = LogLevel::kError) {
  choose_plugin_log(asked, level, [&](const char* name, const std::string& value) {
    variables.emplace(name, value);
  });
  return variables;
}

TEST(PluginLog, OneSettingForAllPlugins) {
  EXPECT_EQ(chosen("0").at("TF_CPP_MIN_LOG_LEVEL"), "0");
  EXPECT_EQ(chosen("3").at("TF_CPP_MIN_LOG_LEVEL"), "3");
  EXPECT_EQ(chosen("1").at("TPU_STDERR_LOG_LEVEL"), "1");
}

TEST(PluginLog, QuietByDefault) {
  for (const char* asked : {static_cast<const char*>(nullptr), "", "4", "many"})
    EXPECT_EQ(chosen(asked).at("TF_CPP_MIN_LOG_LEVEL"), "3");
}

TEST(PluginLog, TheLogLevelDecidesWithoutTheVariable) {
  EXPECT_EQ(chosen(nullptr, {}, LogLevel::kInfo).at("TF_CPP_MIN_LOG_LEVEL"), "0");
  EXPECT_EQ(chosen("", {}, LogLevel::kWarning).at("TF_CPP_MIN_LOG_LEVEL"), "1");
  EXPECT_EQ(chosen(nullptr, {}, LogLevel::kOff).at("TF_CPP_MIN_LOG_LEVEL"), "3");
  EXPECT_EQ(chosen("2", {}, LogLevel::kInfo).at("TF_CPP_MIN_LOG_LEVEL"), "2");
}

TEST(PluginLog, WhatTheUserSetStays) {
  auto variables = chosen("3", {{"TF_CPP_MIN_LOG_LEVEL", "0"}});
  EXPECT_EQ(variables.at("TF_CPP_MIN_LOG_LEVEL"), "0");
  EXPECT_EQ(variables.at("TPU_MIN_LOG_LEVEL"), "3");
}

}  // namespace
}  // namespace meshard::pjrt
