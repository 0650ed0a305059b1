#include "meshard/io/npz.h"

#include <complex>

#include "meshard/io/io_testutil.h"

namespace meshard::io {
namespace {

using NpzTest = InFolder;

HostArray complex_pair() {
  const std::complex<float> values[] = {{1, 2}, {3, -4}};
  return HostArray::copy_of({DType::c64, {2}}, values);
}

TEST_F(NpzTest, ReadsWhatNumPyWrote) {
  NamedArrays arrays = load_npz(golden_file("arrays.npz")).value();
  ASSERT_EQ(arrays.size(), 4u);
  EXPECT_EQ(arrays[0].first, "a");
  EXPECT_EQ(arrays[0].second, HostArray::from_vector<float>({0, 0.25, 0.5, 0.75, 1, 1.25}, {2, 3}));
  EXPECT_EQ(arrays[1].first, "flags");
  EXPECT_EQ(arrays[1].second, HostArray::from_vector<bool>({true, false}));
  EXPECT_EQ(arrays[2].second, complex_pair());
  EXPECT_EQ(arrays[3].first, "scalar");
  EXPECT_EQ(arrays[3].second, HostArray::scalar(2.5));
}

// Python's zipfile checks sizes and checksums; check_run.py reads files of `meshard run`.
TEST_F(NpzTest, ReadsWhatItWrote) {
  NamedArrays arrays = load_npz(golden_file("arrays.npz")).value();
  arrays.emplace_back("empty", HostArray::zeros({DType::i64, {0, 3}}));
  save_npz(in_folder("a.npz"), arrays).value();
  EXPECT_EQ(load_npz(in_folder("a.npz")).value(), arrays);
  save_npz(in_folder("none.npz"), {}).value();
  EXPECT_EQ(load_npz(in_folder("none.npz")).value(), NamedArrays());
}

TEST_F(NpzTest, RefusesWhatItCannotRead) {
  Error error = load_npz(golden_file("compressed.npz")).error();
  EXPECT_EQ(error.code(), ErrorCode::kUnimplemented);
  EXPECT_NE(error.message().find("\"a\" is compressed"), std::string::npos);
  EXPECT_EQ(load_npz(golden_file("f32.npy")).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(load_npz(in_folder("missing.npz")).error().code(), ErrorCode::kNotFound);
}

TEST_F(NpzTest, RefusesDamagedFiles) {
  const std::string whole = contents(golden_file("arrays.npz"));
  for (std::size_t size = 0; size < whole.size(); size += 3)
    EXPECT_FALSE(load_npz(written("cut.npz", whole.substr(0, size))).ok()) << size;
  // A changed byte of an array is found by its checksum.
  std::string changed = whole;
  changed[changed.find("NUMPY") + 130] ^= 1;
  EXPECT_EQ(load_npz(written("changed.npz", changed)).error().code(), ErrorCode::kInvalidArgument);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(~damaged[i]);
    (void)load_npz(written("damaged.npz", damaged));
  }
}

}  // namespace
}  // namespace meshard::io
