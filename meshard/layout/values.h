// The values of a layout: whether they are distinct, whether two layouts share one, and the layout
// that has given values (row-major).
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "meshard/layout/layout.h"

namespace meshard {

/// True if no two indices have the same value. Exact for strides of any sign and order, without
/// enumerating the values: (3,2):(2,3) is injective although its modes interlock.
bool is_injective(const Layout& layout);

/// True if no value of `a` equals a value of `b` plus `offset`. Exact for strides of any sign and
/// order, without enumerating the values.
bool are_disjoint(const Layout& a, const Layout& b, std::int64_t offset = 0);

/// True if each mode of coalesce(layout) counts whole blocks of the modes with smaller strides.
/// That is, in the order of strides, each stride is divisible by the next smaller one times its
/// size. The sign of a stride does not matter. A single mode is always orthogonal; a mode of stride
/// 0 with other modes never is, as in PyTorch 2.15.
/// @post if true, and the layout is not one mode of stride 0: is_injective(layout), and
/// complement(layout, n) fills 0..n-1.
bool is_orthogonal(const Layout& layout);

/// The coalesced layout L with L(i) = values[i] - values[0] for all i. Returns nullopt if no
/// layout of size values.size() has these values. Makes one pass over the list.
/// @pre values is not empty
/// @post the result has been verified against every value.
std::optional<Layout> from_values(IntView values);

}  // namespace meshard
