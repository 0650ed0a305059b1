// meshard/lowering/lower_test.cc has the text, tests/e2e/layers_test.cc compiled programs.
#include "meshard/lowering/internal/shared_values.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"

namespace meshard {
namespace {

constexpr int kMany = static_cast<int>(kMostArraysOfShared) + 1;

class SharedValues : public testing::Test {
 protected:
  Tensor parameter(Shape shape = {4, 8}, DType dtype = DType::f32) {
    Tensor made = make_parameter({dtype, std::move(shape)}, std::nullopt, {});
    leaves_.push_back(made.value());
    return made;
  }
  // The sum of `count` new parameters.
  Tensor sum_of(int count, const Shape& shape = {4, 8}, DType dtype = DType::f32) {
    Tensor sum = parameter(shape, dtype);
    for (int i = 1; i < count; ++i) sum = sum + parameter(shape, dtype);
    return sum;
  }
  bool is_shared(const Tensor& value, const std::vector<Tensor>& results) {
    std::vector<Value> values;
    for (const Tensor& result : results) values.push_back(result.value());
    return shared_values(Graph::build(leaves_, values, scope_.trace()))
        .contains(value.value().node());
  }
  // Of a value that two others read.
  bool is_shared(const Tensor& value) { return is_shared(value, {exp(value), value * 2.0f}); }

  internal::TraceScope scope_;
  std::vector<Value> leaves_;
};

TEST_F(SharedValues, AreComputedFromManyArrays) {
  EXPECT_TRUE(is_shared(sum_of(kMany)));
  EXPECT_FALSE(is_shared(sum_of(kMany - 1)));
  Tensor x = parameter(), same = x;
  for (int i = 0; i < 20; ++i) same = same + x;
  EXPECT_FALSE(is_shared(same)) << "of one array";
}

TEST_F(SharedValues, HaveSeveralUsers) {
  Tensor x = sum_of(kMany);
  EXPECT_FALSE(is_shared(x, {exp(x)}));
  EXPECT_FALSE(is_shared(x, {x * x})) << "read once";
  EXPECT_TRUE(is_shared(x, {x, exp(x)})) << "a result is a user";
  Tensor y = parameter({8, 4});
  EXPECT_FALSE(is_shared(x, {matmul(x, y), matmul(x, y + 1.0f)})) << "products read it from memory";
  EXPECT_TRUE(is_shared(x, {matmul(x, y), x * 2.0f}));
}

TEST_F(SharedValues, AreReadFromMemoryByWhatFollows) {
  Tensor x = sum_of(kMany), y = x + parameter();
  std::vector<Tensor> results{exp(x), exp(y), y * 2.0f};
  EXPECT_TRUE(is_shared(x, results));
  EXPECT_FALSE(is_shared(y, results)) << "computed from two arrays";
}

TEST_F(SharedValues, AreComputedByCheapOperations) {
  Tensor x = parameter();
  for (int i = 1; i < kMany; ++i) x = x + exp(parameter());
  EXPECT_TRUE(is_shared(x)) << "each exp has one user, and is fused";
  EXPECT_FALSE(is_shared(sum(stack({sum_of(kMany)}), {0}))) << "in memory anyway";
  EXPECT_FALSE(is_shared(exp(sum_of(kMany)))) << "not computed again";
}

TEST_F(SharedValues, MayHaveAnotherShapeOrName) {
  EXPECT_TRUE(is_shared(reshape(sum_of(kMany), {32})));
  EXPECT_TRUE(is_shared(stop_gradient(sum_of(kMany))));
}

TEST_F(SharedValues, OfSmallArraysAreNotWorthIt) {
  Tensor x = parameter();
  for (int i = 0; i < 20; ++i) x = x + parameter({8});
  EXPECT_FALSE(is_shared(x));
  for (int i = 1; i < kMany; ++i) x = x + parameter();
  EXPECT_TRUE(is_shared(x)) << "small arrays do not hide large ones";
}

TEST_F(SharedValues, AreReal) {
  for (DType dtype : {DType::f16, DType::bf16, DType::f64})
    EXPECT_TRUE(is_shared(sum_of(kMany, {4}, dtype))) << to_string(dtype);
  Tensor whole = sum_of(kMany, {4}, DType::i32);
  EXPECT_FALSE(is_shared(whole, {whole * 2, abs(whole)}));
  EXPECT_FALSE(is_shared(sum_of(kMany, {4}, DType::c64)));
}

}  // namespace
}  // namespace meshard
