// Files as memory: mapped ones, and new ones that appear complete or not at all.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "meshard/array/host_array.h"
#include "meshard/base/result.h"
#include "meshard/base/whole_file.h"

namespace meshard::io {

/// An Error for the current errno: `[io] cannot open weights.npy: No such file or directory`.
Error system_error(std::string_view doing, const std::string& path);

/// A handle on a file that is mapped read-only. Copies share the mapping, which lasts until the
/// last handle and the last array that uses it are gone. Replacing the file (renaming another over
/// it) does not affect the mapping. If the file is truncated while it is mapped, access to a lost
/// page kills the process, so replace files rather than overwrite them.
class MappedFile {
 public:
  /// Opens and maps a file.
  /// @error not found, permission denied, or the system's error; invalid argument if it is not a
  /// regular file.
  static Result<MappedFile> open(const std::string& path);

  const std::string& path() const;
  std::span<const std::byte> bytes() const;

  /// An array whose memory is the file's, from `offset` on. It is a copy only if the file does not
  /// align its dtype, or if it is bool (nonzero bytes become 1).
  /// @error out of range if the file is too short.
  Result<HostArray> array(const TensorType& type, std::size_t offset) const;

 private:
  struct Mapping;
  explicit MappedFile(std::shared_ptr<const Mapping> mapping) : mapping_(std::move(mapping)) {}
  std::shared_ptr<const Mapping> mapping_;
};

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
