// Memory-mapped files: bytes are read from the file when they are first used.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "meshard/array/host_array.h"
#include "meshard/base/result.h"

namespace meshard::io {

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

}  // namespace meshard::io
