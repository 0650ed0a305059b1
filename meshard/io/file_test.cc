#include "meshard/io/file.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include "meshard/base/cat.h"
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

using NewFileTest = InFolder;

TEST_F(NewFileTest, IsThereWholeAfterCommit) {
  std::string path = written("a", "old");
  NewFile file = NewFile::create(path, 5).value();
  std::memcpy(file.data(), "fresh", 5);
  EXPECT_EQ(contents(path), "old");
  file.commit().value();
  EXPECT_EQ(contents(path), "fresh");
  EXPECT_EQ(files(), 1) << "the part is left over";
}

TEST_F(NewFileTest, LeavesNothingWithoutCommit) {
  std::string path = written("a", "old");
  { NewFile file = NewFile::create(path, 5).value(); }
  EXPECT_EQ(contents(path), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(NewFileTest, TwoWritersDoNotMeet) {
  std::string path = in_folder("a");
  NewFile first = NewFile::create(path, 1).value(), second = NewFile::create(path, 1).value();
  std::memcpy(first.data(), "1", 1);
  std::memcpy(second.data(), "2", 1);
  second.commit().value();
  first.commit().value();
  EXPECT_EQ(contents(path), "1");
}

TEST_F(NewFileTest, WhatAKilledProcessLeftIsRemoved) {
  std::string path = written("a", "old");
  written("a.part-1-0", "half");
  written("another.part-1-0", "half");
  NewFile writing = NewFile::create(path, 5).value();
  EXPECT_EQ(files(), 3) << "the old file, this part, and the part of another file";
  NewFile second = NewFile::create(path, 5).value();
  EXPECT_EQ(files(), 4) << "a part that is being written stays";
  writing.commit().value();
}

volatile sig_atomic_t alarms = 0;

// On memory file systems, a signal interrupts the reservation.
TEST_F(NewFileTest, SignalsDoNotStopTheReservation) {
  std::string folder = "/dev/shm";
  std::string path = ::access(folder.c_str(), W_OK) == 0
                         ? cat(folder, "/meshard-new-file-", static_cast<std::int64_t>(::getpid()))
                         : in_folder("a");
  struct sigaction count {
  }, previous{};
  count.sa_handler = [](int) { alarms = alarms + 1; };
  ::sigaction(SIGALRM, &count, &previous);
  itimerval each{{0, 500}, {0, 500}}, none{};
  ::setitimer(ITIMER_REAL, &each, nullptr);
  bool made = true;
  std::string why;
  for (int i = 0; made && i < 4; ++i) {
    auto file = NewFile::create(path, std::size_t{32} << 20);
    made = file.ok() || file.error().code() == ErrorCode::kResourceExhausted;
    if (!made) why = file.error().message();
  }
  ::setitimer(ITIMER_REAL, &none, nullptr);
  ::sigaction(SIGALRM, &previous, nullptr);
  EXPECT_TRUE(made) << why;
}

TEST_F(NewFileTest, ErrorsNameTheFile) {
  Error error = NewFile::create(in_folder("none/a"), 1).error();
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_NE(error.message().find("none/a"), std::string::npos);
  EXPECT_FALSE(NewFile::create(in_folder("large"), std::size_t{1} << 62).ok()) << "no such disk";
  EXPECT_EQ(files(), 0);
}

}  // namespace
}  // namespace meshard::io
