#include "meshard/base/whole_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/matchers.h"

namespace meshard {
namespace {

namespace fs = std::filesystem;

TEST(WholeFile, IsWrittenAtOnce) {
  std::string folder = (fs::temp_directory_path() / "meshard-whole-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  std::string path = folder + "/file";
  std::string bytes(300000, 'x');
  bytes[5] = '\0';
  ASSERT_TRUE(write_whole_file(path, bytes).ok());
  ASSERT_TRUE(write_whole_file(path, bytes + "more").ok());
  EXPECT_EQ(read_whole_file(path).value(), bytes + "more");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
  EXPECT_TRUE(throws_error([&] { read_whole_file(path + "-not").value(); }, ErrorCode::kNotFound,
                           {path + "-not"}));
  EXPECT_FALSE(write_whole_file(folder + "/no/file", bytes).ok());
  EXPECT_FALSE(read_whole_file(folder).ok());
  fs::remove_all(folder);
}

}  // namespace
}  // namespace meshard
