// Which plugin and client a device type selects. Each case runs in its own process.
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "meshard/mesh/device_type.h"
#include "tests/error/fake_runtime.h"

namespace meshard {
namespace {

const std::string kFake = MESHARD_FAKE_PLUGIN;

class PlatformChoiceDeathTest : public testing::Test {
 protected:
  void SetUp() override { testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
};

// Runs the checks in a process, which exits with 0 if all of them hold.
[[noreturn]] void process(const std::function<bool()>& holds) {
  for (const char* name : {"MESHARD_PLUGIN", "MESHARD_PLATFORM", "MESHARD_PLUGIN_OTHER"})
    ::unsetenv(name);
  try {
    std::_Exit(holds() ? 0 : 1);
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
    std::_Exit(2);
  }
}

#define EXPECT_HOLDS(...) EXPECT_EXIT(process([] __VA_ARGS__), testing::ExitedWithCode(0), "")

TEST_F(PlatformChoiceDeathTest, AVariableNamesThePluginOfADeviceType) {
  EXPECT_HOLDS({
    ::setenv("MESHARD_PLUGIN_OTHER", kFake.c_str(), 1);
    const pjrt::Client& client = runtime_client("other");
    Mesh mesh = init_device_mesh("other", {4});
    Tensor x = mark_sharding(f32({4}), mesh, P(0));
    sync(x);
    // The default platform was not needed, and was not started.
    return client.name() == "other" && client.plugin().path() == kFake &&
           started_clients().size() == 1 && x.placement() == "devices 0,1,2,3 of other" &&
           platform_name(Mesh()) == "cpu";
  });
}

// Only plugins of CPUs know the option cpu_device_count.
TEST_F(PlatformChoiceDeathTest, TheNumberOfCpusIsForPluginsOfCpus) {
  EXPECT_HOLDS({
    std::string link = testing::TempDir() + "/libpjrt_cuda_" + std::to_string(::getpid()) + ".so";
    if (::symlink(kFake.c_str(), link.c_str()) != 0) return false;
    ::setenv("MESHARD_PLUGIN", link.c_str(), 1);
    ::setenv("MESHARD_CPU_DEVICES", "3", 1);
    std::size_t devices = runtime_client().device_count();
    ::unlink(link.c_str());
    return devices != 3;
  });
  EXPECT_HOLDS({
    ::setenv("MESHARD_PLUGIN", kFake.c_str(), 1);
    ::setenv("MESHARD_CPU_DEVICES", "3", 1);
    return runtime_client().device_count() == 3;
  });
}

TEST_F(PlatformChoiceDeathTest, MisspelledVariablesAreReported) {
  auto started = [] {
    ::setenv("MESHARD_PLUGIN", kFake.c_str(), 1);
    ::setenv("MESHARD_CPU_DEVICE", "3", 1);
    return runtime_client().device_count() != 3;
  };
  EXPECT_EXIT(process(started), testing::ExitedWithCode(0),
              "MESHARD_CPU_DEVICE is set.*\"MESHARD_CPU_DEVICES\"");
  EXPECT_HOLDS({
    ::setenv("MESHARD_PLUGIN", kFake.c_str(), 1);
    ::setenv("MESHARD_CHECK_NANS", "on", 1);
    return bool(throws_error([] { (void)runtime_client(); }, ErrorCode::kInvalidArgument,
                             {"MESHARD_CHECK_NANS is 'on'"}));
  });
}

TEST_F(PlatformChoiceDeathTest, AFileThatIsNotThere) {
  EXPECT_HOLDS({
    ::setenv("MESHARD_PLUGIN_OTHER", "/no/such/plugin.so", 1);
    return bool(
        throws_error([] { init_device_mesh("other", {4}); }, ErrorCode::kNotFound,
                     {"platforms_choice_test.cc:", "/no/such/plugin.so", "MESHARD_PLUGIN_OTHER"}));
  });
  EXPECT_HOLDS({
    configure_runtime({.platforms = {{.device_type = "other", .plugin = "/no/such/other.so"}}})
        .value();
    return bool(throws_error(
        [] { (void)runtime_client("other"); }, ErrorCode::kNotFound,
        {"platforms_choice_test.cc:", "while starting platform other", "/no/such/other.so"}));
  });
}

TEST_F(PlatformChoiceDeathTest, OptionsGoBeforeTheVariable) {
  EXPECT_HOLDS({
    ::setenv("MESHARD_PLUGIN_OTHER", "/no/such/plugin.so", 1);
    configure_runtime({.platforms = {{.device_type = "other", .plugin = kFake, .cpu_devices = 3}}})
        .value();
    return runtime_client("other").device_count() == 3;
  });
}

// The plugin of MESHARD_PLUGIN may be for any platform; the plugin reports which.
TEST_F(PlatformChoiceDeathTest, TheDefaultPlatformIsCalledAsItsPluginSays) {
  EXPECT_HOLDS({
    ::setenv("MESHARD_PLUGIN", kFake.c_str(), 1);
    ::setenv("MESHARD_PLUGIN_OTHER", kFake.c_str(), 1);
    const pjrt::Client& other = runtime_client("other");
    const pjrt::Client& fake = runtime_client("fake");
    Mesh plain({{"x", 2}});
    return &fake == &runtime_client() && &other != &fake && started_clients().size() == 2 &&
           plain.same_devices(plain.with_device_type("fake")) &&
           !plain.same_devices(plain.with_device_type("other"));
  });
}

TEST_F(PlatformChoiceDeathTest, ValuesKnowTheDefaultPlatformWhicheverComesFirst) {
  EXPECT_HOLDS({
    ::setenv("MESHARD_PLUGIN", kFake.c_str(), 1);
    ::setenv("MESHARD_PLUGIN_OTHER", kFake.c_str(), 1);
    Mesh plain({{"x", 2}});
    // One function over both platforms, traced before any client was started.
    auto both = jit([plain](Tensor x) {
      return mark_sharding(mark_sharding(x, plain, P("x")) * 2, plain.with_device_type("other"),
                           P("x"));
    });
    return bool(throws_error([&] { both(f32({4})); }, ErrorCode::kInvalidArgument,
                             {"two platforms, fake and other"}));
  });
}

TEST_F(PlatformChoiceDeathTest, AVariableNamesThePluginOfTheDefaultPlatformToo) {
  EXPECT_HOLDS({
    ::setenv("MESHARD_PLATFORM", "other", 1);
    ::setenv("MESHARD_PLUGIN_OTHER", kFake.c_str(), 1);
    return &runtime_client("other") == &runtime_client() && runtime_client().name() == "other" &&
           runtime_client().plugin().path() == kFake && started_clients().size() == 1;
  });
}

// The default platform is named `host`, and `fake` is another one, whatever the plugins report.
TEST_F(PlatformChoiceDeathTest, AFurtherPlatformMayHaveTheNameThatTheDefaultOnesPluginSays) {
  EXPECT_HOLDS({
    configure_runtime({.plugin = kFake,
                       .platform = "host",
                       .platforms = {{.device_type = "fake", .plugin = kFake}}})
        .value();
    Mesh plain({{"x", 2}});
    Tensor a = mark_sharding(f32({4}), plain.with_device_type("host"), P("x"));
    Tensor b = mark_sharding(f32({4}), plain.with_device_type("fake"), P("x"));
    Tensor c = mark_sharding(f32({4}), plain, P("x"));
    sync(a, b, c + a);
    return &runtime_client("host") == &runtime_client() &&
           &runtime_client("fake") != &runtime_client() && a.placement() == "devices 0,1 of host" &&
           b.placement() == "devices 0,1 of fake" &&
           bool(throws_error([&] { sync(c + b); }, ErrorCode::kInvalidArgument,
                             {"two platforms, host and fake"}));
  });
}

TEST(PlatformOptions, InvalidOnesAreRefused) {
  auto refused = [](std::vector<PlatformOptions> platforms, const std::string& why) {
    Result<void> result =
        configure_runtime({.platform = "fake", .platforms = std::move(platforms)});
    return !result.ok() && result.error().code() == ErrorCode::kInvalidArgument &&
           result.error().message().find(why) != std::string::npos;
  };
  EXPECT_TRUE(refused({{.device_type = ""}}, "give it a device type"));
  EXPECT_TRUE(refused({{.device_type = "a b"}}, "letters, digits and _"));
  EXPECT_TRUE(refused({{.device_type = "fake"}}, "it is the default platform"));
  EXPECT_TRUE(refused({{.device_type = "a"}, {.device_type = "a"}}, "listed twice"));
}

TEST_F(PlatformChoiceDeathTest, AForkedChildStartsNoPlatform) {
  EXPECT_HOLDS({
    ::setenv("MESHARD_PLUGIN_OTHER", kFake.c_str(), 1);
    ::setenv("MESHARD_PLUGIN_THIRD", kFake.c_str(), 1);
    (void)runtime_client("other");
    internal::is_forked_child = true;  // as in a child
    return bool(throws_error([] { (void)runtime_client("third"); }, ErrorCode::kFailedPrecondition,
                             {"forked"}));
  });
}

}  // namespace
}  // namespace meshard
