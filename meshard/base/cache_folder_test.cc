#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

#include <map>

#include "meshard/base/file_cache.h"

namespace meshard {
namespace {

ReadEnvironment environment_with(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(CacheFolder, FollowsTheEnvironment) {
  EXPECT_EQ(cache_folder(environment_with({{"HOME", "/home/me"}})), "/home/me/.cache/meshard");
  EXPECT_EQ(cache_folder(environment_with({{"HOME", "/home/me"}, {"XDG_CACHE_HOME", "/xdg"}})),
            "/xdg/meshard");
  EXPECT_EQ(cache_folder(environment_with({{"XDG_CACHE_HOME", "/xdg"}, {"MESHARD_CACHE", "/own"}})),
            "/own");
}

TEST(CacheFolder, WithoutHomeTheAccountsHomeCounts) {
  const passwd* account = ::getpwuid(::geteuid());
  std::string expected =
      account != nullptr ? std::string(account->pw_dir) + "/.cache/meshard" : std::string();
  EXPECT_EQ(cache_folder(environment_with({})), expected);
  for (const char* home : {"", "relative"})
    EXPECT_EQ(cache_folder(environment_with({{"HOME", home}})), expected) << home;
}

}  // namespace
}  // namespace meshard
