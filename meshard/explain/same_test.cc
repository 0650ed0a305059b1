#include "meshard/explain/same.h"

#include <gmock/gmock.h>

#include "meshard/base/cat.h"
#include "meshard/base/whole_file.h"
#include "meshard/pjrt/plugin_search.h"
#include "meshard/stablehlo/jax_export.h"
#include "meshard/stablehlo/module_as_text.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::HasSubstr;

class Same : public testing::Test {
 protected:
  void SetUp() override {
    if (!pjrt::find_plugins().first("cpu").ok()) GTEST_SKIP() << "no CPU plugin";
  }
  // The modules are called a, b, c, ...
  static SameReport compare(const std::vector<std::string>& modules) {
    static constexpr std::string_view kNames = "abcdef";
    std::vector<NamedProgram> programs;
    for (std::size_t i = 0; i < modules.size(); ++i)
      programs.push_back({kNames.substr(i, 1), modules[i]});
    return compare_programs(programs);
  }
};

struct Step {
  std::string mesh = "mesh", x = "x", y = "y", first = "tanh", split = "x";
  bool calls = false, swaps = false;
  int size = 2;

  std::string text() const {
    const std::string sharding =
        cat("{sdy.sharding = #sdy.sharding<@", mesh, ", [{\"", split, "\"}, {}]>}");
    const std::string a = cat("%a = stablehlo.", first,
                              " %arg0 : tensor<8x4xf32> loc(\"a\"(\"step.py\":7:0))\n"),
                      b = "%b = stablehlo.exponential %arg0 : tensor<8x4xf32>\n";
    std::string body = swaps ? cat(b, a) : cat(a, b), more;
    if (calls) {
      body = cat(a, "%b = func.call @helper(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>\n");
      more =
          "func.func private @helper(%z: tensor<8x4xf32>) -> tensor<8x4xf32> {\n"
          "  %r = stablehlo.exponential %z : tensor<8x4xf32>\n"
          "  return %r : tensor<8x4xf32>\n}\n";
    }
    return cat("module @step attributes {mhlo.num_partitions = ", 2 * size,
               " : i32} {\n sdy.mesh @", mesh, " = <[\"", x, "\"=2, \"", y, "\"=", size,
               "]>\n func.func public @main(%arg0: tensor<8x4xf32> ", sharding,
               ") -> tensor<8x4xf32> {\n", body,
               "%c = stablehlo.add %a, %b : tensor<8x4xf32> loc(\"c\"(\"step.py\":9:0))\n",
               "return %c : tensor<8x4xf32>\n }\n", more, "}\n");
  }
};

TEST_F(Same, TextOfBytecodeIsTheSameComputation) {
  for (const char* name : {"train_donated", "ring", "explicit_axes", "scan_open", "complex",
                           "random_bits", "by_name", "reverse_order", "unused"}) {
    std::string exported =
        read_whole_file(cat(MESHARD_GOLDEN, "/exported/run/", name, ".bin")).value();
    std::string module(stablehlo::read_jax_export(exported).value().module);
    SameReport report = compare({module, stablehlo::module_as_text(module).value()});
    EXPECT_TRUE(report.same()) << name << ": " << report.to_string();
  }
}

TEST_F(Same, NamesOrderAndFunctionsDoNotMatter) {
  SameReport report =
      compare({Step{}.text(), Step{.mesh = "m", .x = "dp", .y = "tp", .split = "dp"}.text(),
               Step{.swaps = true}.text(), Step{.calls = true}.text()});
  EXPECT_TRUE(report.same()) << report.to_string();
  EXPECT_THAT(report.to_string(),
              testing::AllOf(HasSubstr("a, b, c, d are the same computation: "),
                             HasSubstr(report.programs[3].fingerprint), HasSubstr("4 devices")));
}

TEST_F(Same, TheFirstOpThatDiffersHasBothLines) {
  SameReport report = compare({Step{}.text(), Step{.first = "sine"}.text(), Step{}.text()});
  EXPECT_FALSE(report.same());
  EXPECT_THAT(report.to_string(),
              testing::AllOf(HasSubstr("a, c are the same computation"),
                             HasSubstr("b is another computation"), HasSubstr("a  tanh"),
                             HasSubstr("b  sine"), HasSubstr("step.py:7")));
}

TEST_F(Same, ShardingsAndDevicesMatter) {
  EXPECT_THAT(compare({Step{}.text(), Step{.split = "y"}.text()}).to_string(),
              HasSubstr("argument 0 f32[8,4]"));
  EXPECT_THAT(
      compare({Step{}.text(), Step{.size = 4}.text()}).to_string(),
      testing::AllOf(HasSubstr("a program for 4 devices"), HasSubstr("a program for 8 devices")));
}

TEST_F(Same, WhatCannotBeCompiledHereIsReadAllTheSame) {
  auto kernel = [](std::string_view config) {
    return cat("func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {\n",
               "  %0 = stablehlo.custom_call @tpu_custom_call(%arg0) {backend_config = \"", config,
               "\"} : (tensor<8xf32>) -> tensor<8xf32>\n  return %0 : tensor<8xf32>\n}\n");
  };
  EXPECT_TRUE(compare({kernel("one"), kernel("one")}).same());
  EXPECT_THAT(compare({kernel("one"), kernel("two")}).to_string(),
              HasSubstr("their attributes differ"));
}

TEST_F(Same, ErrorsNameTheProgram) {
  EXPECT_TRUE(throws_error(
      [] {
        compare({Step{}.text(), "nonsense"});
      },
      ErrorCode::kDataLoss, {"in b"}));
  EXPECT_TRUE(throws_error([] { compare({}); }, ErrorCode::kInvalidArgument, {"no program"}));
}

}  // namespace
}  // namespace meshard
