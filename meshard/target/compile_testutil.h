// The fixtures of the tests of compile_for() and of the processes that it starts.
#pragma once
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "meshard/base/whole_file.h"
#include "meshard/hlo/module.h"
#include "meshard/target/compile_for.h"
#include "meshard/target/compile_workers.h"
#include "tests/support/matchers.h"

namespace meshard {

namespace fs = std::filesystem;

inline constexpr const char* kSharded = R"(module @mm {
  sdy.mesh @mesh = <["data"=2, "model"=2]>
  func.func public @main(%x: tensor<256x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>},
                         %w: tensor<256x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>})
      -> (tensor<256x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
    return %0 : tensor<256x256xf32>
  }
}
)";

inline constexpr const char* kSmall = R"(module @small {
  func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %x, %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
)";

// Every test has its own TMPDIR and cache, and leaves neither files nor processes.
class CompileFor : public testing::Test {
 protected:
  void SetUp() override {
    if (!find_compile_program().ok()) GTEST_FAIL() << find_compile_program().error().what();
    ::setenv("TMPDIR", temporary_.c_str(), 1);
    fs::create_directory(temporary_);
    options_.cache = root_.path() + "/cache";
    options_.plugin = MESHARD_FAKE_PLUGIN;
    options_.time_limit = std::chrono::seconds(60);
  }
  void TearDown() override {
    options_.workers = nullptr;
    ::unsetenv("TMPDIR");
    ::unsetenv("MESHARD_FAKE_ON_COMPILE");
    ::unsetenv("MESHARD_FAKE_ON_CREATE");
    EXPECT_TRUE(fs::is_empty(temporary_)) << "a temporary folder was left";
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1) << "a process was left";
    EXPECT_EQ(errno, ECHILD);
  }
  static CompileRequest request(std::string_view target, std::string module = kSmall) {
    return {.module = std::move(module), .target = Target::parse(target).value()};
  }
  static void fate(const char* value) { ::setenv("MESHARD_FAKE_ON_COMPILE", value, 1); }
  Compiled compile(const CompileRequest& request) { return compile_for(request, options_).value(); }
  auto compiling(CompileRequest request) {
    return [this, request] { compile_for(request, options_).value(); };
  }
  std::vector<fs::path> cached() const {
    std::vector<fs::path> files;
    if (fs::exists(options_.cache))
      for (const auto& entry : fs::directory_iterator(options_.cache)) files.push_back(entry);
    return files;
  }

  TemporaryFolder root_ = TemporaryFolder::create().value();
  std::string temporary_ = root_.path() + "/tmp";
  CompileForOptions options_;
};

class CompileForReal : public CompileFor {
 protected:
  void SetUp() override {
    CompileFor::SetUp();
    options_.plugin.clear();
    options_.time_limit = std::chrono::seconds(240);
  }
  // The compiled sharded product, or none without a plugin.
  std::optional<Compiled> product(std::string_view target) {
    CompileRequest sharded = request(target, kSharded);
    sharded.options.num_partitions = 4;
    auto compiled = compile_for(sharded, options_);
    if (!compiled.ok() && compiled.error().code() == ErrorCode::kNotFound) return std::nullopt;
    return std::move(compiled).value();
  }
  void expect_product(const Compiled& compiled) {
    // Each device holds x f32[128,128], w f32[128,256] and the result f32[128,256], which fill a
    // TPU's tiles of 8x128.
    ASSERT_TRUE(compiled.memory.has_value());
    EXPECT_EQ(compiled.memory->arguments, 4 * (128 * 128 + 128 * 256));
    EXPECT_EQ(compiled.memory->outputs, 4 * 128 * 256);
    auto module = HloModule::from_bytes(compiled.optimized_program);
    ASSERT_TRUE(module.ok()) << module.error().what();
    EXPECT_NE(compiled.optimized_program.find("all-reduce"), std::string::npos);
    EXPECT_NE(compiled.propagated_program.find("dot"), std::string::npos);
    EXPECT_EQ(compiled.propagated_program.find("all-reduce"), std::string::npos);
    EXPECT_NE(compiled.buffer_assignment.find("all-reduce"), std::string::npos);
    EXPECT_FALSE(compiled.platform_version.empty());
    EXPECT_GT(compiled.compile_seconds, 0);
  }
};

}  // namespace meshard
