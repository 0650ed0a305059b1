#include <gtest/gtest.h>

#include <limits>

#include "meshard/graph/storage.h"

namespace meshard {
namespace {

TEST(NumberStorage, EqualNumbersOfOneDtypeShareOne) {
  StoragePtr first = number_storage(DType::f32, 2.5);
  EXPECT_EQ(first.get(), number_storage(DType::f32, 2.5).get());
  EXPECT_NE(first.get(), number_storage(DType::f64, 2.5).get());
  EXPECT_NE(first.get(), number_storage(DType::f32, 3.5).get());
  EXPECT_EQ(first->to_host({}), HostArray::scalar(2.5f));
}

TEST(NumberStorage, SignedZerosDifferAndNanEqualsItself) {
  EXPECT_NE(number_storage(DType::f32, 0.0).get(), number_storage(DType::f32, -0.0).get());
  double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(number_storage(DType::f64, nan).get(), number_storage(DType::f64, nan).get());
}

TEST(NumberStorage, AValueInUseOutlivesTheTable) {
  StoragePtr kept = number_storage(DType::f32, 0.5);
  for (int i = 0; i < 2000; ++i) (void)number_storage(DType::f32, 10 + i);
  EXPECT_EQ(kept->to_host({}), HostArray::scalar(0.5f));
  EXPECT_EQ(number_storage(DType::f32, 0.5)->to_host({}), HostArray::scalar(0.5f));
}

}  // namespace
}  // namespace meshard
