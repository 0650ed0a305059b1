#include "meshard/io/new_file.h"

#include <cstring>

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

TEST_F(NewFileTest, ErrorsNameTheFile) {
  Error error = NewFile::create(in_folder("none/a"), 1).error();
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_NE(error.message().find("none/a"), std::string::npos);
  EXPECT_FALSE(NewFile::create(in_folder("large"), std::size_t{1} << 62).ok()) << "no such disk";
  EXPECT_EQ(files(), 0);
}

}  // namespace
}  // namespace meshard::io
