// Arrays as constants in the text of a module.
#pragma once
#include <string>

#include "meshard/array/host_array.h"

namespace meshard::stablehlo {

/// Appends `dense<...> : tensor<...>` with exactly the bits of the array:
/// - no elements: `dense<>`;
/// - all elements with equal bits: one literal, such as `dense<2.5>` or `dense<true>`, in
///   hexadecimal where decimal digits could round (`dense<0x7FC00000>` for NaN);
/// - bools: `dense<[[true, false]]>`;
/// - otherwise `dense<"0x...">`, the bytes in order.
void append_dense(std::string& out, const HostArray& array);
std::string dense_text(const HostArray& array);

/// A constant `dense<value> : type` whose elements are all equal. The value is converted to the
/// dtype as in HostArray::astype. The cost does not depend on the number of elements.
std::string splat_text(const TensorType& type, double value);

}  // namespace meshard::stablehlo
