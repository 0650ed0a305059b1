// Plugins that are missing, too old, or that fail at run time.
#include <cstdlib>

#include "meshard/pjrt/plugin.h"
#include "tests/error/fake_runtime.h"
#include "tests/plugin/fixture.h"
#include "tests/support/exit_statuses.h"

namespace meshard {
namespace {

// Runs in a separate process, because this one already has a runtime.
[[noreturn]] void print_error_of_first_value() {
  if (!configure_runtime({}).ok()) std::_Exit(1);
  try {
    (void)(f32({2}) + 1).to_host();
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
    std::_Exit(5);
  }
  std::_Exit(0);
}

TEST(PluginErrorsDeathTest, AMissingPlugin) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT((::setenv("MESHARD_PLUGIN", "/nowhere/plugin.so", 1), print_error_of_first_value()),
              testing::ExitedWithCode(5), "plugin_error_test.cc:.*/nowhere/plugin.so");
}

TEST(PluginErrorsDeathTest, NoPluginAtAll) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT((::unsetenv("MESHARD_PLUGIN"), ::setenv("MESHARD_PLATFORM", "abacus", 1),
               print_error_of_first_value()),
              testing::ExitedWithCode(5), "plugin_error_test.cc:.*abacus");
}

TEST(PluginErrors, AnOlderApi) {
  FakeControl control(MESHARD_FAKE_PLUGIN);
  control.set_version(0, 1);
  Result<pjrt::Plugin> plugin = pjrt::Plugin::adopt(control.api(), "old.so");
  control.set_version(pjrt::built_api_version().major, pjrt::built_api_version().minor);
  ASSERT_FALSE(plugin.ok());
  EXPECT_EQ(plugin.error().code(), ErrorCode::kUnimplemented);
  EXPECT_NE(plugin.error().message().find("0.1"), std::string::npos) << plugin.error().what();
}

TEST(PluginErrors, BuffersOfTheRightSizeAndTheWrongType) {
  fake_runtime();
  const pjrt::Client& client = runtime_client();
  auto program = client.compile(pjrt::pass_on(2, 1), pjrt::on_first(2)).value();
  auto launch = [&](std::vector<pjrt::Buffer> buffers) {
    const pjrt::BufferList given = pjrt::BufferList::of(buffers);
    auto result = pjrt::execute(program, std::vector{&given});
    return result.ok() ? std::string("no error") : std::string(result.error().what());
  };
  auto with = [&](pjrt::ElementType element, std::vector<std::int64_t> dimensions) {
    std::vector<float> values(4);
    std::vector<pjrt::Buffer> buffers;
    for (std::size_t d = 0; d < 2; ++d) {
      pjrt::HostArrayView view{values.data(), element, dimensions};
      buffers.push_back(
          std::move(client
                        .buffer_from_host(view, pjrt::HostSemantics::kImmutableOnlyDuringCall,
                                          *program.devices()[d])
                        .value()
                        .buffer));
    }
    return buffers;
  };
  using testing::AllOf;
  using testing::HasSubstr;
  EXPECT_THAT(launch(with(pjrt::ElementType::kF32, {2, 2})),
              AllOf(HasSubstr("f32[2,2]"), HasSubstr("f32[4]")));
  EXPECT_THAT(launch(with(pjrt::ElementType::kS32, {4})),
              AllOf(HasSubstr("32[4]"), HasSubstr("f32[4]")));
  EXPECT_EQ(launch(with(pjrt::ElementType::kF32, {4})), "no error");
}

struct InjectedErrors : testing::Test {
  const FakeControl& control = fake_runtime();
  Mesh mesh{{{"x", 4}}};
};

TEST_F(InjectedErrors, Compiling) {
  Tensor x = mark_sharding(f32({4, 3}), mesh, P("x"));
  Tensor y = mark_sharding(x * 2 - 3, mesh, P("x"));
  control.fail_at("PJRT_Client_Compile", 1, 8, "out of registers");
  EXPECT_ERROR_HERE(y.to_host(), ErrorCode::kResourceExhausted, "out of registers");
  EXPECT_EQ(y.to_host().shape(), (Shape{4, 3})) << "the next try is well";
  std::uint32_t line = __LINE__ + 1;
  auto f = jit([&](Tensor t) { return mark_sharding(t - 8, mesh, P("x")); });
  control.fail_at("PJRT_Client_Compile", 1, 8, "out of registers");
  EXPECT_TRUE(throws_error([&] { (void)f(x); }, ErrorCode::kResourceExhausted,
                           {cat("plugin_error_test.cc:", line), "out of registers"}));
  EXPECT_EQ(f(x).shape(), (Shape{4, 3}));
  EXPECT_EQ(f.stats().traces, 1u);
}

TEST_F(InjectedErrors, Sending) {
  Tensor x = f32({8, 4});
  control.fail_at("PJRT_Client_BufferFromHostBuffer", 3, 8, "no memory");
  EXPECT_ERROR_HERE(mark_sharding(x, mesh, P("x")), ErrorCode::kResourceExhausted, "no memory",
                    "while sending f32[2,4] to device 2");
  EXPECT_EQ(mark_sharding(x, mesh, P("x")).to_host().shape(), (Shape{8, 4}));
}

TEST_F(InjectedErrors, Launching) {
  Tensor x = mark_sharding(f32({8}), mesh, P("x"));
  Tensor y = mark_sharding(x + 5, mesh, P("x"));
  control.fail_at("PJRT_LoadedExecutable_Execute", 1, 13, "the machine burns");
  EXPECT_ERROR_HERE(y.to_host(), ErrorCode::kInternal, "the machine burns");
  EXPECT_EQ(y.to_host().shape(), Shape{8}) << "the client is usable";
}

TEST_F(InjectedErrors, Running) {
  Tensor x = mark_sharding(f32({8}), mesh, P("x"));
  auto f = jit([&](Tensor t) { return mark_sharding(t + 6, mesh, P("x")); });
  (void)f(x);
  control.fail_runs(13);
  Tensor y = f(x);
  EXPECT_ERROR_HERE(y.to_host(), ErrorCode::kInternal, "");
  control.fail_runs(0);
  EXPECT_EQ(f(x).to_host().shape(), Shape{8});
}

TEST_F(InjectedErrors, Reading) {
  // The host cannot access this plugin's memory, so that every shard is fetched.
  std::vector<float> values(16);
  for (std::size_t i = 0; i < 16; ++i) values[i] = static_cast<float>(i);
  Tensor x = mark_sharding(from_host(values, {4, 4}), mesh, P(none, "x"));
  EXPECT_EQ(x.to_vector<float>(), values);
  control.fail_at("PJRT_Buffer_ToHostBuffer", 2, 14, "the cable is out");
  EXPECT_ERROR_HERE(x.to_host(), ErrorCode::kUnavailable, "the cable is out");
  EXPECT_EQ(x.to_vector<float>(), values);
}

}  // namespace
}  // namespace meshard
