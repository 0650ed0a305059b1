#include "meshard/ops/scan.h"

#include <gtest/gtest.h>

#include "meshard/ops/arithmetic.h"
#include "meshard/ops/cast.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

std::vector<Tensor> sums(const Tensor& init, const Tensor& rows, std::int64_t length) {
  return scan_tensors({{init}, {rows}, length, false}, [](std::span<const Tensor> given) {
    Tensor next = add(given[0], given[1]);
    return std::vector<Tensor>{next, astype(next, DType::f64)};
  });
}

TEST(Scan, TypesAndCapturedValues) {
  Tensor factor = input({4});
  std::vector<Tensor> results =
      scan_tensors({{input({4})}, {}, 3, false}, [&](std::span<const Tensor> given) {
        return std::vector<Tensor>{add(given[0], factor), factor};
      });
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].shape(), (Shape{4}));
  EXPECT_EQ(results[1].shape(), (Shape{3, 4}));
  const Node& node = *results[0].value().node();
  ASSERT_EQ(node.operands().size(), 2u);
  EXPECT_EQ(node.operands()[1], factor.value());
  EXPECT_EQ(sums(input({4}), input({5, 4}), 5)[1].type(), (TensorType{DType::f64, {5, 4}}));
}

TEST(Scan, TheCarryPassesThrough) {
  EXPECT_EQ(rule_of(sums(input({4}), input({5, 4}), 5)[0]),
            "([i], [j, k])->([i], [l, m]) {i=4, j=5, k=4, l=5, m=4}");
}

TEST(Scan, Errors) {
  auto invalid = ErrorCode::kInvalidArgument;
  EXPECT_TRUE(throws_error(
      [] {
        sums(input({4}), input({5, 4}), 6);
      },
      invalid, {"scan_test.cc:", "[scan]", "f32[5,4]", "6 slices"}));
  EXPECT_TRUE(throws_error([] { sums(input({4}), input({}), 6); }, invalid, {"f32[]", "6 slices"}));
  EXPECT_TRUE(throws_error(
      [] {
        scan_tensors({{input({4})}, {}, 3, false}, [](std::span<const Tensor> given) {
          return std::vector<Tensor>{astype(given[0], DType::f64)};
        });
      },
      invalid, {"carry 0", "f32[4]", "f64[4]"}));
  EXPECT_TRUE(throws_error(
      [] {
        scan_tensors({{input({4})}, {}, 3, false, 0},
                     [](std::span<const Tensor> given) { return std::vector<Tensor>{given[0]}; });
      },
      invalid, {"scan_test.cc:", "[scan]", "unroll = 0"}));
}

}  // namespace
}  // namespace meshard
