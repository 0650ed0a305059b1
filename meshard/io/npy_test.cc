#include "meshard/io/npy.h"

#include <complex>

#include "meshard/io/io_testutil.h"

namespace meshard::io {
namespace {

using NpyTest = InFolder;

template <class T>
HostArray npy_of(std::vector<T> values, Shape shape) {
  return HostArray::from_vector(std::move(values), std::move(shape));
}

TEST_F(NpyTest, ReadsWhatNumPyWrote) {
  EXPECT_EQ(load_npy(golden_file("f32.npy")).value(),
            npy_of<float>({0, 0.25, 0.5, 0.75, 1, 1.25}, {2, 3}));
  std::vector<std::int16_t> counting_values(24);
  for (std::size_t i = 0; i < 24; ++i) counting_values[i] = static_cast<std::int16_t>(i);
  EXPECT_EQ(load_npy(golden_file("fortran_i16.npy")).value(), npy_of(counting_values, {2, 3, 4}));
  EXPECT_EQ(load_npy(golden_file("big_endian_f64.npy")).value(),
            npy_of<double>({1.5, -2, 1e300}, {3}));
  EXPECT_EQ(load_npy(golden_file("scalar_u64.npy")).value(), HostArray::scalar(~std::uint64_t{0}));
  EXPECT_EQ(load_npy(golden_file("empty_f16.npy")).value().type(),
            (TensorType{DType::f16, {0, 3}}));
  EXPECT_EQ(load_npy(golden_file("bool.npy")).value(), npy_of<bool>({true, false, true}, {3}));
}

TEST_F(NpyTest, ComplexNumbers) {
  const std::complex<float> values[] = {{1, 2}, {3, -4}};
  EXPECT_EQ(load_npy(golden_file("big_endian_complex.npy")).value(),
            HostArray::copy_of({DType::c64, {2}}, values));
}

TEST_F(NpyTest, WritesTheBytesThatNumPyWrites) {
  for (const char* name :
       {"f32.npy", "complex.npy", "scalar_u64.npy", "empty_f16.npy", "bool.npy"}) {
    save_npy(in_folder("a.npy"), load_npy(golden_file(name)).value()).value();
    EXPECT_EQ(contents(in_folder("a.npy")), contents(golden_file(name))) << name;
  }
}

TEST_F(NpyTest, RefusesWhatItCannotHold) {
  EXPECT_EQ(load_npy(golden_file("long_double.npy")).error().code(), ErrorCode::kUnimplemented);
  HostArray narrow = HostArray::zeros({DType::bf16, {2}});
  EXPECT_EQ(save_npy(in_folder("a.npy"), narrow).error().code(), ErrorCode::kUnimplemented);
}

TEST_F(NpyTest, RefusesDamagedFiles) {
  std::string whole = contents(golden_file("f32.npy"));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(load_npy(written("cut.npy", whole.substr(0, size))).ok()) << size;
  EXPECT_FALSE(load_npy(written("long.npy", whole + "x")).ok());
  auto with_header = [&](std::string header) {
    std::string bytes("\x93NUMPY\x01\x00", 8);
    bytes += static_cast<char>(header.size());
    return written("h.npy", bytes + '\0' + header);
  };
  auto shape = [&](const std::string& sizes) {
    return with_header("{'descr': '<f4', 'fortran_order': False, 'shape': " + sizes + "}");
  };
  EXPECT_TRUE(load_npy(shape("(0,)")).ok());
  for (const char* sizes :
       {"(-1,)", "(4611686018427387904, 4)", "(0, 9223372036854775807, 9)", "3", "(1", "(x,)"})
    EXPECT_FALSE(load_npy(shape(sizes)).ok()) << sizes;
  EXPECT_FALSE(load_npy(with_header("{'descr': '<f4', 'shape': (0,)}")).ok());
  EXPECT_FALSE(load_npy(with_header("{'descr': '', 'fortran_order': False, 'shape': (0,)}")).ok());
}

}  // namespace
}  // namespace meshard::io
