// The greatest and the least of floats as integers, for collectives.
#pragma once
#include "meshard/ops/emission.h"

namespace meshard {

/// Which end NaN belongs to.
enum class NanEnd : std::uint8_t { kGreatest, kLeast };

/// Writes a maximum (kGreatest) or minimum (kLeast) of floats that several devices may compute
/// together. All-reduces of plugins may drop NaN where the others are numbers. So the operands in
/// the result's dtype become integers in the same order, with NaN at the end that wins; `emit`
/// writes the op for these, and its result becomes floats again. One collective, of the same size
/// for f32 and f64.
/// @pre the result is of floats
void emit_in_order_of_bits(const OpCall& call, OpEmission& out, NanEnd nan,
                           void (*emit)(const OpCall& call, OpEmission& out));

}  // namespace meshard
