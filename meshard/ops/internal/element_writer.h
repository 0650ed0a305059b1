// Writes ops that are several lines of StableHLO, and the regions of reductions.
// Tested in meshard/ops/division_test.cc.
#pragma once
#include <initializer_list>
#include <string_view>

#include "meshard/ops/definition/emission.h"

namespace meshard::internal {

inline constexpr char kAdd[] = "stablehlo.add", kMultiply[] = "stablehlo.multiply",
                      kMaximum[] = "stablehlo.maximum", kMinimum[] = "stablehlo.minimum",
                      kAnd[] = "stablehlo.and", kOr[] = "stablehlo.or";

/// A scalar with the value `number`: the initial value of sums (0) and products (1).
template <int number>
HostArray scalar_of(DType dtype) {
  return HostArray::full({dtype, {}}, number);
}

/// Writes the region of a reduction: a binary op of two scalars of `dtype`.
stablehlo::OpWriter& write_reducer(stablehlo::OpWriter& op, const OpEmission& out,
                                   std::string_view mnemonic, DType dtype);

/// Writes an element-wise op that is several lines of StableHLO. All values have the shape of the
/// result, and its dtype, the dtype of its parts (of complex numbers), or bools. Write one call per
/// statement: C++ does not fix the order in which arguments are evaluated, and the text must be
/// deterministic.
class ElementWriter {
 public:
  using Typed = OpEmission::Typed;

  /// @param type of the result @pre both arguments outlive it
  ElementWriter(const TensorType& type, OpEmission& out)
      : type_(type),
        parts_{real_dtype(type.dtype), type.shape},
        bools_{DType::bool_, type.shape},
        out_(out) {}

  /// A number of the dtype of the result, or of its parts.
  Typed number(double value);
  /// Operands and result have one type.
  Typed unary(std::string_view mnemonic, Typed x);
  Typed binary(std::string_view mnemonic, Typed a, Typed b);
  /// @param direction of StableHLO: "LT", "EQ", "NE"
  Typed compare(std::string_view direction, Typed a, Typed b);
  Typed is_finite(Typed x);
  Typed select(Typed condition, Typed when_true, Typed when_false);
  /// Another op from operands of any types. @pre `type` outlives the result
  Typed made(std::string_view mnemonic, const TensorType& type,
             std::initializer_list<Typed> operands);

  // Complex numbers.
  Typed real(Typed z);
  Typed imag(Typed z);
  Typed abs_of_complex(Typed z);
  Typed complex(Typed re, Typed im);

  /// Writes the result of the call: a selection, one op, or a number of two parts.
  void finish_with_select(Typed condition, Typed when_true, Typed when_false);
  void finish_with(std::string_view mnemonic, Typed a, Typed b);
  void finish_with_complex(Typed re, Typed im);

 private:
  Typed temporary(const TensorType& type) { return Typed(out_.writer.temporary(), type); }

  const TensorType& type_;
  TensorType parts_, bools_;
  OpEmission& out_;
};

// Maximum and minimum of floats computed on integers in the same order, for collectives.

/// Whether several devices that compute the result of this maximum or minimum together may lose a
/// NaN (Quirk::kUnorderedNans).
bool loses_nans(const OpCall& call, const OpEmission& out);

/// The end of the order at which NaN is placed.
enum class NanEnd : std::uint8_t { kGreatest, kLeast };

/// Writes a maximum (kGreatest) or minimum (kLeast) of floats that several devices may compute
/// together. The operands, in the result's dtype, are mapped to integers in the same order, with
/// NaN at the end that wins; `emit` writes the op for these, and its result is mapped back to
/// floats. This takes one collective, of the same size for f32 and f64.
/// @pre the result has a float dtype
void emit_in_order_of_bits(const OpCall& call, OpEmission& out, NanEnd nan,
                           void (*emit)(const OpCall& call, OpEmission& out));

/// The OpDef::emit of an op whose result may be a maximum or minimum over devices, and which `emit`
/// writes otherwise.
template <NanEnd nan, void (*emit)(const OpCall& call, OpEmission& out)>
void emit_keeping_nans(const OpCall& call, OpEmission& out) {
  if (out.partitioned && loses_nans(call, out))
    emit_in_order_of_bits(call, out, nan, emit);
  else
    emit(call, out);
}

}  // namespace meshard::internal
