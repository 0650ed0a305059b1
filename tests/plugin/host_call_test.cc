// Calls of this process from compiled programs.
#include "meshard/pjrt/host_call.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include "tests/plugin/fixture.h"
#include "tests/support/matchers.h"

namespace meshard::pjrt {
namespace {

using testing::HasSubstr;

std::mutex seen_mutex;
std::vector<std::string> seen;  // one text for each call; guarded by seen_mutex
constinit std::atomic<bool> throws{false};

// Doubles its argument.
Result<void> twice(const HostCall& call) {
  if (throws) throw std::runtime_error("thrown on purpose");
  const auto* given = static_cast<const float*>(call.arguments[0].data);
  auto* made = static_cast<float*>(call.results[0].data);
  std::int64_t count = 1;
  for (std::int64_t size : call.arguments[0].dimensions) count *= size;
  for (std::int64_t i = 0; i < count; ++i) made[i] = 2 * given[i];
  std::uint32_t partition = 0;
  std::memcpy(&partition, call.arguments[1].data, sizeof partition);
  std::lock_guard lock(seen_mutex);
  seen.push_back(cat(call.attribute("kind"), " ", count, " ", to_string(call.arguments[0].element),
                     " partition ", partition, " device ", call.device));
  return {};
}

// Each device calls with its part, or with the whole argument.
std::string module_text(bool whole) {
  std::string spec = whole ? "{}" : "{\"x\"}", local = whole ? "tensor<8xf32>" : "tensor<4xf32>";
  std::string call =
      "      %p = stablehlo.partition_id : tensor<ui32>\n"
      "      %r = stablehlo.custom_call @meshard.host_call(%a, %p) {api_version = 4 : i32, "
      "has_side_effect = true, backend_config = {kind = \"test\", other = \"\"}} : (" +
      local + ", tensor<ui32>) -> " + local + "\n";
  return "module @calls { sdy.mesh @m = <[\"x\"=2]>\n"
         "  func.func public @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, "
         "[{\"x\"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{\"x\"}]>}) {\n"
         "    %0 = sdy.manual_computation(%x) in_shardings=[<@m, [" +
         spec + "]>] out_shardings=[<@m, [" + spec + "]>] manual_axes={\"x\"} (%a: " + local +
         ") {\n" + call + "      sdy.return %r : " + local +
         "\n    } : (tensor<8xf32>) -> tensor<8xf32>\n    return %0 : tensor<8xf32>\n  } }";
}

class HostCalls : public testing::Test {
 protected:
  void SetUp() override {
    seen.clear();
    throws = false;
    for (const Subject& each : subjects())
      if (!each.is_fake && !each.path.empty()) {
        client_ = make_client(Plugin::load(each.path).value());
        if (client_->platform() == "cpu") return;
      }
    GTEST_SKIP() << "no CPU plugin";
  }
  Result<std::vector<float>> run(bool whole) {
    MESHARD_RETURN_IF_ERROR(accept_host_calls(*client_, twice));
    MESHARD_ASSIGN_OR_RETURN(LoadedExecutable program,
                             client_->compile(module_text(whole), on_devices({3, 5})));
    std::vector<Buffer> buffers;
    buffers.push_back(send(*client_, *program.devices()[0], {0, 1, 2, 3}));
    buffers.push_back(send(*client_, *program.devices()[1], {4, 5, 6, 7}));
    const BufferList argument = BufferList::of(buffers);
    MESHARD_ASSIGN_OR_RETURN(Launched done,
                             meshard::pjrt::execute(program, std::vector{&argument}));
    MESHARD_RETURN_IF_ERROR(done.launch.await());
    std::vector<float> values = read_all<float>(done.outputs[0][0]),
                       more = read_all<float>(done.outputs[0][1]);
    values.insert(values.end(), more.begin(), more.end());
    return values;
  }
  std::optional<Client> client_;
};

TEST_F(HostCalls, EachDeviceCallsWithItsPart) {
  EXPECT_EQ(run(false).value(), (std::vector<float>{0, 2, 4, 6, 8, 10, 12, 14}));
  EXPECT_THAT(seen, testing::UnorderedElementsAre("test 4 f32 partition 0 device 3",
                                                  "test 4 f32 partition 1 device 5"));
}

TEST_F(HostCalls, EachDeviceCallsWithTheWhole) {
  EXPECT_EQ(run(true).value(), (std::vector<float>{0, 2, 4, 6, 8, 10, 12, 14}));
  EXPECT_THAT(seen, testing::UnorderedElementsAre("test 8 f32 partition 0 device 3",
                                                  "test 8 f32 partition 1 device 5"));
}

TEST_F(HostCalls, AnExceptionIsAnErrorOfTheLaunch) {
  throws = true;
  Result<std::vector<float>> result = run(false);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().what(), HasSubstr("thrown on purpose"));
  throws = false;
  EXPECT_TRUE(run(false).ok());
}

std::vector<std::string> others;  // guarded by seen_mutex

Result<void> other(const HostCall& call) {
  *static_cast<float*>(call.results[0].data) = 5;
  std::lock_guard lock(seen_mutex);
  others.push_back(cat(call.attribute("text"), " ", join(call.number_list("list"), ","), " ",
                       join(call.number_list("number"), ","), " ",
                       call.number_list("absent").size(), " ", call.number_list("empty").size(),
                       " ", call.letters.size() == 1 ? call.letters[0].second : '?'));
  return {};
}

// Each target has its own function, and attributes of several types.
TEST_F(HostCalls, OfAnotherTargetWithNumbers) {
  others.clear();
  ASSERT_TRUE(accept_host_calls(*client_, twice).ok());
  ASSERT_TRUE(accept_host_calls(*client_, "meshard.test.other", other).ok());
  LoadedExecutable program =
      client_
          ->compile(
              "module @numbers { func.func public @main() -> tensor<f32> {\n"
              "  %0 = stablehlo.custom_call @meshard.test.other() {api_version = 4 : i32, "
              "has_side_effect = true, backend_config = {text = \"t\", list = array<i32: 3, "
              "-4>, number = 7 : i32, empty = array<i32>, wide = 8 : i64, letter = 76 : ui8}} : () "
              "-> "
              "tensor<f32>\n"
              "  return %0 : tensor<f32> } }",
              on_devices({2}))
          .value();
  Launched result = meshard::pjrt::execute(program, {}).value();
  ASSERT_TRUE(result.launch.await().ok());
  EXPECT_EQ(read_all<float>(result.outputs[0][0]), std::vector<float>{5});
  EXPECT_THAT(others, testing::ElementsAre("t 3,-4 7 0 0 L"));
  EXPECT_THAT(seen, testing::IsEmpty());
  static std::vector<std::string> names;  // the plugin keeps them
  for (int i = 0; i < 100; ++i) names.push_back(cat("meshard.test.more", i));
  bool all = true;
  for (const std::string& name : names) all = all && accept_host_calls(*client_, name, other).ok();
  EXPECT_FALSE(all);
}

TEST(HostCallsWithoutFfi, AreAnErrorThatNamesThePlugin) {
  FakeControl fake(MESHARD_FAKE_PLUGIN);
  fake.reset();
  {
    Client client = make_client(Plugin::adopt(fake.api(), "/some/plugin.so").value(), 1);
    EXPECT_TRUE(throws_error([&] { accept_host_calls(client, twice).value(); },
                             ErrorCode::kUnimplemented,
                             {"platform fake", "/some/plugin.so", "only CPU devices can"}));
  }
  fake.set_platform("cpu");
  {
    Client client = make_client(Plugin::adopt(fake.api(), "/some/plugin.so").value(), 1);
    EXPECT_TRUE(throws_error([&] { accept_host_calls(client, twice).value(); },
                             ErrorCode::kUnimplemented, {"has no FFI extension"}));
  }
  fake.reset();
}

}  // namespace
}  // namespace meshard::pjrt
