// Named tensors in safetensors files, which are read on use.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/array/slice.h"
#include "meshard/graph/tensor.h"
#include "meshard/io/file.h"
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

/// A handle on a tensor in one safetensors file, or in parts in the files of several writers. Only
/// the bytes that are used are read.
class StoredTensor {
 public:
  /// A part: a tensor of a file, and its elements in the whole tensor.
  struct Part {
    SafetensorsFile file;
    std::string name;
    Box box;
  };

  /// @pre the parts are tensors of their files, have the dtype and the shapes of their boxes, and
  /// cover the type's shape exactly once
  StoredTensor(TensorType type, std::vector<Part> parts)
      : type_(std::move(type)), parts_(std::move(parts)) {}

  const TensorType& type() const { return type_; }
  std::span<const Part> parts() const { return parts_; }
  /// Whether it is a tensor of one file.
  bool is_whole() const { return parts_.size() == 1; }

  /// The elements in a box, in the memory of a mapped file if the box is a whole part, otherwise
  /// copied. Reads only those.
  /// @pre the box is inside the shape
  /// @error out of range if a file was replaced by a shorter one
  Result<HostArray> read(const Box& box) const;
  /// The same, copied to the first bytes of `destination`.
  Result<void> read_into(const Box& box, std::byte* destination) const;

 private:
  TensorType type_;
  std::vector<Part> parts_;
};

}  // namespace meshard::io
