// A file that is there whole, or not at all.
#pragma once
#include <cstddef>
#include <string>
#include <utility>

#include "meshard/base/part_file.h"
#include "meshard/base/result.h"

namespace meshard::io {

/// Move-only owner of a file that is being written under another name, as memory of a size known
/// from the start. commit() gives it its own name, replacing what was there; without it nothing
/// remains.
class NewFile {
 public:
  /// Makes the file beside `path` and reserves its bytes, which are zero. Removes what a killed
  /// process left of an earlier try.
  /// @pre bytes > 0
  /// @error not found, permission denied, resource exhausted (no space), or what the system says
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

  /// Waits until the bytes are on the disk, then renames. Afterwards there is no file to write to.
  /// @error what the system says
  Result<void> commit();

 private:
  NewFile(std::string path, std::size_t bytes)
      : path_(std::move(path)), part_(PartFile::create(path_)), bytes_(bytes) {}
  std::string path_;
  PartFile part_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace meshard::io
