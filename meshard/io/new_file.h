// A file that appears complete or not at all.
#pragma once
#include <cstddef>
#include <string>
#include <utility>

#include "meshard/base/part_file.h"
#include "meshard/base/result.h"

namespace meshard::io {

/// Move-only owner of a new file that is written as memory under a temporary name. Its size is
/// known from the start. commit() renames it to its final path, replacing any existing file;
/// without commit() nothing remains.
class NewFile {
 public:
  /// Creates a temporary file beside `path` and reserves its bytes, which are zero. Removes
  /// temporary files of `path` that killed processes left.
  /// @pre bytes > 0
  /// @error not found, permission denied, resource exhausted (no space), or the system's error
  static Result<NewFile> create(const std::string& path, std::size_t bytes);

  NewFile(NewFile&& other) noexcept
      : path_(std::move(other.path_)),
        part_(std::move(other.part_)),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(other.bytes_) {}
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  std::byte* data() { return data_; }
  std::size_t bytes() const { return bytes_; }

  /// Waits until the bytes are on the disk, then renames the file. The memory must not be written
  /// afterward.
  /// @error the system's error
  Result<void> commit();

 private:
  NewFile(std::string path, std::size_t bytes)
      : path_(std::move(path)), part_(PartFile::create(path_)), bytes_(bytes) {}
  std::string path_;
  PartFile part_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Waits until the names of the files in the folder of `path`, renamed and removed, are on the
/// disk.
/// @error the system's error
Result<void> flush_folder_of(const std::string& path);

}  // namespace meshard::io
