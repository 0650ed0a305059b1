// Types of tensors in the headers and indices of safetensors files.
#pragma once
#include <string>
#include <string_view>

#include "meshard/array/shape.h"
#include "meshard/base/json_reader.h"
#include "meshard/base/result.h"

namespace meshard::io::internal {

/// The sizes of the tensor `name` in JSON. Errors begin with `[place]`.
/// @pre `sizes` is an array
/// @error invalid argument: a size
Result<Dimensions> read_sizes(std::string_view place, const std::string& name,
                              const JsonValue& sizes);

/// The type of the tensor `name` in JSON, from the format's name of a dtype and a list of sizes.
/// @pre `dtype` is a string, `sizes` an array
/// @error unimplemented: a dtype that meshard lacks; invalid argument: a size
Result<TensorType> read_type(std::string_view place, const std::string& name,
                             const JsonValue& dtype, const JsonValue& sizes);

}  // namespace meshard::io::internal
