#include "tools/meshard/targets.h"

#include <cstdio>
#include <string>

#include "meshard/target/compile_for.h"

namespace meshard::tool {
namespace {

struct Platform {
  const char* name;
  const char* hardware;
  const char* examples;
  const char* target;  // the target that is tested
};

constexpr Platform kPlatforms[] = {
    {"tpu", "TPUs", "v5e:4x4, v6e:16x16, v5p:4x4x4, tpu7x:4x4x4, v5e:16x16*2", "v5e:1x1"},
    {"cuda", "NVIDIA GPUs", "h100:8, h100:4x8, h200:8, b200:8, b300:8, gb200:72, gb300:2x72",
     "h100:1"},
    {"cpu", "virtual CPUs", "cpu:8", "cpu:1"},
};

constexpr const char* kSmallestModule =
    "module @small { func.func public @main(%x: tensor<8x128xf32>) -> tensor<8x128xf32> {\n"
    "  %0 = stablehlo.add %x, %x : tensor<8x128xf32>\n  return %0 : tensor<8x128xf32>\n} }\n";

// Tests a platform. Returns what is wrong; empty: nothing.
std::string try_platform(const Platform& platform, std::chrono::seconds time_limit) {
  CompileForOptions options;
  options.use_cache = false;
  options.time_limit = time_limit;
  auto compiled = compile_for(
      {.module = kSmallestModule, .target = Target::parse(platform.target).value()}, options);
  if (compiled.ok()) return "";
  bool no_plugin = compiled.error().code() == ErrorCode::kNotFound &&
                   compiled.error().message().find("meshard fetch") != std::string::npos;
  if (no_plugin) return cat("no compiler is installed; run meshard fetch ", platform.name);
  return cat("does not work: ", compiled.error().message());
}

bool print_platform(const Platform& platform, std::chrono::seconds time_limit) {
  std::string problem = try_platform(platform, time_limit);
  std::printf("  %-13s %s\n", platform.hardware,
              problem.empty() ? cat("works: ", platform.examples).c_str() : problem.c_str());
  return problem.empty();
}

}  // namespace

int print_targets(std::chrono::seconds time_limit) {
  int working = 0;
  std::printf("\nCompiling for absent hardware (tested with a small program)\n");
  for (const Platform& platform : kPlatforms) working += print_platform(platform, time_limit);
  return working;
}

bool print_target(std::string_view name, std::chrono::seconds time_limit) {
  for (const Platform& platform : kPlatforms)
    if (platform.name == name) return print_platform(platform, time_limit);
  return false;
}

}  // namespace meshard::tool
