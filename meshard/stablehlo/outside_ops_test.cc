#include "meshard/stablehlo/outside_ops.h"

#include <gmock/gmock.h>

#include "meshard/base/cat.h"
#include "meshard/base/whole_file.h"
#include "meshard/stablehlo/jax_export.h"
#include "tests/support/matchers.h"
#include "tests/support/random.h"

namespace meshard::stablehlo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(OutsideOps, OfTextHaveTheirPlaces) {
  constexpr std::string_view kText = R"(#loc1 = loc("train.py":7:12)
#loc2 = loc("jit(f)/solve"(#loc1))
#loc3 = loc(callsite(#loc2 at #loc1))
module @m {
  func.func public @main(%arg0: tensor<4xf32>, %arg1: !stablehlo.token) -> tensor<4xf32> {
    %0 = stablehlo.custom_call @known(%arg0) : (tensor<4xf32>) -> tensor<4xf32> loc(#loc3)
    %1 = "stablehlo.custom_call"(%0) <{call_target_name = "quoted"}> : (tensor<4xf32>) -> tensor<4xf32>
    %2 = stablehlo.custom_call @known(%1) : (tensor<4xf32>) -> tensor<4xf32> loc(#loc2)
    %3 = stablehlo.add %2, %2 : tensor<4xf32>
    %4 = "stablehlo.outfeed"(%3, %arg1) : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
    %5 = call @inner(%3) : (tensor<4xf32>) -> tensor<4xf32> loc(#loc3)
    return %5 : tensor<4xf32>
  }
  func.func private @inner(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.custom_call @cached(%arg0) : (tensor<4xf32>) -> tensor<4xf32> loc("cached"(unknown))
    return %0 : tensor<4xf32>
  }
})";
  EXPECT_THAT(outside_ops(kText).value(),
              ElementsAre(OutsideOp{"custom_call", "known", "train.py:7"},
                          OutsideOp{"custom_call", "quoted", ""}, OutsideOp{"outfeed", "", ""},
                          OutsideOp{"custom_call", "cached", "train.py:7"}));
}

std::string golden(std::string_view name) {
  return read_whole_file(cat(MESHARD_GOLDEN, "/exported/run/", name, ".bin")).value();
}

TEST(OutsideOps, OfBytecodeHaveTheirPlaces) {
  std::string bytes = golden("lapack");
  std::vector<OutsideOp> ops = outside_ops(read_jax_export(bytes).value().module).value();
  ASSERT_FALSE(ops.empty());
  EXPECT_EQ(ops[0].name, "custom_call");
  EXPECT_EQ(ops[0].target, "lapack_sgetrf_ffi");
  EXPECT_THAT(ops[0].place, testing::MatchesRegex(".*record_run.py:[0-9]+"));
  std::string other = golden("by_name");
  EXPECT_THAT(outside_ops(read_jax_export(other).value().module).value(), IsEmpty());
}

TEST(OutsideOps, DamageIsAnError) {
  const std::string bytes = golden("lapack");
  const std::string module(read_jax_export(bytes).value().module);
  TestRandom random;
  for (int round = 0; round < 5000; ++round) {
    std::string damaged = module;
    for (int i = 0; i < 3; ++i)
      damaged[static_cast<std::size_t>(random.between(4, std::ssize(module) - 1))] =
          static_cast<char>(random.between(0, 255));
    (void)outside_ops(damaged);
  }
  EXPECT_TRUE(throws_error([&] { (void)outside_ops(module.substr(0, 60)).value(); },
                           ErrorCode::kDataLoss, {}));
}

}  // namespace
}  // namespace meshard::stablehlo
