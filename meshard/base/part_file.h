// A file that is being written under another name, until it is whole.
#pragma once
#include <sys/types.h>

#include <string>
#include <utility>

namespace meshard {

/// Move-only owner of `PATH.part-...`, beside the file that it will become. It is locked as long as
/// its process lives, so that the next writer of PATH can tell a part that a killed process left
/// from one that is being written.
class PartFile {
 public:
  /// Makes the part, and removes parts of `path` that nobody writes any more.
  /// @return with file() == -1, and errno set, if it cannot be made
  static PartFile create(const std::string& path, mode_t mode = 0666);

  PartFile(PartFile&& other) noexcept
      : path_(std::move(other.path_)),
        part_(std::exchange(other.part_, {})),
        file_(std::exchange(other.file_, -1)) {}
  PartFile& operator=(PartFile&&) = delete;
  ~PartFile();

  /// Its descriptor, open for reading and writing.
  int file() const { return file_; }
  /// Gives it its own name, replacing what was there. False, with errno set, if that fails.
  bool commit();

 private:
  explicit PartFile(std::string path) : path_(std::move(path)) {}
  std::string path_, part_;
  int file_ = -1;
};

/// Removes the parts of `path` that no process writes.
void remove_stale_parts(const std::string& path);

}  // namespace meshard
