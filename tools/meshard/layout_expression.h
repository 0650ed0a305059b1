// The expressions of `meshard layout`: layouts, and operations on them.
#pragma once
#include <cstdint>
#include <string_view>
#include <variant>

#include "meshard/layout/modes.h"

namespace meshard::tool {

/// The value of an expression: the value of a layout at a coordinate, or a layout.
using ExpressionResult = std::variant<std::int64_t, OffsetLayout>;

/// Evaluates an expression. kLayoutExpressions lists the forms.
/// @error the text is not an expression (with the position), or an operation fails (with its text).
ExpressionResult evaluate(std::string_view text);

inline constexpr std::string_view kLayoutExpressions =
    "Layouts are row-major: the last mode is the fastest.\n"
    "  (2,4):(4,1)                a layout; (2,4) alone is the compact one, 8 is 8:1\n"
    "  A o B                      A after B (also A ∘ B); A o B o C is A o (B o C)\n"
    "  L(5)  L(1,2)  L(_,2)       the value at an index or coordinate; with _, a layout\n"
    "  coalesce(L)  coalesce(L, (1,1))   filter(L)  filter(L, (1,1))   flatten(L)\n"
    "  complement(L, n)  right_inverse(L)  left_inverse(L)\n"
    "  composition(L, T)  logical_divide(L, T)  zipped_divide(L, T)  tiled_divide(L, T)\n"
    "  logical_product(L, T)  zipped_product(L, T)  tiled_product(L, T)\n"
    "  concatenate(L, ...)  permute(L, 1, 0)  from_values(0, 4, 1, 5)\n"
    "L is any of these; T also an integer n, short for n:1, or <T, _, T>: one for each mode.\n";

}  // namespace meshard::tool
