// Named tensors in safetensors files, which are read on use.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/array/shape.h"
#include "meshard/array/slice.h"
#include "meshard/base/result.h"
#include "meshard/graph/tensor.h"
#include "meshard/io/file.h"

namespace meshard::io {

// The header of a safetensors file. The file consists of 8 bytes with the length of a JSON text,
// the text, and the concatenated bytes of the tensors (https://github.com/huggingface/safetensors).

/// The format's name of a dtype: `F32`. Empty if it has none (c128, f8e4m3, f8e3m4,
/// f8e4m3b11fnuz).
std::string_view safetensors_name(DType dtype);
/// The dtype that the format calls so; none if meshard has no such dtype.
std::optional<DType> dtype_of_safetensors(std::string_view name);
/// The size of a dense array in bytes; none if it does not fit.
std::optional<std::uint64_t> safetensors_bytes(const Dimensions& shape, DType dtype);

/// A tensor's name, type and position in the file's data. A dtype that meshard lacks (F4, F6_E2M3,
/// F6_E3M2, and any that the format may get) is read as bytes: the type is u8[..., n] if rows of
/// the last dimension are whole bytes, otherwise u8[n].
struct SafetensorsEntry {
  std::string name;
  TensorType type;
  std::uint64_t begin = 0;  // in bytes from the start of the data
  std::uint64_t end = 0;
  std::string stored_dtype = {};  // if read as bytes: the format's dtype, and the sizes in elements
  Dimensions stored_sizes = {};
  friend bool operator==(const SafetensorsEntry&, const SafetensorsEntry&) = default;
};

/// What the header of a safetensors file says.
struct SafetensorsHeader {
  /// In the order of their bytes.
  std::vector<SafetensorsEntry> tensors;
  /// The `__metadata__` of the JSON text.
  std::map<std::string, std::string> metadata;
  /// The offset of the data in the file.
  std::uint64_t data_begin = 0;
};

/// Reads the header of a whole file and validates it against the file's size. Every tensor must
/// have as many bytes as its type needs, and together they must cover all bytes without gaps or
/// overlaps.
/// @param place the prefix of error messages: the path
/// @error invalid argument for anything else, and for duplicate names; resource exhausted if there
/// is not enough memory.
Result<SafetensorsHeader> read_safetensors_header(std::string_view file, std::string_view place);

/// Returns the first bytes of a file with these tensors, and sets their order and positions.
/// Tensors with the widest elements come first; apart from that, they keep their order. The data
/// begins at a multiple of 64 bytes.
/// @param tensors names and types; their order and positions are set
/// @error invalid argument for a name that occurs twice or is `__metadata__`; unimplemented for a
/// dtype without a known name in the format (c128, f8e4m3, f8e3m4, f8e4m3b11fnuz).
Result<std::string> write_safetensors_header(std::vector<SafetensorsEntry>& tensors,
                                             const std::map<std::string, std::string>& metadata);

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

/// A handle on a tensor in one safetensors file, in parts in the files of several writers, or made
/// of others (io::mapped). Only the bytes that are used are read.
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
  /// One that is made of others, or that another program has.
  /// @param read copies the elements in a box, which is not empty, to the first bytes of memory
  StoredTensor(TensorType type, std::function<Result<void>(const Box&, std::byte*)> read)
      : type_(std::move(type)), read_(std::move(read)) {}

  const TensorType& type() const { return type_; }
  /// Empty if the tensor is not in files.
  std::span<const Part> parts() const { return parts_; }
  /// Whether it is a tensor of one file.
  bool is_whole() const { return parts_.size() == 1; }

  /// The elements in a box, in the memory of a mapped file if the box is a whole part, otherwise
  /// copied. Reads only those.
  /// @pre the box is inside the shape
  /// @error out of range if a file was replaced by a shorter one; unavailable if another program
  /// has the elements, and is gone
  Result<HostArray> read(const Box& box) const;
  /// The same, copied to the first bytes of `destination`.
  Result<void> read_into(const Box& box, std::byte* destination) const;

 private:
  TensorType type_;
  std::vector<Part> parts_;
  std::function<Result<void>(const Box&, std::byte*)> read_;
};

}  // namespace meshard::io
