// Manual functions over sizes that the devices do not divide.
#include <gmock/gmock.h>

#include <algorithm>

#include "meshard/ops/composite/uneven_parts.h"
#include "tests/support/devices.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using UnevenManual = OnDevices;
using testing::ElementsAre;
using testing::ElementsAreArray;

const Mesh& four_in_a_row() {
  static const Mesh mesh({{"x", 4}});
  return mesh;
}
const Mesh& two_rows_of_two() {
  static const Mesh mesh({{"x", 2}, {"y", 2}});
  return mesh;
}

TEST_F(UnevenManual, PaddingIsCutOff) {
  Tensor x = counting({7}, 1);
  auto doubled = manual(four_in_a_row(), P("x"), P("x"),
                        [](const Tensor& part) {
                          EXPECT_EQ(part.shape(), (Shape{2}));
                          return part * 2;
                        },
                        {.out_shapes = {{7}}, .pad = 0});
  EXPECT_THAT(doubled(x).to_vector<float>(), ElementsAreArray(numbers(7, 2, 2)));
  auto total = manual(four_in_a_row(), P("x"), P(),
                      [](const Tensor& part) { return all_reduce(sum(part), "x"); }, {.pad = 0});
  EXPECT_EQ(total(x).item<float>(), 28);
  EXPECT_THAT(grad(total)(x).to_vector<float>(), ElementsAreArray(numbers(7, 1, 0)));
  EXPECT_THAT(grad([&](const Tensor& t) { return sum(doubled(t) * t); })(x).to_vector<float>(),
              ElementsAreArray(numbers(7, 4, 4)));
}

// A reduction over parts of which some are padded, or empty.
TEST_F(UnevenManual, PaddingThatDoesNotChangeAReduction) {
  struct Case {
    PadValue pad;
    ReduceKind kind;
    Tensor (*local)(const Tensor&);
  };
  const Case cases[] = {
      {0, ReduceKind::kSum, [](const Tensor& t) { return sum(t); }},
      {1, ReduceKind::kProd, [](const Tensor& t) { return prod(t); }},
      {ReduceKind::kProd, ReduceKind::kProd, [](const Tensor& t) { return prod(t); }},
      {ReduceKind::kMax, ReduceKind::kMax, [](const Tensor& t) { return max(t); }},
      {ReduceKind::kMin, ReduceKind::kMin, [](const Tensor& t) { return min(t); }}};
  for (DType dtype : {DType::f32, DType::i32, DType::bf16})
    for (std::int64_t size : {1, 2, 5, 6, 7}) {
      Tensor x = astype(counting({size, 2}, -9), dtype);
      for (const auto& [pad, kind, local] : cases) {
        auto all =
            manual(four_in_a_row(), P("x"), P(),
                   [&](const Tensor& t) { return all_reduce(local(t), "x", kind); }, {.pad = pad});
        EXPECT_EQ(astype(all(x), DType::f32).item<float>(),
                  astype(local(x), DType::f32).item<float>())
            << dtype << " " << size << " " << enum_name(kind);
      }
    }
  auto greatest = manual(four_in_a_row(), P("x"), P(),
                         [](const Tensor& t) { return all_reduce(max(t), "x", ReduceKind::kMax); },
                         {.pad = ReduceKind::kMax});
  EXPECT_THAT(grad(greatest)(counting({6}, -9)).to_vector<float>(), ElementsAre(0, 0, 0, 0, 0, 1));
  Tensor members = counting({3, 7}, -30);
  EXPECT_EQ(vmap(greatest)(members).to_vector<float>(), max(members, 1).to_vector<float>());
}

TEST_F(UnevenManual, EachDeviceKnowsTheSizeOfItsPart) {
  for (std::int64_t size : {0, 1, 4, 5, 7, 9}) {
    auto sizes = manual(four_in_a_row(), P("x"), P("x"),
                        [](const Tensor& t) { return reshape(valid_size(t, 0), {1}); }, {.pad = 3});
    std::vector<std::int32_t> expected;
    const std::int64_t part = (size + 3) / 4;
    for (std::int64_t i = 0; i < 4; ++i)
      expected.push_back(
          static_cast<std::int32_t>(std::clamp<std::int64_t>(size - i * part, 0, part)));
    EXPECT_EQ(sizes(counting({size})).to_vector<std::int32_t>(), expected) << size;
  }
  // In a nested function, both paddings count: of 5 rows, two devices have 3 and 2.
  auto inner = [](const Tensor& t) { return reshape(valid_size(t, 0), {1}); };
  auto outer = manual(two_rows_of_two(), P("x"), P("x"),
                      manual(two_rows_of_two(), P("y"), P("y"), inner, {.axes = {"y"}, .pad = 1}),
                      {.axes = {"x"}, .pad = 2});
  EXPECT_THAT(outer(counting({5})).to_vector<std::int32_t>(), ElementsAre(2, 1, 2, 0));
  auto mean_of = manual(
      four_in_a_row(), P("x"), P(),
      [](const Tensor& t) { return all_reduce(sum(t), "x") / all_reduce(valid_size(t, 0), "x"); },
      {.pad = 0});
  EXPECT_EQ(mean_of(counting({7})).item<float>(), 3);
  Tensor local =
      enable_manual_sharding(counting({7}, -7), four_in_a_row(), P("x"), ReduceKind::kMax);
  EXPECT_EQ(disable_manual_sharding(all_reduce(max(local), "x", ReduceKind::kMax), four_in_a_row(),
                                    P(), {})
                .item<float>(),
            -1);
}

}  // namespace
}  // namespace meshard
