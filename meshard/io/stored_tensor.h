// A tensor in files.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "meshard/array/slice.h"
#include "meshard/io/safetensors.h"

namespace meshard::io {

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
