#include "meshard/runtime/runtime.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "meshard/graph/evaluator.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/sync.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/trace/jit.h"
#include "tests/support/exit_statuses.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using Runtime = OnPlugin;
using RuntimeAtExitDeathTest = OnPlugin;

TEST_F(Runtime, ThereIsOneClient) {
  EXPECT_EQ(&runtime_client(), &runtime_client());
  EXPECT_GE(runtime_client().device_count(), 8u);
}

TEST_F(Runtime, ConfiguringARunningRuntimeIsAnError) {
  Result<void> result = configure_runtime({.cpu_devices = 2});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kFailedPrecondition);
  EXPECT_NE(result.error().message().find("already running"), std::string::npos);
}

// Without the check, the child would wait for threads that it does not have.
TEST_F(Runtime, AForkedChildIsToldThatItCannotCompute) {
  Tensor x = from_host(std::vector<float>{1, 2}, {2});
  Tensor computed = x + 1;
  sync({computed});
  auto step = jit([](Tensor v) { return v * 2; });
  (void)step(computed).to_host();
  pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(30);
    auto refuses = [](auto work) {
      return bool(throws_error(work, ErrorCode::kFailedPrecondition,
                               {"runtime_test.cc:", "forked", "exec"}));
    };
    bool all = refuses([&] { (void)(x + 2).to_host(); }) && refuses([&] { (void)step(x); }) &&
               refuses([&] { (void)step(computed); }) && refuses([&] { (void)computed.to_host(); });
    ::_exit(all ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  EXPECT_EQ(computed.to_host().at<float>({1}), 3) << "the parent goes on";
}

// Tests that need their own process, because each process has one runtime.
TEST(RuntimeDeathTest, TakesTheNumberOfDevices) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        if (!configure_runtime({.cpu_devices = 3}).ok()) std::_Exit(2);
        try {
          std::_Exit(runtime_client().device_count() == 3 ? 0 : 1);
        } catch (const Error& error) {
          std::_Exit(error.code() == ErrorCode::kNotFound ? 0 : 3);  // no plugin here
        }
      },
      testing::ExitedWithCode(0), "");
}

// These programs are the first of their process: meanwhile the plugin creates its static objects.
TEST_F(RuntimeAtExitDeathTest, EndsWithItsOwnStatusWithWorkInFlight) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const Mesh mesh({{"x", 2}, {"y", 4}});
  for (std::int64_t size = 16; size < 16 + 12; ++size)
    EXPECT_EXIT(
        {
          std::vector<float> ones(static_cast<std::size_t>(64 * size), 1.0f);
          Tensor a = mark_sharding(from_host(ones, {size, 64}), mesh, P(none, "y"));
          Tensor b = mark_sharding(from_host(ones, {64, size}), mesh, P("y", none));
          compute({dot_general(a, b, {.lhs_contracting = {1}, .rhs_contracting = {0}})});
          std::exit(3);
        },
        testing::ExitedWithCode(3), "");
}

TEST(RuntimeDeathTest, ANumberOfDevicesThatIsNone) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        ::setenv("MESHARD_CPU_DEVICES", "many", 1);
        try {
          (void)runtime_client();
        } catch (const Error& error) {
          std::fputs(error.what(), stderr);
          std::_Exit(error.code() == ErrorCode::kNotFound ? 7 : 8);
        }
        std::_Exit(0);
      },
      [](int status) { return WEXITSTATUS(status) == 7 || WEXITSTATUS(status) == 8; },
      "MESHARD_CPU_DEVICES is 'many'|no plugin");
}

TEST(RuntimeDeathTest, AMissingPluginNamesTheCallersLine) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(
      {
        (void)configure_runtime({.plugin = "/no/such/plugin.so"});
        try {
          (void)runtime_client();
        } catch (const Error& error) {
          std::fputs(error.what(), stderr);
          std::_Exit(5);
        }
        std::_Exit(0);
      },
      testing::ExitedWithCode(5), "runtime_test.cc:.*/no/such/plugin.so");
}

}  // namespace
}  // namespace meshard
