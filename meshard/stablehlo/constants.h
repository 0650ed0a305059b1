// Arrays as constants in module text.
#pragma once
#include <string>

#include "meshard/array/host_array.h"

namespace meshard::stablehlo {

/// Appends `dense<...> : tensor<...>` with exactly the array's bits:
/// - no elements: `dense<>`;
/// - all elements of equal bits: one literal, `dense<2.5>`, `dense<true>`, and hexadecimal bits
/// where
///   decimal digits could round (`dense<0x7FC00000>` for NaN);
/// - else `dense<"0x...">`, the bytes in order; bools are packed into bits, the first in the
/// lowest.
void append_dense(std::string& out, const HostArray& array);
std::string dense_text(const HostArray& array);

/// `dense<value> : type` for the same value everywhere, converted to the dtype as HostArray::astype
/// does. Costs nothing per element.
std::string splat_text(const TensorType& type, double value);

}  // namespace meshard::stablehlo
