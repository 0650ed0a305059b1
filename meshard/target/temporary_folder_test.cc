#include "meshard/target/temporary_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/support/matchers.h"

namespace meshard {
namespace {

namespace fs = std::filesystem;

TEST(TemporaryFolder, IsPrivateAndGoesWithItsContents) {
  std::string path;
  {
    TemporaryFolder folder = TemporaryFolder::create().value();
    path = folder.path();
    struct stat about {};
    ASSERT_EQ(::stat(path.c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777, 0700u);
    fs::create_directories(path + "/a/b");
    ASSERT_TRUE(write_whole_file(path + "/a/b/file", "bytes").ok());
    TemporaryFolder moved = std::move(folder);
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(TemporaryFolder, FilesAreWrittenWhole) {
  TemporaryFolder folder = TemporaryFolder::create().value();
  std::string path = folder.path() + "/file";
  std::string bytes(300000, 'x');
  bytes[5] = '\0';
  ASSERT_TRUE(write_whole_file(path, bytes).ok());
  ASSERT_TRUE(write_whole_file(path, bytes + "more").ok());
  EXPECT_EQ(read_whole_file(path).value(), bytes + "more");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
  EXPECT_TRUE(throws_error([&] { read_whole_file(path + "-not").value(); }, ErrorCode::kNotFound,
                           {path + "-not"}));
  EXPECT_FALSE(write_whole_file(folder.path() + "/no/file", bytes).ok());
  EXPECT_FALSE(read_whole_file(folder.path()).ok());
}

}  // namespace
}  // namespace meshard
