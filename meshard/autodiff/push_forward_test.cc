#include <gtest/gtest.h>

#include "meshard/autodiff/jvp.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/all.h"
#include "tests/support/interpreter.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

Tensor leaf_of(std::vector<double> values) {
  auto size = static_cast<std::int64_t>(values.size());
  return from_host(std::move(values), {size});
}

TEST(PushForward, OfRecordedValues) {
  internal::KeepOperandsScope keep;
  Tensor x = leaf_of({1, 2}) + 0, y = leaf_of({3, 5}) + 0;
  std::vector<Tensor> inputs{x, y};
  std::vector<Tensor> outputs{x * y, x + x, astype(y, DType::i32)};
  PushForward push(outputs, inputs, {});
  std::vector<Tensor> both = push(std::vector{leaf_of({10, 100}), leaf_of({1, 2})}, {});
  ASSERT_EQ(both.size(), 3u);
  EXPECT_EQ(interpret(both[0]), HostArray::from_vector<double>({31, 504}));
  EXPECT_EQ(interpret(both[1]), HostArray::from_vector<double>({20, 200}));
  EXPECT_EQ(interpret(both[2]), HostArray::from_vector<std::int32_t>({0, 0}));
  // Again, with one tangent omitted.
  std::vector<Tensor> one = push(std::vector{Tensor(), leaf_of({1, 1})}, {});
  EXPECT_EQ(interpret(one[0]), HostArray::from_vector<double>({1, 2}));
  EXPECT_EQ(interpret(one[1]), HostArray::from_vector<double>({0, 0}));
}

TEST(PushForward, RefusesTangentsOfAnotherForm) {
  internal::KeepOperandsScope keep;
  Tensor x = leaf_of({1, 2}) + 0, y = x * x;
  PushForward push({&y, 1}, {&x, 1}, {});
  EXPECT_TRUE(throws_error(
      [&] {
        push(std::vector{leaf_of({1, 2, 3})}, {});
      },
      ErrorCode::kInvalidArgument, {"[jvp]", "f64[3]", "f64[2]"}));
  EXPECT_TRUE(throws_error([&] { push({}, {}); }, ErrorCode::kInvalidArgument,
                           {"0 tangents", "1 tensors"}));
}

}  // namespace
}  // namespace meshard
