// A private folder that is gone when its owner is.
#pragma once
#include <string>
#include <utility>

#include "meshard/base/result.h"

namespace meshard {

/// Move-only owner of a new folder that only this user can read; it is removed with all that is in
/// it.
class TemporaryFolder {
 public:
  /// Makes one in TMPDIR, else in /tmp.
  /// @error what the system says
  static Result<TemporaryFolder> create();

  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~TemporaryFolder();

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// The whole of a file.
/// @error not found, or what the system says
Result<std::string> read_whole_file(const std::string& path);

/// Writes a file in one step: it is there whole, or not at all.
/// @error what the system says
Result<void> write_whole_file(const std::string& path, std::string_view bytes);

}  // namespace meshard
