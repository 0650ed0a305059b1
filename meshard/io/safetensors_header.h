// What a safetensors file says of its tensors: 8 bytes with the length of a JSON text, the text,
// and the tensors' bytes one after another (https://github.com/huggingface/safetensors).
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/base/result.h"

namespace meshard::io {

/// Where a tensor lies in the file's data.
struct SafetensorsEntry {
  std::string name;
  TensorType type;
  std::uint64_t begin = 0;  // bytes from where the data begins
  std::uint64_t end = 0;
  friend bool operator==(const SafetensorsEntry&, const SafetensorsEntry&) = default;
};

struct SafetensorsHeader {
  /// In the order of their bytes.
  std::vector<SafetensorsEntry> tensors;
  /// The text's `__metadata__`.
  std::map<std::string, std::string> metadata;
  /// Where the data begins in the file.
  std::uint64_t data_begin = 0;
};

/// Reads the header of a whole file, and checks it against the file's size: every tensor has as
/// many bytes as its type needs, and together they are all the bytes, without gap or overlap.
/// @param place what messages name: the path
/// @error invalid argument for anything else, also for a name that is there twice; unimplemented
/// for dtypes that meshard lacks, naming the tensor; resource exhausted without the memory for it.
Result<SafetensorsHeader> read_safetensors_header(std::string_view file, std::string_view place);

/// The first bytes of a file of these tensors, whose places it fills in: names of the widest
/// elements first, then in alphabetical order. The data begins at a multiple of 64 bytes.
/// @param tensors names and types; their order and places are set
/// @error invalid argument for a name that is there twice or is `__metadata__`; unimplemented for a
/// dtype without a name in the format.
Result<std::string> write_safetensors_header(std::vector<SafetensorsEntry>& tensors,
                                             const std::map<std::string, std::string>& metadata);

}  // namespace meshard::io
