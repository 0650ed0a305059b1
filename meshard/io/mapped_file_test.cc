#include "meshard/io/mapped_file.h"

#include <sys/stat.h>

#include <optional>

#include "meshard/io/io_testutil.h"

namespace meshard::io {
namespace {

using MappedFileTest = InFolder;

TEST_F(MappedFileTest, ArraysLieInTheFileAndKeepIt) {
  std::string bytes(4096, '\0');
  bytes[8] = 7;
  bytes[12] = 9;
  std::string path = written("a", bytes);
  std::optional<MappedFile> file = MappedFile::open(path).value();
  HostArray array = file->array({DType::i32, {2}}, 8).value();
  EXPECT_EQ(array.bytes(), file->bytes().data() + 8) << "copied";
  EXPECT_EQ(array.ownership(), Ownership::kBorrowed);
  file.reset();
  std::filesystem::remove(path);
  EXPECT_EQ(array.to_vector<std::int32_t>(), (std::vector<std::int32_t>{7, 9}));
}

TEST_F(MappedFileTest, WhatIsNotAlignedIsCopied) {
  std::string bytes(64, '\0');
  bytes[3] = 5;
  MappedFile file = MappedFile::open(written("a", bytes)).value();
  HostArray array = file.array({DType::i32, {1}}, 3).value();
  EXPECT_EQ(array.item<std::int32_t>(), 5);
  EXPECT_NE(array.bytes(), file.bytes().data() + 3);
}

TEST_F(MappedFileTest, BoolsBecomeZeroOrOne) {
  MappedFile file = MappedFile::open(written("a", std::string_view("\x02\x00\xFF", 3))).value();
  HostArray array = file.array({DType::bool_, {3}}, 0).value();
  EXPECT_EQ(array.bytes()[0], std::byte{1});
  EXPECT_EQ(array.bytes()[1], std::byte{0});
  EXPECT_EQ(array.bytes()[2], std::byte{1});
}

// Opening a FIFO waits for a writer, and reading a device may never end.
TEST_F(MappedFileTest, OnlyRegularFiles) {
  ASSERT_EQ(::mkfifo(in_folder("fifo").c_str(), 0600), 0);
  for (const std::string& path : {in_folder("fifo"), std::string("/dev/zero")}) {
    Error error = MappedFile::open(path).error();
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument) << path;
    EXPECT_NE(error.message().find(path), std::string::npos);
  }
}

TEST_F(MappedFileTest, ErrorsNameTheFile) {
  Error missing = MappedFile::open(in_folder("none")).error();
  EXPECT_EQ(missing.code(), ErrorCode::kNotFound);
  EXPECT_NE(missing.message().find(in_folder("none")), std::string::npos);
  EXPECT_EQ(MappedFile::open(folder_.string()).error().code(), ErrorCode::kInvalidArgument);
  MappedFile small = MappedFile::open(written("a", "1234567")).value();
  EXPECT_EQ(small.array({DType::f32, {2}}, 0).error().code(), ErrorCode::kOutOfRange);
  EXPECT_EQ(small.array({DType::u8, {1}}, 7).error().code(), ErrorCode::kOutOfRange);
  EXPECT_EQ(small.array({DType::u8, {1}}, ~std::size_t{0}).error().code(), ErrorCode::kOutOfRange);
  EXPECT_TRUE(MappedFile::open(written("empty", "")).value().bytes().empty());
}

}  // namespace
}  // namespace meshard::io
