#include "meshard/array/dtype/complex.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "meshard/array/host_array.h"

namespace meshard {
namespace {

TEST(Complex, ConvertsToAndFromTheStandardLibrarys) {
  std::complex<float> z(1.5f, -2.0f);
  Complex64 own = z;
  EXPECT_EQ(own, (Complex64{1.5f, -2.0f}));
  std::complex<float> back = own;
  EXPECT_EQ(back, z);
  static_assert(sizeof(Complex128) == sizeof(std::complex<double>));
}

TEST(Complex, IsAnElementOfArrays) {
  HostArray array = HostArray::from_vector<Complex64>({{1, 2}, {3, -0.5f}});
  EXPECT_EQ(array.type().to_string(), "c64[2]");
  EXPECT_EQ(array.to_string(), "[1+2j, 3-0.5j] c64[2]");
  EXPECT_EQ(array.at<Complex64>({1}), (Complex64{3, -0.5f}));
  EXPECT_EQ(array, HostArray::from_vector<Complex64>({{1, 2}, {3, -0.5f}}));
  EXPECT_FALSE(array == HostArray::from_vector<Complex64>({{1, 2}, {3, 0.5f}}));
  EXPECT_FALSE(HostArray::scalar(Complex64{NAN, 0}) == HostArray::scalar(Complex64{NAN, 0}));
}

TEST(Complex, ConvertsByItsRealPart) {
  HostArray array = HostArray::from_vector<Complex128>({{1.75, 9}, {-2, 0}, {0, 3}});
  EXPECT_EQ(array.astype(DType::i32), HostArray::from_vector<std::int32_t>({1, -2, 0}));
  EXPECT_EQ(array.astype(DType::f32), HostArray::from_vector<float>({1.75f, -2, 0}));
  EXPECT_EQ(array.astype(DType::bool_), HostArray::from_vector<bool>({true, true, true}));
  EXPECT_EQ(array.astype(DType::c64),
            HostArray::from_vector<Complex64>({{1.75f, 9}, {-2, 0}, {0, 3}}));
  EXPECT_EQ(HostArray::from_vector<float>({0.5f}).astype(DType::c128),
            HostArray::from_vector<Complex128>({{0.5, 0}}));
}

}  // namespace
}  // namespace meshard
