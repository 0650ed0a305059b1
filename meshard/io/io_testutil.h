// Helpers for tests of files.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace meshard::io {

/// first, first + 1, ...
inline std::vector<float> counted(std::size_t count, float first = 0) {
  std::vector<float> values(count);
  for (float& value : values) value = first++;
  return values;
}

/// A fixture with its own folder, which is removed after the test.
class InFolder : public testing::Test {
 protected:
  InFolder() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) /
              (std::string("meshard_io_") + std::to_string(::getpid()) + "_" +
               test->test_suite_name() + "_" + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~InFolder() override { std::filesystem::remove_all(folder_); }

  std::string in_folder(std::string_view name) const { return (folder_ / name).string(); }
  std::string written(std::string_view name, std::string_view bytes) const {
    std::ofstream(in_folder(name), std::ios::binary) << bytes;
    return in_folder(name);
  }
  static std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  int files() const {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::filesystem::path folder_;
};

/// The path of a file in tests/golden/io that NumPy or safetensors wrote.
inline std::string golden_file(std::string_view name) {
  return std::string(MESHARD_GOLDEN "/io/").append(name);
}

}  // namespace meshard::io
