#include "meshard/graph/node.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/graph/ops_testutil.h"

namespace meshard {
namespace {

using test::plus;
using test::scale;

// A storage that counts its live instances.
struct Counted final : Storage {
  explicit Counted(int* alive) : Storage(Kind::kHost), alive_(alive) { ++*alive_; }
  ~Counted() override { --*alive_; }
  HostArray to_host(SourceLocation) const override { return HostArray::scalar(1.0f); }
  std::string placement() const override { return "counted"; }
  int* alive_;
};

TEST(Node, IdsGrowAlongEveryPath) {
  Tensor x = from_host(std::vector<float>{1, 2}, {2});
  Tensor y = plus(x, x);
  EXPECT_LT(x.value()->id(), y.value()->id());
}

TEST(Node, HoldsItsOperandsAndFreesThem) {
  int alive = 0;
  {
    Tensor result;
    {
      Tensor x = make_array({DType::f32, Shape{}}, make_storage<Counted>(&alive), {});
      result = plus(x, x);
    }
    EXPECT_EQ(alive, 1) << "the recorded node refers to its operand";
    result = Tensor();
    EXPECT_EQ(alive, 0);
  }
}

TEST(Node, AMillionLongChainIsReleasedWithoutRecursion) {
  int alive = 0;
  {
    Tensor x = make_array({DType::f32, Shape{}}, make_storage<Counted>(&alive), {});
    for (int i = 0; i < 1'000'000; ++i) x = scale(x, 1);
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Node, ForgetsOperandsAndKeepsItsValue) {
  int alive = 0;
  Tensor y;
  {
    Tensor x = make_array({DType::f32, Shape{}}, make_storage<Counted>(&alive), {});
    y = plus(x, x);
  }
  y.value()->set_storage(0, make_storage<Counted>(&alive));
  EXPECT_EQ(alive, 2);
  y.value()->forget_operands();
  EXPECT_EQ(alive, 1);
  EXPECT_EQ(y.value().storage()->placement(), "counted");
  EXPECT_THROW(y.value()->set_storage(0, make_storage<Counted>(&alive)), InternalError);
}

TEST(Node, CountsReferences) {
  Tensor x = from_host(std::vector<float>{1}, {1});
  EXPECT_EQ(x.value()->references(), 1u);
  Tensor copy = x;
  EXPECT_EQ(x.value()->references(), 2u);
  Tensor y = plus(x, x);
  EXPECT_EQ(x.value()->references(), 4u);
}

}  // namespace
}  // namespace meshard
