// A program explained from the file of its module is the program explained in its process: the same
// lines, names, shardings and devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/explain/explain.h"
#include "meshard/explain/hlo_testutil.h"
#include "meshard/ops/composite/control_flow.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/ops/composite/matmul.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/trigonometric.h"
#include "meshard/report/diff.h"
#include "meshard/trace/jit.h"

namespace meshard {
namespace {

class ModuleFile : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string reason = why_no_plugin(); !reason.empty())
      GTEST_SKIP() << "no CPU plugin: " << reason;
  }
};

std::vector<std::string> lines_of(const ProgramReport& report) {
  std::vector<std::string> lines;
  for (const Collective& one : report.collectives()) lines.push_back(one.origin.to_string());
  for (const auto* values : {&report.arguments(), &report.results()})
    for (const ValuePlacement& value : *values)
      lines.push_back(cat(value.name, " ", value.to_string(), " ", value.place, " ",
                          value.chosen_by_compiler ? "chosen" : "",
                          value.donated ? "donated" : ""));
  return lines;
}

template <class F, class... Arguments>
void expect_same_from_file(const F& function, const Arguments&... arguments) {
  Target target = Target::parse("cpu:8").value();
  ProgramReport here = explain(target, function, arguments...);
  ProgramReport read = explain_module(module_text(function, arguments...), target);
  EXPECT_THAT(lines_of(read), testing::ElementsAreArray(lines_of(here)));
  EXPECT_EQ(read.mesh(), here.mesh());
  EXPECT_EQ(read.num_captured(), here.num_captured());
  ReportDiff difference = diff(here, read);
  EXPECT_TRUE(difference.same()) << difference.to_string();
  EXPECT_FALSE(here.collectives().empty());
}

TEST_F(ModuleFile, LinesNamesAndDevices) {
  Mesh mesh({{"data", 2}, {"model", 4}}, {7, 6, 5, 4, 0, 1, 2, 3});
  auto layer = jit(
      [](Tensor x, Tensor up, Tensor down) {
        Tensor hidden = tanh(matmul(x, up));
        return std::tuple(matmul(hidden, down), sum(hidden, {0}));
      },
      {.name = "layer", .donate = {0}});
  expect_same_from_file(layer, abstract_tensor({16, 32}, DType::f32, mesh, P("data")),
                        abstract_tensor({32, 64}, DType::f32, mesh, P(none, "model")),
                        abstract_tensor({64, 32}, DType::f32, mesh, P("model")));
}

// 7 rows over 2 devices are padded to 8.
TEST_F(ModuleFile, PaddedAndCapturedValues) {
  Mesh mesh({{"data", 2}, {"model", 4}});
  Tensor weight = abstract_tensor({32, 64}, DType::f32, mesh, P("model"));
  expect_same_from_file(
      jit([&](Tensor x) { return mark_sharding(matmul(x, weight), mesh, P("data")); }),
      abstract_tensor({7, 32}, DType::f32, mesh, P("data", "model")));
}

// Ops in loops are located, too.
TEST_F(ModuleFile, LinesInsideALoop) {
  Mesh mesh({{"data", 2}, {"model", 4}});
  auto layers = [](Tensor x, Tensor weights) {
    auto layer = [](Tensor h, Tensor w) { return std::pair(tanh(matmul(h, w)), std::tuple<>()); };
    return scan(layer, x, weights).first;
  };
  expect_same_from_file(layers, abstract_tensor({16, 32}, DType::f32, mesh, P("data")),
                        abstract_tensor({4, 32, 32}, DType::f32, mesh, P(none, "model")));
}

}  // namespace
}  // namespace meshard
