#include "meshard/stablehlo/value_shardings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace meshard::stablehlo {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kModule =
    R"(module @m {
  sdy.mesh @mesh = <["x"=2]>
  func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.tanh %arg0 : tensor<8xf32> loc("t"(#loc1))
    %10 = stablehlo.sine %0 : tensor<8xf32>
    %1:2 = "stablehlo.optimization_barrier"(%0, %10) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
    %2 = stablehlo.add %1#0, %1#1 : tensor<8xf32>
    return %2 : tensor<8xf32>
  }
}
#loc1 = loc("a.py":1:2)
)";

// The number of the variable that has this name, as a result of the op with this mnemonic.
int result_of(const Module& module, std::string_view mnemonic, std::size_t result = 0) {
  int found = -1;
  for_each_op(module.ops(), [&](const ModuleOp& op) {
    if (op.mnemonic == mnemonic) found = op.results[result];
  });
  return found;
}

TEST(ValueShardings, OpsAreNumberedInTheOrderOfTheText) {
  Module module = Module::parse(kModule).value();
  std::string text = with_numbered_ops(module);
  EXPECT_THAT(text, Not(HasSubstr("#loc1))")));
  Module numbered = Module::parse(text).value();
  std::vector<std::string> mnemonics, found;
  for_each_op(module.ops(), [&](const ModuleOp& op) { mnemonics.push_back(op.mnemonic); });
  for_each_op(numbered.ops(), [&](const ModuleOp& op) {
    found.push_back(op.mnemonic);
    if (op.results.empty()) return;
    std::optional<std::size_t> number = op_number(numbered.location_name(op.location));
    ASSERT_TRUE(number) << op.text;
    EXPECT_EQ(mnemonics[*number], op.mnemonic);
  });
  EXPECT_EQ(mnemonics, found);
  EXPECT_EQ(op_number("meshard.op.3/meshard.op.17"), 17u) << "of a call that was written out";
  EXPECT_EQ(op_number("jit(f)/add"), std::nullopt);
  EXPECT_EQ(op_number("meshard.op."), std::nullopt);
}

TEST(ValueShardings, UsesTakeTheConstraint) {
  Module module = Module::parse(kModule).value();
  std::vector<ValueSharding> values = {
      {result_of(module, "stablehlo.tanh"), "<@mesh, [{\"x\"}]>"},
      {result_of(module, "stablehlo.optimization_barrier", 1), "<@mesh, [{}]>"}};
  std::string text = with_constraints(module, values);
  EXPECT_THAT(text, HasSubstr(R"(    %auto_0 = stablehlo.tanh %arg0 : tensor<8xf32> loc("t"(#loc1))
    %0 = sdy.sharding_constraint %auto_0 <@mesh, [{"x"}]> : tensor<8xf32> loc("t"(#loc1))
    %10 = stablehlo.sine %0 : tensor<8xf32>
)"));
  EXPECT_THAT(text, HasSubstr(R"((tensor<8xf32>, tensor<8xf32>)
    %auto_1_1 = sdy.sharding_constraint %1#1 <@mesh, [{}]> : tensor<8xf32>
    %2 = stablehlo.add %1#0, %auto_1_1 : tensor<8xf32>
)"));
  Module again = Module::parse(text).value();
  for_each_op(again.ops(), [](const ModuleOp& op) {
    EXPECT_THAT(op.operands, testing::Each(testing::Ge(0))) << op.text;
  });
  EXPECT_THAT(with_constraints(again, {}), testing::StrEq(text));
  // Names that are taken are not made again.
  std::vector<ValueSharding> more = {{result_of(again, "stablehlo.sine"), "<@mesh, [{}]>"}};
  EXPECT_THAT(with_constraints(again, more), HasSubstr("%auto__10 = stablehlo.sine %0"));
}

}  // namespace
}  // namespace meshard::stablehlo
