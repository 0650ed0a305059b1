#include "meshard/explain/predict/loop_trips.h"

#include <gtest/gtest.h>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

// A loop over i, with constants 0, 1, 2, 3 and 12 around it and `%k` (12) carried unchanged.
std::optional<std::int64_t> trips_in(std::string_view first, std::string_view condition,
                                     std::string_view body) {
  std::string text = cat(R"(func.func @main(%n: tensor<i32>) -> tensor<i32> {
    %c0 = stablehlo.constant dense<0> : tensor<i32>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %c2 = stablehlo.constant dense<2> : tensor<i32>
    %m3 = "stablehlo.constant"() <{value = dense<-3> : tensor<i32>}> : () -> tensor<i32>
    %c12 = stablehlo.constant dense<12> : tensor<i32>
    %r:2 = stablehlo.while(%i = )",
                         first, R"(, %k = %c12) : tensor<i32>, tensor<i32>
    cond {
      %t = )",
                         condition, R"( : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    } do {
      )",
                         body, R"(
      stablehlo.return %j, %k : tensor<i32>, tensor<i32>
    }
    return %r#0 : tensor<i32>
  })");
  stablehlo::Module module = stablehlo::Module::parse(text).value();
  std::optional<std::int64_t> found;
  for_each_op(module.ops(), [&](const stablehlo::ModuleOp& op) {
    if (op.mnemonic == "stablehlo.while") found = trips_of(op, constants_of(module));
  });
  return found;
}

constexpr const char* kPlusOne = "%j = stablehlo.add %i, %c1 : tensor<i32>";
constexpr const char* kPlusTwo = "%j = stablehlo.add %c2, %i : tensor<i32>";
constexpr const char* kMinusOne = "%j = stablehlo.subtract %i, %c1 : tensor<i32>";

TEST(LoopTrips, AreThoseOfTheCounter) {
  EXPECT_EQ(trips_in("%c0", "stablehlo.compare LT, %i, %c12, SIGNED", kPlusOne), 12);
  EXPECT_EQ(trips_in("%c1", "stablehlo.compare LT, %i, %c12, SIGNED", kPlusOne), 11);
  EXPECT_EQ(trips_in("%c1", "stablehlo.compare LE, %i, %c12, SIGNED", kPlusTwo), 6);
  EXPECT_EQ(trips_in("%m3", "stablehlo.compare LT, %i, %k, SIGNED", kPlusTwo), 8);
  EXPECT_EQ(trips_in("%c12", "stablehlo.compare GT, %i, %c0, SIGNED", kMinusOne), 12);
  EXPECT_EQ(trips_in("%c12", "stablehlo.compare GE, %i, %c0, SIGNED", kMinusOne), 13);
  EXPECT_EQ(trips_in("%c12", "stablehlo.compare LT, %i, %c0, SIGNED", kPlusOne), 0);
  EXPECT_EQ(trips_in("%c0", "stablehlo.compare NE, %i, %c12, SIGNED", kPlusTwo), 6);
  EXPECT_EQ(trips_in("%c0", "stablehlo.compare GT, %c12, %i, SIGNED", kPlusOne), 12);
  EXPECT_EQ(trips_in("%c0", "stablehlo.compare LT, %i, %c12, SIGNED",
                     "%h = stablehlo.add %i, %c1 : tensor<i32>\n"
                     "%j = stablehlo.add %h, %c2 : tensor<i32>"),
            4);
  EXPECT_EQ(trips_in("%c0",
                     "\"stablehlo.compare\"(%i, %c12) <{comparison_direction = "
                     "#stablehlo<comparison_direction LE>}>",
                     kPlusOne),
            13);
}

TEST(LoopTrips, AreUnknownForOtherLoops) {
  // From, to or by what is not known; and loops that would not end.
  EXPECT_EQ(trips_in("%n", "stablehlo.compare LT, %i, %c12, SIGNED", kPlusOne), std::nullopt);
  EXPECT_EQ(trips_in("%c0", "stablehlo.compare LT, %i, %n, SIGNED", kPlusOne), std::nullopt);
  EXPECT_EQ(trips_in("%c0", "stablehlo.compare LT, %i, %c12, SIGNED",
                     "%j = stablehlo.add %i, %n : tensor<i32>"),
            std::nullopt);
  EXPECT_EQ(trips_in("%c1", "stablehlo.compare LT, %i, %c12, SIGNED",
                     "%j = stablehlo.multiply %i, %c2 : tensor<i32>"),
            std::nullopt);
  EXPECT_EQ(trips_in("%c0", "stablehlo.compare LT, %i, %c12, SIGNED", kMinusOne), std::nullopt);
  EXPECT_EQ(trips_in("%c1", "stablehlo.compare NE, %i, %c12, SIGNED", kPlusTwo), std::nullopt);
  EXPECT_EQ(trips_in("%c0", "stablehlo.compare EQ, %i, %c12, SIGNED", kPlusOne), std::nullopt);
  EXPECT_EQ(trips_in("%c0", "stablehlo.and %i, %c12", kPlusOne), std::nullopt);
}

TEST(LoopTrips, ConstantsAreIntegersOfOneValue) {
  stablehlo::Module module = stablehlo::Module::parse(R"(func.func @main() {
    %a = stablehlo.constant dense<7> : tensor<4xi32>
    %b = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
    %c = stablehlo.constant dense<1.5> : tensor<f32>
    %d = stablehlo.constant dense<-2> : tensor<i64>
    return
  })")
                                 .value();
  ModuleConstants constants = constants_of(module);
  EXPECT_EQ(constants.size(), 2u);
  for (const auto& [variable, value] : constants)
    EXPECT_EQ(value, module.variable(variable).name == "%a" ? 7 : -2);
}

}  // namespace
}  // namespace meshard
