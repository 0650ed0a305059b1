// Pipelines on the real plugin, of which one call fails in a step: parameters and optimizer states
// are exactly those of a run without the fault.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "meshard/meshard.h"
#include "meshard/pipeline/pipeline.h"
#include "meshard/pipeline/schedule/schedule.h"
#include "meshard/pjrt/plugin_search.h"
#include "tests/faulty_plugin/control.h"

namespace meshard {
namespace {

void* faulty() {
  static void* library = ::dlopen(MESHARD_FAULTY, RTLD_NOW);
  return library;
}
void set(const Fault* fault) {
  reinterpret_cast<decltype(&faulty_set)>(::dlsym(faulty(), "faulty_set"))(fault);
}
int hits() { return reinterpret_cast<decltype(&faulty_hits)>(::dlsym(faulty(), "faulty_hits"))(); }

struct PipelineFaults : testing::Test {
  void SetUp() override {
    std::string real = pjrt::find_plugins().first("cpu").value_or("");
    if (real.empty()) GTEST_SKIP() << "no CPU plugin (meshard fetch cpu)";
    ::setenv("MESHARD_FAULTY_PLUGIN", real.c_str(), 1);
    static const bool configured =
        configure_runtime({.plugin = MESHARD_FAULTY, .platform = "cpu"}).ok();
    ASSERT_TRUE(configured);
    ASSERT_NE(faulty(), nullptr);
  }
  void TearDown() override {
    if (faulty()) set(nullptr);
  }

  static Tensor numbers(Shape shape, int seed) {
    std::vector<float> all;
    for (std::int64_t i = 0; i < shape.size(); ++i)
      all.push_back(0.1f * static_cast<float>((i * 7 + seed) % 11 - 5));
    return from_host(std::move(all), std::move(shape));
  }
  static Pipeline pipeline() {
    std::vector<PipelineStage> stages;
    stages.push_back(
        PipelineStage(Mesh({{"x", 1}}, {0}), numbers({4, 4}, 1),
                      [](const Tensor& w, const Tensor& x) { return tanh(matmul(x, w)); }));
    stages.push_back(PipelineStage(Mesh({{"x", 1}}, {1}), numbers({4, 4}, 2),
                                   [](const Tensor& w, const Tensor& h, const Tensor& x) {
                                     return mean(square(matmul(h, w) - x));
                                   }));
    return Pipeline(stages, one_forward_one_backward(2, 2),
                    {.optimizer = optim::Adam{.rate = 0.1}, .clip_norm = 0.5});
  }
  static std::vector<Tensor> batch(int step) {
    return {numbers({2, 4}, step), numbers({2, 4}, step + 3)};
  }
  static std::vector<std::vector<float>> parameters(const Pipeline& pipeline) {
    return {pipeline.parameters<Tensor>(0).to_vector<float>(),
            pipeline.parameters<Tensor>(1).to_vector<float>()};
  }
};

TEST_F(PipelineFaults, AStepThatFailedChangesNothing) {
  Pipeline whole = pipeline();
  std::vector<std::vector<std::vector<float>>> expected;  // by step and stage
  for (int step = 0; step < 3; ++step) {
    whole.step(batch(step));
    expected.push_back(parameters(whole));
  }
  for (const char* entry : {"PJRT_LoadedExecutable_Execute", "PJRT_Buffer_CopyToDevice"})
    for (FaultKind kind : {kFaultError, kFaultErrorEvent}) {
      // Copies return no event.
      if (kind == kFaultErrorEvent && std::string(entry) == "PJRT_Buffer_CopyToDevice") continue;
      int failures = 0;
      for (int k = 1;; ++k) {
        ASSERT_LT(k, 100);
        Pipeline disturbed = pipeline();
        disturbed.step(batch(0));
        Fault fault{kind, k, entry, -1, 13, "injected", 0};
        set(&fault);
        bool failed = false;
        try {
          disturbed.step(batch(1));
        } catch (const Error& error) {
          failed = true;
          EXPECT_NE(std::string(error.what()).find("injected"), std::string::npos) << error.what();
        }
        const bool hit = hits() > 0;
        set(nullptr);
        failures += failed;
        EXPECT_EQ(parameters(disturbed), expected[failed ? 0 : 1]) << entry << ", call " << k;
        if (failed) disturbed.step(batch(1));
        disturbed.step(batch(2));
        EXPECT_EQ(parameters(disturbed), expected[2]) << entry << ", after call " << k;
        if (!hit) break;
      }
      EXPECT_GE(failures, 4) << entry;
    }
}

}  // namespace
}  // namespace meshard
