#include "meshard/io/new_file.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstring>

#include "meshard/base/cat.h"
#include "meshard/io/io_testutil.h"

namespace meshard::io {
namespace {

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
