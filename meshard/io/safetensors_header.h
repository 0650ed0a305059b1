// The header of a safetensors file. The file consists of 8 bytes with the length of a JSON text,
// the text, and the concatenated bytes of the tensors (https://github.com/huggingface/safetensors).
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/base/result.h"

namespace meshard::io {

/// The format's name of a dtype: `F32`. Empty if it has none (complex, f8e4m3, f8e3m4,
/// f8e4m3b11fnuz).
std::string_view safetensors_name(DType dtype);
/// The dtype that the format calls so; none if meshard has no such dtype.
std::optional<DType> dtype_of_safetensors(std::string_view name);
/// The size of a dense array in bytes; none if it does not fit.
std::optional<std::uint64_t> safetensors_bytes(const Dimensions& shape, DType dtype);

/// A tensor's name, type and position in the file's data.
struct SafetensorsEntry {
  std::string name;
  TensorType type;
  std::uint64_t begin = 0;  // in bytes from the start of the data
  std::uint64_t end = 0;
  friend bool operator==(const SafetensorsEntry&, const SafetensorsEntry&) = default;
};

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
/// @error invalid argument for anything else, and for duplicate names; unimplemented for dtypes
/// that meshard cannot read, naming the tensor; resource exhausted if there is not enough memory.
Result<SafetensorsHeader> read_safetensors_header(std::string_view file, std::string_view place);

/// Returns the first bytes of a file with these tensors, and sets their order and positions.
/// Tensors with the widest elements come first; apart from that, they keep their order. The data
/// begins at a multiple of 64 bytes.
/// @param tensors names and types; their order and positions are set
/// @error invalid argument for a name that occurs twice or is `__metadata__`; unimplemented for a
/// dtype without a known name in the format (complex, f8e4m3, f8e3m4, f8e4m3b11fnuz).
Result<std::string> write_safetensors_header(std::vector<SafetensorsEntry>& tensors,
                                             const std::map<std::string, std::string>& metadata);

}  // namespace meshard::io
