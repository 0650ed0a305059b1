// The text form of StableHLO types and values.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "meshard/array/shape.h"

namespace meshard::stablehlo {

/// The hexadecimal digits in MLIR text, used for escapes and for the bytes of constants.
inline constexpr char kHexDigits[] = "0123456789ABCDEF";

/// Appends a number in decimal.
void append_number(std::string& out, std::int64_t number);

/// Appends `tensor<8x4xf32>`; a scalar is `tensor<f32>`.
void append_type(std::string& out, const TensorType& type);
std::string type_text(const TensorType& type);

/// Parses the output of type_text(). None for anything else: dynamic sizes, other types, and
/// tensors of more than 1e17 elements.
std::optional<TensorType> parse_type(std::string_view text);

/// Appends text in double quotes, with MLIR's escapes (`\"`, `\\`, `\0A`).
void append_quoted(std::string& out, std::string_view text);

/// Appends `@name`, or `@"a name"` where MLIR needs the quotes.
void append_symbol(std::string& out, std::string_view name);

/// A value: the name of an SSA value, such as `%7`, `%arg0`, `%t3` or `%b2`.
struct Value {
  enum class Kind : std::uint8_t {
    kResult,         ///< `%7`: numbered by the caller
    kArgument,       ///< `%arg0`: of a function
    kTemporary,      ///< `%t3`: numbered by the module writer, inside one op's emission
    kBlockArgument,  ///< `%b2`: of a region
  };
  std::int32_t number = 0;
  Kind kind = Kind::kResult;

  static constexpr Value result(std::int32_t number) { return {number, Kind::kResult}; }
  static constexpr Value argument(std::int32_t number) { return {number, Kind::kArgument}; }
  std::string to_string() const;
  friend bool operator==(const Value&, const Value&) = default;
};
void append_value(std::string& out, Value value);

}  // namespace meshard::stablehlo

namespace meshard {

// Which dimensions of its operands and result an op works on: of dot_general, gather and scatter.

/// The contracting and batch dimensions of dot_general: entry i of one list pairs with entry i of
/// the other. Negative numbers count from the last.
struct DotDimensions {
  Dimensions lhs_contracting = {}, rhs_contracting = {};
  Dimensions lhs_batch = {}, rhs_batch = {};
};

/// The dimension numbers of gather, with StableHLO's names.
struct GatherDimensions {
  Dimensions offset_dims = {};           ///< the result's dimensions inside a slice
  Dimensions collapsed_slice_dims = {};  ///< the operand's dimensions of slice size 1 that are
                                         ///< removed
  Dimensions operand_batching_dims =
      {};  ///< the operand's batching dimensions, matched with the indices'
  Dimensions start_indices_batching_dims = {};
  Dimensions start_index_map = {};    ///< the operand's dimension for each component of an index
  std::int64_t index_vector_dim = 0;  ///< the indices' dimension that holds the components of an
                                      ///< index
};

/// The dimension numbers of scatter, with StableHLO's names.
struct ScatterDimensions {
  Dimensions update_window_dims = {};    ///< the updates' dimensions inside a window
  Dimensions inserted_window_dims = {};  ///< the operand's dimensions of window size 1
  Dimensions input_batching_dims = {};   ///< the operand's batching dimensions, matched with the
                                         ///< indices'
  Dimensions scatter_indices_batching_dims = {};
  Dimensions scatter_dims_to_operand_dims =
      {};                             ///< the operand's dimension of each index component
  std::int64_t index_vector_dim = 0;  ///< the indices' dimension that holds the components of an
                                      ///< index
};

}  // namespace meshard
