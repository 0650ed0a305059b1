#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "meshard/base/whole_file.h"
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

}  // namespace
}  // namespace meshard
