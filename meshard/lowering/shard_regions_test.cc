// Ops that run on shards: the regions in which lowering writes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/lowering/lower.h"
#include "meshard/ops/all.h"
#include "meshard/ops/linalg.h"

namespace meshard {
namespace {

using testing::HasSubstr;
using testing::Not;

const Mesh kMesh({{"x", 2}, {"y", 2}});

// The text for a matrix batch f32[8,4,4] with this sharding.
template <class F>
std::string text_of(const PartitionSpec& spec, F f, std::string_view platform = "cpu") {
  internal::TraceScope scope;
  Tensor x = make_parameter({DType::f32, {8, 4, 4}}, Sharding(kMesh, spec), {});
  Tensor result = f(x);
  std::vector<Value> leaves{x.value()}, results{result.value()};
  Program program{.graph = Graph::build(leaves, results, scope.trace()), .donated = {}};
  auto quirks = [&](const std::optional<Mesh>&) { return quirks_of_table(platform); };
  return lower(program, {.quirks = quirks}).text;
}

TEST(ShardRegions, TheBatchIsSplitAsTheOperandIs) {
  std::string text = text_of(P("x"), [](const Tensor& x) { return linalg::svdvals(tanh(x)); });
  EXPECT_THAT(text,
              HasSubstr("in_shardings = #sdy.sharding_per_value<[<@mesh, [{\"x\"}, {}, {}]>]>"));
  EXPECT_THAT(text, HasSubstr("out_shardings = #sdy.sharding_per_value<[<@mesh, [{\"x\"}, {}]>]>"));
  EXPECT_THAT(text, HasSubstr("manual_axes = #sdy<manual_axes{\"x\", \"y\"}>"));
  EXPECT_THAT(text, HasSubstr("lapack_sgesdd_ffi"));
  EXPECT_THAT(text, HasSubstr("(tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>, tensor<4x4xf32>"));
}

TEST(ShardRegions, ShardingsFollowFromLaterMarks) {
  std::string text =
      text_of(P(), [](const Tensor& x) { return mark_sharding(qr(tanh(x)).r, kMesh, P("y")); });
  EXPECT_THAT(text,
              HasSubstr("in_shardings = #sdy.sharding_per_value<[<@mesh, [{\"y\"}, {}, {}]>]>"));
}

TEST(ShardRegions, MatricesAreWhole) {
  EXPECT_THAT(text_of(P(none, "x", "y"), [](const Tensor& x) { return eigvalsh(x); }),
              HasSubstr("in_shardings = #sdy.sharding_per_value<[<@mesh, [{}, {}, {}]>]>"));
}

TEST(ShardRegions, UnevenBatchesArePadded) {
  auto of_three = [](const Tensor& x) {
    return linalg::svdvals(mark_sharding(slice(x, {0, 0, 0}, {3, 4, 4}), kMesh, P("x")));
  };
  std::string text = text_of(P(), of_three);
  EXPECT_THAT(text,
              HasSubstr("in_shardings = #sdy.sharding_per_value<[<@mesh, [{\"x\"}, {}, {}]>]>"));
  std::size_t pad = text.find("stablehlo.pad"), region = text.find("sdy.manual_computation"),
              cut = text.find("stablehlo.slice", region);
  ASSERT_NE(cut, text.npos);
  EXPECT_LT(pad, region);
  EXPECT_THAT(text.substr(pad, region - pad), HasSubstr("-> tensor<4x4x4xf32>"));
  EXPECT_THAT(text.substr(cut), HasSubstr("(tensor<4x4xf32>) -> tensor<3x4xf32>"));
}

TEST(ShardRegions, BatchesOfTransformsAndOfGroupedConvolutions) {
  std::string split = "in_shardings = #sdy.sharding_per_value<[<@mesh, [{\"x\"}, {}, {}]>";
  EXPECT_THAT(text_of(P("x"), [](const Tensor& x) { return real(fft(x)); }), HasSubstr(split));
  auto convolved = [](std::int64_t groups) {
    return [groups](const Tensor& x) {
      return convolution(tanh(x), ones({3, 4 / groups, 4}), {.feature_groups = groups});
    };
  };
  EXPECT_THAT(text_of(P("x"), convolved(2)), HasSubstr(split + ", <@mesh, [{}, {}, {}]>]>"));
  // The partitioner splits these itself.
  for (std::int64_t groups : {1, 4})
    EXPECT_THAT(text_of(P("x"), convolved(groups)), Not(HasSubstr("manual_computation")));
}

TEST(ShardRegions, WithoutLapackLoopsAreInsideTheRegion) {
  std::string text = text_of(
      P("x"), [](const Tensor& x) { return qr(x).r; }, "");
  EXPECT_THAT(text, Not(HasSubstr("lapack_")));
  std::size_t region = text.find("sdy.manual_computation"), loop = text.find("stablehlo.while");
  ASSERT_NE(loop, text.npos);
  EXPECT_LT(region, loop);
  EXPECT_THAT(text.substr(loop, text.find("sdy.return") - loop), HasSubstr("tensor<4x4x4xf32>"));
}

}  // namespace
}  // namespace meshard
