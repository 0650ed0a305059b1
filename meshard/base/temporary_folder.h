// A private temporary folder, removed with its owner.
#pragma once
#include <string>
#include <utility>

#include "meshard/base/result.h"

namespace meshard {

/// Move-only owner of a new folder that only this user can read. The destructor removes it with its
/// contents.
class TemporaryFolder {
 public:
  /// Creates a folder in TMPDIR, else in /tmp.
  /// @error the system's error
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

}  // namespace meshard
