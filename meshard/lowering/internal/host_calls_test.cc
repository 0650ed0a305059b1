#include <gmock/gmock.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/lowering/lower.h"
#include "meshard/ops/all.h"

namespace meshard {
namespace {

using testing::HasSubstr;
using testing::Not;

const TensorType kPrinted{DType::f32, {8, 4}};

template <class F>
LoweredModule lowered(F f, std::optional<Sharding> sharding = std::nullopt,
                      bool check_nans = false) {
  internal::TraceScope scope;
  Tensor x = make_parameter(kPrinted, std::move(sharding), {});
  Tensor y = f(x);
  Program program;
  program.graph = Graph::build({&x.value(), 1}, {&y.value(), 1}, scope.trace());
  return lower(program, {.check_nans = check_nans});
}

Tensor printed(const Tensor& x) { return with_debug_print(x, "x = {}", {x}); }

TEST(HostCalls, OnOneDeviceAPlainCall) {
  LoweredModule module = lowered(printed);
  EXPECT_TRUE(module.calls_host);
  EXPECT_THAT(module.text, HasSubstr("\"meshard.host_call\""));
  EXPECT_THAT(module.text, Not(HasSubstr("manual_computation")));
  EXPECT_THAT(module.text, Not(HasSubstr("places")));
  EXPECT_FALSE(lowered([](const Tensor& x) { return x + x; }).calls_host);
}

TEST(HostCalls, ThePartitionerKeepsTheWholeValueOnEachDevice) {
  Mesh mesh({{"x", 4}});
  LoweredModule module = lowered(printed, Sharding(mesh, P("x")));
  EXPECT_THAT(module.text,
              HasSubstr("in_shardings = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>"));
  EXPECT_THAT(module.text, HasSubstr("manual_axes = #sdy<manual_axes{\"x\"}>"));
  EXPECT_THAT(module.text, HasSubstr("places = \";-;-;-\""));
}

TEST(HostCalls, InsideManualAxesEachDeviceCalls) {
  Mesh mesh({{"x", 2}, {"y", 2}});
  auto f = manual(mesh, P("x"), P("x"), printed);
  LoweredModule module = lowered([&](const Tensor& x) { return f(x); }, Sharding(mesh, P("x")));
  EXPECT_THAT(module.text, HasSubstr("places = \"x=0;-;x=1;-\""));
}

TEST(HostCalls, InBodiesToo) {
  LoweredModule module = lowered([](const Tensor& x) {
    return fori_loop(
        0, 2, [](const Tensor&, const Tensor& carry) { return printed(carry); }, x);
  });
  EXPECT_TRUE(module.calls_host);
}

TEST(HostCalls, ChecksForNansAreWrittenOnRequest) {
  auto f = [](const Tensor& x) { return log(x); };
  EXPECT_EQ(lowered(f).nan_checks, nullptr);
  LoweredModule module = lowered(f, std::nullopt, true);
  ASSERT_NE(module.nan_checks, nullptr);
  EXPECT_TRUE(module.calls_host);
  EXPECT_THAT(module.text, HasSubstr("kind = \"nan\""));
  // One for the operation, one for the result.
  EXPECT_THAT(module.text, HasSubstr("check = \"0\""));
  EXPECT_THAT(module.text, HasSubstr("check = \"1\""));
  EXPECT_THAT(module.text, Not(HasSubstr("check = \"2\"")));
}

}  // namespace
}  // namespace meshard
