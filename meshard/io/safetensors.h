// Named tensors in a safetensors file, which is read on use.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/graph/tensor.h"
#include "meshard/io/mapped_file.h"
#include "meshard/io/safetensors_header.h"

namespace meshard::io {

/// A handle on one safetensors file, whose header has been validated. Opening reads only the
/// header. A tensor's bytes are read on use, and only those that are used, such as the shard of a
/// device.
class SafetensorsFile {
 public:
  /// Opens a file and reads its header.
  /// @error as MappedFile::open and read_safetensors_header
  static Result<SafetensorsFile> open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  std::size_t size_in_bytes() const { return file_.bytes().size(); }
  /// The tensors, in the order of their bytes in the file.
  const std::vector<SafetensorsEntry>& entries() const { return header_->tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_->metadata; }
  /// The tensor with this name; nullptr if there is none.
  const SafetensorsEntry* find(std::string_view name) const;

  /// The tensor's elements, in the memory of the mapped file (see MappedFile::array).
  /// @error not found
  Result<HostArray> array(std::string_view name) const;
  /// The tensors with these names as one array, if they have one type and their bytes follow each
  /// other; otherwise empty. The first dimension of the array has their number.
  std::optional<Result<HostArray>> consecutive(std::span<const std::string> names) const;
  /// The tensor on the host; mark_sharding(tensor, ...) sends each device its shard.
  Result<Tensor> tensor(std::string_view name,
                        SourceLocation where = SourceLocation::current()) const;

 private:
  explicit SafetensorsFile(MappedFile file) : file_(std::move(file)) {}
  MappedFile file_;
  std::shared_ptr<const SafetensorsHeader> header_;
  std::shared_ptr<const std::map<std::string_view, std::size_t>> by_name_;
};

}  // namespace meshard::io
