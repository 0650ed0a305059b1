#include "meshard/pjrt/plugin_search.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "tests/support/matchers.h"

namespace meshard::pjrt {
namespace {

namespace fs = std::filesystem;

class PluginSearchTest : public ::testing::Test {
 protected:
  PluginSearchTest() : root_(fs::temp_directory_path() / cat("meshard_search_", ::getpid())) {
    fs::remove_all(root_);
    fs::create_directories(root_);
    variables_["HOME"] = (root_ / "home").string();
  }
  ~PluginSearchTest() override { fs::remove_all(root_); }

  std::string file(const std::string& path) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << "x";
    return (root_ / path).string();
  }
  ReadEnvironment environment() {
    return [this](const char* name) -> std::optional<std::string> {
      auto found = variables_.find(name);
      if (found == variables_.end()) return std::nullopt;
      return found->second;
    };
  }
  // The plugins found in this test's folder; the machine may have others.
  std::vector<std::string> found() {
    std::vector<std::string> paths;
    for (const FoundPlugin& plugin : find_plugins(environment()).found)
      if (plugin.path.starts_with(root_.string())) paths.push_back(plugin.path);
    return paths;
  }
  fs::path root_;
  std::map<std::string, std::string> variables_;
};

// Never /tmp, where anybody could have placed a plugin.
TEST_F(PluginSearchTest, WithoutHomeTheAccountsHomeCounts) {
  for (const char* home : {"", "relative", "none"}) {
    variables_["HOME"] = home;
    if (std::string_view(home) == "none") variables_.erase("HOME");
    for (const SearchedPlace& place : find_plugins(environment()).places)
      EXPECT_FALSE(place.path.starts_with("/tmp/.cache")) << place.path;
  }
}

TEST_F(PluginSearchTest, WithoutAPluginTheErrorSaysHowToGetOne) {
  PluginSearch none;
  none.places.push_back({"/looked/here", "cache", false});
  EXPECT_TRUE(throws_error([&] { none.first("cpu").value(); }, ErrorCode::kNotFound,
                           {"meshard fetch cpu", "meshard doctor", "/looked/here"}));
}

TEST_F(PluginSearchTest, LooksInOrderAndOnce) {
  std::string named = file("mine/some_thing.so");
  std::string cached = file("cache/xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so");
  file("cache/xla_plugins/xla_cpu_pjrt/readme.txt");
  file("cache/plugins/libhelper.so");
  std::string wheel =
      file("venv/lib/python3.11/site-packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so");
  std::string tpu = file("venv/lib/python3.11/site-packages/libtpu/libtpu.so");
  variables_["MESHARD_PLUGIN"] = named + ":" + named + ":/does/not/exist.so";
  variables_["MESHARD_CACHE"] = (root_ / "cache").string();
  variables_["VIRTUAL_ENV"] = (root_ / "venv").string();
  EXPECT_EQ(found(), (std::vector<std::string>{named, cached, wheel, tpu}));
  PluginSearch search = find_plugins(environment());
  EXPECT_EQ(search.found[1].platform, "cpu");
  EXPECT_EQ(search.first("cpu").value(), named) << "MESHARD_PLUGIN serves for any platform";
  bool missing_named = false;
  for (const SearchedPlace& place : search.places)
    missing_named |= place.path == "/does/not/exist.so" && !place.exists;
  EXPECT_TRUE(missing_named);
}

TEST_F(PluginSearchTest, FetchedPluginsAreFoundByPlatform) {
  std::string tpu = file("cache/plugins/libtpu-0.0.51/libtpu.so");
  std::string cuda =
      file("cache/plugins/xla_cuda13-0.12.0.1/jax_plugins/xla_cuda13/xla_cuda_plugin.so");
  file("cache/plugins/xla_cuda13-0.12.0.1/nvidia/cu13/bin/ptxas");
  std::string cpu = file("cache/plugins/xla_cpu_pjrt-0.0.1/xla_cpu_pjrt.so");
  variables_["MESHARD_CACHE"] = (root_ / "cache").string();
  PluginSearch search = find_plugins(environment());
  EXPECT_EQ(search.first("tpu").value(), tpu);
  EXPECT_EQ(search.first("cuda").value(), cuda);
  EXPECT_EQ(search.first("cpu").value(), cpu);
}

TEST_F(PluginSearchTest, TheDefaultCpuPluginComesBeforeOthers) {
  file("cache/plugins/a_cpu-1/libpjrt_cpu.so");
  std::string cpu = file("cache/plugins/fastatomstruct_xla_cpu-2026.6.23/libpjrt_cpu.so");
  file("cache/plugins/xla_cpu_pjrt-0.0.1/xla_cpu_pjrt.so");
  std::string packages = "venv/lib/python3.11/site-packages/";
  std::string wheel = file(packages + "fastatomstruct_xla_cpu/libpjrt_cpu.so");
  variables_["MESHARD_CACHE"] = (root_ / "cache").string();
  variables_["VIRTUAL_ENV"] = (root_ / "venv").string();
  EXPECT_EQ(find_plugins(environment()).first("cpu").value(), cpu);
  variables_["MESHARD_CACHE"] = (root_ / "empty").string();
  EXPECT_EQ(find_plugins(environment()).first("cpu").value(), wheel);
}

TEST_F(PluginSearchTest, NotFoundListsThePlaces) {
  variables_["MESHARD_CACHE"] = (root_ / "cache").string();
  EXPECT_TRUE(throws_error([&] { find_plugins(environment()).first("abacus").value(); },
                           ErrorCode::kNotFound, {"abacus", (root_ / "cache/plugins").string()}));
}

TEST(GuessPlatform, FromTheFileName) {
  EXPECT_EQ(guess_platform("/x/libtpu.so"), "tpu");
  EXPECT_EQ(guess_platform("/x/xla_cuda_plugin.so"), "cuda");
  EXPECT_EQ(guess_platform("/x/xla_gpu_pjrt.so"), "cuda");
  EXPECT_EQ(guess_platform("/x/xla_rocm_plugin.so"), "rocm");
  EXPECT_EQ(guess_platform("/x/pjrt_plugin_xpu.so"), "oneapi");
  EXPECT_EQ(guess_platform("/cpu/other.so"), "");
}

}  // namespace
}  // namespace meshard::pjrt
