// Writes a StableHLO module as text. It does not depend on the graph: the caller numbers the values
// and gives their types; meshes and shardings are passed as Shardy text.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/array/shape.h"
#include "meshard/stablehlo/merged_module.h"
#include "meshard/stablehlo/types.h"

namespace meshard::stablehlo {

// The structured attributes of StableHLO ops.

/// The dimension numbers of a convolution's operands and result. The `*_spatial` lists are in the
/// order of the window dimensions.
struct ConvolutionDimensionNumbers {
  std::int64_t input_batch = 0, input_feature = 1;
  Dimensions input_spatial;
  std::int64_t kernel_output_feature = 0, kernel_input_feature = 1;
  Dimensions kernel_spatial;
  std::int64_t output_batch = 0, output_feature = 1;
  Dimensions output_spatial;
};

/// Appends `#stablehlo.dot<lhs_contracting_dimensions = [1], ...>` or the like. Empty lists are
/// omitted, as by StableHLO's own printer.
void append_attribute(std::string& out, const DotDimensions& numbers);
void append_attribute(std::string& out, const GatherDimensions& numbers);
void append_attribute(std::string& out, const ScatterDimensions& numbers);
/// Appends `#stablehlo.conv<[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]>`.
void append_attribute(std::string& out, const ConvolutionDimensionNumbers& numbers);

/// A value: an SSA value and a pointer to its type, which must outlive the call that receives it.
struct Typed {
  Value value;
  const TensorType* type;
  Typed(Value v, const TensorType& t) : value(v), type(&t) {}
};

/// A view of a list of T: braces, a vector, an InlineVector, a span. Valid during the call.
template <class T>
class ListOf {
 public:
  ListOf(std::initializer_list<T> list) : size_(list.size()) { data_ = list.begin(); }
  template <class Range>
  requires std::convertible_to<const Range&, std::span<const T>> ListOf(
      const Range& range) {  // NOLINT: a view
    std::span<const T> span = range;
    data_ = span.data();
    size_ = span.size();
  }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  std::size_t size() const { return size_; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  const T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// An argument of a function. Its value is Value::argument(position).
struct ArgumentText {
  const TensorType* type;
  std::string_view sharding = {};    ///< `<@mesh, [{"x"}, {}]>`; empty: none
  int aliases_output = -1;           ///< the result that may reuse this argument's buffer
  bool donated = false;              ///< jax.buffer_donor: any result may reuse it
  std::string_view name = {};        ///< written as a location; empty: none
  std::string_view attributes = {};  ///< additional attributes, as text
};

/// A result of a function.
struct ResultText {
  const TensorType* type;
  std::string_view sharding = {};
  std::string_view attributes = {};
};

class ModuleWriter;

/// Writes one op in generic form as a single chain of calls. The order is: attributes, regions,
/// done(). Every op that is begun must be ended.
///
///     writer.op("stablehlo.transpose", {{r, type}}, {{x, x_type}}, "n3")
///         .i64_array("permutation", {1, 0}).done();
///     // %3 = "stablehlo.transpose"(%2) <{permutation = array<i64: 1, 0>}> : (tensor<2x4xf32>) ->
///     ...
class OpWriter {
 public:
  OpWriter(OpWriter&&) = default;

  /// `name = 5 : i64`
  OpWriter& i64(std::string_view name, std::int64_t value);
  /// `name = 5 : i32`
  OpWriter& i32(std::string_view name, std::int32_t value);
  /// `name = 0x3F800000 : f32`, which is exact.
  OpWriter& f32(std::string_view name, float value);
  /// `name = true`
  OpWriter& boolean(std::string_view name, bool value);
  /// `name = array<i64: 0, 1>`
  OpWriter& i64_array(std::string_view name, ListOf<std::int64_t> values);
  /// `name = array<i1: true, false>`; nonzero values are true.
  OpWriter& bool_array(std::string_view name, ListOf<std::int64_t> values);
  /// `name = dense<...> : tensor<...>`
  OpWriter& dense(std::string_view name, const HostArray& array);
  /// `name = #stablehlo<kind VALUE>`, as in `#stablehlo<comparison_direction LT>`.
  OpWriter& enumeration(std::string_view name, std::string_view kind, std::string_view value);
  /// `name = [#stablehlo<kind VALUE>, ...]`, for example for precision_config.
  OpWriter& enumerations(std::string_view name, std::string_view kind,
                         ListOf<std::string_view> values);
  OpWriter& dimension_numbers(std::string_view name, const DotDimensions& numbers);
  OpWriter& dimension_numbers(std::string_view name, const GatherDimensions& numbers);
  OpWriter& dimension_numbers(std::string_view name, const ScatterDimensions& numbers);
  OpWriter& dimension_numbers(std::string_view name, const ConvolutionDimensionNumbers& numbers);
  /// `name = "text"`
  OpWriter& string(std::string_view name, std::string_view text);
  /// `name = tensor<4xf32>`
  OpWriter& type(std::string_view name, const TensorType& type);
  /// `name = @function`
  OpWriter& symbol(std::string_view name, std::string_view function);
  /// `name`
  OpWriter& unit(std::string_view name);
  /// `name = text`, verbatim.
  OpWriter& raw(std::string_view name, std::string_view text);

  /// Begins a region whose arguments come from ModuleWriter::block_argument(). The ops written
  /// until end_region() are its body; the last one is ModuleWriter::terminate.
  OpWriter& begin_region(ListOf<Typed> arguments = {});
  OpWriter& end_region();
  /// Writes a region whose body is written by `body()`.
  template <std::invocable Body>
  OpWriter& region(ListOf<Typed> arguments, Body&& body) {
    begin_region(arguments);
    body();
    return end_region();
  }

  /// A discardable attribute, written after the op's regions, such as mhlo.frontend_attributes.
  OpWriter& discardable(std::string_view name, std::string_view text);
  /// Ends the op.
  void done();

 private:
  friend class ModuleWriter;
  OpWriter(ModuleWriter& writer, std::size_t signature) : writer_(writer), signature_(signature) {}
  std::string& begin_attribute(std::string_view name);

  enum class State : std::uint8_t { kNames, kAttributes, kRegions, kDiscardable };
  ModuleWriter& writer_;
  std::size_t signature_;  // where this op's types and location begin in the writer's pending text
  State state_ = State::kNames;
};

/// An owner of the text of a module that is being written. Functions are written one at a time; ops
/// are added to the function begun last.
class ModuleWriter {
 public:
  /// Begins `module @name attributes {mhlo.num_partitions = ..., mhlo.num_replicas = ...}`.
  /// @param attributes additional attributes, as text; empty: none
  explicit ModuleWriter(std::string_view name = "main", std::int64_t num_partitions = 1,
                        std::int64_t num_replicas = 1, std::string_view attributes = {});

  /// Reserves memory for `bytes` bytes of text.
  void reserve(std::size_t bytes) { text_.reserve(bytes); }
  /// Writes `sdy.mesh @name = <["x"=2]>`; call before the first function.
  void mesh(std::string_view name, std::string_view text);

  /// Begins a function. `main` must be public; the functions it calls should be private.
  void begin_function(std::string_view name, ListOf<ArgumentText> arguments,
                      ListOf<ResultText> results, bool is_public = true);
  /// Writes `return` and ends the function.
  void end_function(ListOf<Typed> results);
  /// Adds the functions of another module after those of this one; call() calls them.
  void merge(const MergedModule& module);
  /// Returns the whole text. The writer cannot be used afterward.
  std::string finish() &&;

  /// Writes an op whose operands and result have the same type, in its short form:
  /// `%2 = stablehlo.add %0, %1 : tensor<4xf32> loc("n7")`.
  /// @pre the op has this form: unary and binary arithmetic and logic of StableHLO. Comparisons,
  /// select, clamp, convert and chlo ops have other short forms: write them with op().
  void elementwise(std::string_view mnemonic, Value result, ListOf<Value> operands,
                   const TensorType& type, std::string_view location = {});
  /// Begins any op, in generic form.
  OpWriter op(std::string_view mnemonic, ListOf<Typed> results, ListOf<Typed> operands,
              std::string_view location = {});
  /// Writes `%0 = stablehlo.constant dense<...> : tensor<...>`.
  void constant(Value result, const HostArray& array, std::string_view location = {});
  /// Writes a constant whose elements are all `value`.
  void splat(Value result, const TensorType& type, double value, std::string_view location = {});
  /// Writes a scalar constant under a temporary name, such as the initial value of a reduction.
  Value scalar(DType dtype, double value);
  /// Writes `%1 = sdy.sharding_constraint %0 <@mesh, [{"x"}, {}]> : tensor<8x4xf32>`.
  void sharding_constraint(Value result, Value operand, const TensorType& type,
                           std::string_view sharding, std::string_view location = {});
  /// Writes `%1, %2 = func.call @f(%0) : (...) -> (...)`.
  void call(std::string_view function, ListOf<Typed> results, ListOf<Typed> operands,
            std::string_view location = {});
  /// Begins a `stablehlo.custom_call` of this target. Continue with the attributes that the target
  /// needs, such as `i32("api_version", 4)`.
  OpWriter custom_call(std::string_view target, ListOf<Typed> results, ListOf<Typed> operands,
                       std::string_view location = {});
  /// Writes the terminator of a region: `stablehlo.return %t3 : tensor<f32>`.
  void terminate(ListOf<Typed> values, std::string_view mnemonic = "stablehlo.return");

  /// A new name for a value inside one op's emission.
  Value temporary() { return {temporaries_++, Value::Kind::kTemporary}; }
  /// A new name for an argument of a region.
  Value block_argument() { return {block_arguments_++, Value::Kind::kBlockArgument}; }

 private:
  friend class OpWriter;
  void indent() { text_.append(2 * depth_, ' '); }
  void begin_op(ListOf<Typed> results);
  void append_location(std::string_view location);
  void append_operands(ListOf<Typed> operands);
  static void append_types(std::string& out, ListOf<Typed> values, bool always_in_parentheses);

  std::string text_;
  std::string merged_functions_, merged_aliases_;
  std::string pending_;  // types and locations of the open ops, innermost last
  std::size_t depth_ = 1;
  std::int32_t temporaries_ = 0;
  std::int32_t block_arguments_ = 0;
};

}  // namespace meshard::stablehlo
