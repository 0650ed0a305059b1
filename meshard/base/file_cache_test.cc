#include "meshard/base/file_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "meshard/base/whole_file.h"

namespace meshard {
namespace {

namespace fs = std::filesystem;

class FileCaches : public testing::Test {
 protected:
  FileCaches() {
    std::string name = (fs::temp_directory_path() / "meshard-cache-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~FileCaches() override { fs::remove_all(root_); }
  FileCache cache(std::uint64_t most_bytes = 1 << 20, std::string format = "test 1") const {
    return FileCache((root_ / "in" / "side").string(), ".entry", std::move(format), most_bytes);
  }
  fs::path root_;
};

TEST_F(FileCaches, FindWhatWasKept) {
  EXPECT_FALSE(cache().find("a"));
  std::string bytes("with a \0 and\nlines", 18);
  cache().keep("a", bytes).value();
  cache().keep("empty", "").value();
  EXPECT_EQ(cache().find("a"), bytes);
  EXPECT_EQ(cache().find("empty"), "");
  cache().keep("a", "other").value();
  EXPECT_EQ(cache().find("a"), "other");
  EXPECT_FALSE(cache(1 << 20, "test 2").find("a")) << "another format";
  auto keys = cache().keys();
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(keys, (std::vector<std::string>{"a", "empty"}));
  EXPECT_EQ(cache().keys("e"), std::vector<std::string>{"empty"});
  EXPECT_EQ(cache().bytes(), 2 * (7 + 32) + 5u);
}

TEST_F(FileCaches, RefuseWhatIsDamaged) {
  std::string path = cache().path_of("a");
  cache().keep("a", "0123456789").value();
  std::string whole = read_whole_file(path).value();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    EXPECT_FALSE(cache().find("a")) << size << " bytes";
  }
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    std::ofstream(path, std::ios::binary) << changed;
    EXPECT_FALSE(cache().find("a")) << "byte " << i;
  }
  cache().keep("a", "0123456789").value();
  EXPECT_TRUE(cache().find("a"));
}

TEST_F(FileCaches, RemoveWhatWasUsedLongestAgo) {
  std::string bytes(1000, 'x');
  auto age = [&](const char* key, int hours) {
    fs::path path = cache().path_of(key);
    fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours(hours));
  };
  for (const char* key : {"a", "b", "c"}) cache().keep(key, bytes).value();
  age("a", 3), age("b", 2), age("c", 1);
  EXPECT_TRUE(cache().find("a")) << "now the last that was used";
  EXPECT_TRUE(cache().peek("b")) << "and does not count as used";
  std::ofstream(fs::path(cache().path_of("a")).parent_path() / "other") << "not an entry";
  cache(3500).keep("d", bytes).value();
  auto keys = cache().keys();
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(keys, (std::vector<std::string>{"a", "c", "d"}));
  cache(0).keep("e", bytes).value();
  EXPECT_TRUE(cache().keys().empty());
  EXPECT_TRUE(fs::exists(fs::path(cache().path_of("a")).parent_path() / "other"));
}

// One handle that lists the folder rarely still keeps to the limit.
TEST_F(FileCaches, KeepToTheirLimit) {
  FileCache one = cache(10'000), copy = one;
  std::string bytes(900, 'x');
  for (int i = 0; i < 200; ++i) {
    (i % 2 ? one : copy).keep(std::to_string(i), bytes).value();
    EXPECT_LE(one.bytes(), 10'000u);
    EXPECT_TRUE(one.find(std::to_string(i)));
  }
  EXPECT_GE(one.keys().size(), 9u);
  // Another process fills the folder: the next listing removes what is too much.
  for (int i = 0; i < 30; ++i) cache(1 << 20).keep("other" + std::to_string(i), bytes).value();
  for (int i = 0; i < 64; ++i) one.keep("last", bytes).value();
  EXPECT_LE(one.bytes(), 10'000u);
}

TEST_F(FileCaches, WithoutAFolderNothingIsKept) {
  FileCache none("", ".entry", "test 1", 1 << 20);
  none.keep("a", "bytes").value();
  EXPECT_FALSE(none.find("a"));
  EXPECT_TRUE(none.check_trust().ok());
}

TEST_F(FileCaches, AFolderThatCannotBeMadeIsAnError) {
  std::ofstream(root_ / "in") << "a file";
  EXPECT_FALSE(cache().keep("a", "bytes").ok());
  EXPECT_FALSE(cache().find("a"));
}

}  // namespace
}  // namespace meshard
