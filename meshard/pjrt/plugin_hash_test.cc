#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "meshard/base/cat.h"
#include "meshard/pjrt/plugin_search.h"
#include "tests/support/matchers.h"

namespace meshard::pjrt {
namespace {

namespace fs = std::filesystem;

// SHA-256 of "abc", from the standard.
constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

class FetchedFile : public testing::Test {
 protected:
  FetchedFile() {
    std::string name = (fs::temp_directory_path() / "meshard-fetched-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    path_ = (root_ / "x.so").string();
    write(path_, "abc");
  }
  ~FetchedFile() override { fs::remove_all(root_); }
  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  void record(std::string sha256) {
    write(path_ + ".fetched", FetchedRecord{std::move(sha256), 3, 0, 0}.to_string());
  }
  FetchedState state() const { return check_fetched_file(path_).value(); }
  auto checking() const {
    return [this] { check_fetched_file(path_).value(); };
  }
  fs::path root_;
  std::string path_;
};

TEST_F(FetchedFile, WithoutARecord) { EXPECT_EQ(state(), FetchedState::kNoRecord); }

TEST_F(FetchedFile, HashedOnlyWhenItChanged) {
  record(kAbc);
  EXPECT_EQ(state(), FetchedState::kHashChecked);
  EXPECT_EQ(state(), FetchedState::kUnchanged) << "the record was brought up to date";
  fs::last_write_time(path_, fs::last_write_time(path_) + std::chrono::seconds(5));
  EXPECT_EQ(state(), FetchedState::kHashChecked);
}

TEST_F(FetchedFile, OtherContentsAreRefused) {
  record(kAbc);
  EXPECT_EQ(state(), FetchedState::kHashChecked);
  write(path_, "abd");
  fs::last_write_time(path_, fs::last_write_time(path_) + std::chrono::seconds(5));
  EXPECT_TRUE(throws_error(checking(), ErrorCode::kDataLoss, {path_, kAbc, "meshard fetch"}));
}

TEST_F(FetchedFile, ADamagedRecordIsRefused) {
  write(path_ + ".fetched", "meshard fetched 1\nsha256 12\n");
  EXPECT_TRUE(throws_error(checking(), ErrorCode::kDataLoss, {".fetched is damaged"}));
}

TEST(FetchedRecord, PrintsWhatItParses) {
  FetchedRecord record{kAbc, 3, 123456789012345678, 1000};
  EXPECT_EQ(FetchedRecord::parse(record.to_string()).value(), record);
}

}  // namespace
}  // namespace meshard::pjrt
