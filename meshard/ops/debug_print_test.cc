#include "meshard/ops/debug_print.h"

#include <gmock/gmock.h>

#include "meshard/graph/effects.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::HasSubstr;

TEST(DebugPrint, IsACallOfTheHostAndItsOperand) {
  Tensor y = with_debug_print(input({4}), "a \"b\" {}", {input({2, 3})});
  EXPECT_EQ(y.type(), (TensorType{DType::f32, {4}}));
  std::string text = emitted(y);
  EXPECT_THAT(text, HasSubstr("\"meshard.host_call\""));
  EXPECT_THAT(text, HasSubstr("has_side_effect = true"));
  EXPECT_THAT(text, HasSubstr("kind = \"print\", text = \"a \\\"b\\\" {}\""));
  EXPECT_THAT(text, HasSubstr("stablehlo.reshape"));
}

TEST(DebugPrint, ThePlacesOfTheFormatMustFit) {
  const std::pair<const char*, const char*> cases[] = {
      {"none", "has 0 {}, but the number of values is 1"},
      {"{} {}", "has 2 {}"},
      {"{0}", "single '{' at position 0"},
      {"{}}", "single '}' at position 2"}};
  for (const auto& each : cases)
    EXPECT_TRUE(throws_error([&] { with_debug_print(input({4}), each.first, {input({4})}); },
                             ErrorCode::kInvalidArgument, {each.second}))
        << each.first;
}

TEST(DebugPrint, AttachesToAResultOfTheFunctionThatCallsIt) {
  internal::EffectScope scope;
  Tensor x = input({4});
  debug_print("x = {}", x);
  std::vector<Tensor> results = {x};
  scope.attach(results);
  EXPECT_EQ(results[0].value()->op().name, "debug_print");
  EXPECT_EQ(results[0].value()->operands().size(), 2u);
}

TEST(DebugPrint, ASilentOneOnlyNeedsItsValues) {
  Tensor y = internal::needing(input({4}), {input({2}), input({3})});
  EXPECT_EQ(y.type(), (TensorType{DType::f32, {4}}));
  EXPECT_THAT(emitted(y), testing::Not(HasSubstr("host_call")));
}

TEST(DebugPrint, FormatsValues) {
  std::vector<std::string> values = {"1", "[2, 3]"};
  EXPECT_EQ(internal::formatted("a {} {{b}} {}", values), "a 1 {b} [2, 3]");
  EXPECT_EQ(internal::formatted("", {}), "");
  EXPECT_EQ(internal::elements_text(HostArray::from_vector<float>({1, 2.5})), "[1, 2.5]");
  EXPECT_EQ(internal::elements_text(HostArray::scalar(7)), "7");
}

TEST(DebugPrint, LinesGoToTheHandler) {
  std::vector<std::string> lines;
  set_debug_print_handler([&](const std::string& line) { lines.push_back(line); });
  debug_print("no values");
  set_debug_print_handler({});
  EXPECT_THAT(lines, testing::ElementsAre("no values"));
}

}  // namespace
}  // namespace meshard
