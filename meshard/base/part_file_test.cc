#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "meshard/base/whole_file.h"

namespace meshard {
namespace {

namespace fs = std::filesystem;

class PartFileTest : public testing::Test {
 protected:
  PartFileTest() {
    std::string name = (fs::temp_directory_path() / "meshard-part-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    path_ = (root_ / "a").string();
  }
  ~PartFileTest() override { fs::remove_all(root_); }
  auto files() const { return std::distance(fs::directory_iterator(root_), {}); }
  fs::path root_;
  std::string path_;
};

TEST_F(PartFileTest, ReplacesOnCommitOnly) {
  std::ofstream(path_) << "old";
  { PartFile dropped = PartFile::create(path_); }
  EXPECT_EQ(fs::file_size(path_), 3u);
  PartFile part = PartFile::create(path_);
  ASSERT_EQ(::write(part.file(), "fresh", 5), 5);
  EXPECT_EQ(fs::file_size(path_), 3u);
  EXPECT_TRUE(part.commit());
  EXPECT_EQ(fs::file_size(path_), 5u);
  EXPECT_EQ(files(), 1);
}

TEST_F(PartFileTest, OnlyPartsThatNobodyWritesAreRemoved) {
  std::ofstream(path_ + ".part-1-0") << "left by a killed process";
  std::ofstream(path_ + "b.part-1-0") << "of another file";
  fs::create_directory(path_ + ".part-2-0");
  PartFile writing = PartFile::create(path_);
  remove_stale_parts(path_);
  EXPECT_FALSE(fs::exists(path_ + ".part-1-0"));
  EXPECT_EQ(files(), 3) << "this part, the other file's, and the folder";
  EXPECT_TRUE(writing.commit());
}

TEST_F(PartFileTest, SaysWhyItCannotBeMade) {
  PartFile part = PartFile::create(path_ + "/none/b");
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(part.file(), -1);
}

}  // namespace
}  // namespace meshard
