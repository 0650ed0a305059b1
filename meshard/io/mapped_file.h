// A file's bytes as memory: read where and when they are used.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "meshard/array/host_array.h"
#include "meshard/base/result.h"

namespace meshard::io {

/// A handle on a file that is mapped read-only; copies share the mapping, which stays until the
/// last handle and the last array of it is gone. A page is read from the file when it is first
/// touched. A file that is replaced (renamed over) goes on as it was; one that is cut short while
/// it is mapped ends the process when a lost page is touched, so write files by replacing them.
class MappedFile {
 public:
  /// @error not found, permission denied, or what the system says; invalid argument for what is no
  /// plain file.
  static Result<MappedFile> open(const std::string& path);

  const std::string& path() const;
  std::span<const std::byte> bytes() const;

  /// The bytes from `offset` on as an array, in place: its memory is the file's. An array of a
  /// dtype that the file does not align, and one of bools, is a copy (other bytes than 0 become 1).
  /// @error out of range if the file is too short.
  Result<HostArray> array(const TensorType& type, std::size_t offset) const;

 private:
  struct Mapping;
  explicit MappedFile(std::shared_ptr<const Mapping> mapping) : mapping_(std::move(mapping)) {}
  std::shared_ptr<const Mapping> mapping_;
};

}  // namespace meshard::io
