// Maximum and minimum of floats computed on integers in the same order, for collectives.
#pragma once
#include "meshard/ops/definition/emission.h"

namespace meshard::internal {

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
