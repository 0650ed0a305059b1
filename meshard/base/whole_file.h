// Reads and writes files as a whole.
#pragma once
#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>

#include "meshard/base/result.h"

namespace meshard {

/// Reads a whole file.
/// @error not found, or the system's error; invalid argument if it is not a regular file
Result<std::string> read_whole_file(const std::string& path);

/// Writes a file atomically: it appears complete or not at all. Only this user can read it.
/// @error the system's error
Result<void> write_whole_file(const std::string& path, std::string_view bytes);

// A file that is written under a temporary name until it is complete.

/// Move-only owner of `PATH.part-...`, a temporary file in the same folder as PATH. The file is
/// locked while its owner is alive, so the next writer of PATH can tell an abandoned part of a
/// killed process from one that is still being written.
class PartFile {
 public:
  /// Creates the part and removes abandoned parts of `path`.
  /// @return with file() == -1, and errno set, if the file cannot be created
  static PartFile create(const std::string& path, mode_t mode = 0666);

  PartFile(PartFile&& other) noexcept
      : path_(std::move(other.path_)),
        part_(std::exchange(other.part_, {})),
        file_(std::exchange(other.file_, -1)) {}
  PartFile& operator=(PartFile&&) = delete;
  ~PartFile();

  /// The file descriptor, open for reading and writing.
  int file() const { return file_; }
  /// Renames the part to its final path, replacing any existing file. On failure returns false and
  /// sets errno.
  bool commit();

 private:
  explicit PartFile(std::string path) : path_(std::move(path)) {}
  std::string path_, part_;
  int file_ = -1;
};

/// Removes the parts of `path` that no process is writing.
void remove_stale_parts(const std::string& path);

// A private temporary folder, removed with its owner.

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
