#pragma once
#include <string_view>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard {

/// Sums of products in Einstein notation: `einsum("bij,bjk->bik", {a, b})`. A letter names a
/// dimension; letters missing from the result are summed over. A letter that occurs twice in one
/// operand takes the diagonal.
/// `...` matches any number of leading or inner dimensions, which broadcast. Without `->` the
/// result has the dimensions of `...`, then the letters that occur once, in alphabetical order.
/// Spaces are ignored. Several operands are multiplied in the order that takes the fewest
/// multiplications; dtypes are promoted.
/// @error a malformed spec; ranks or sizes that do not match it.
Tensor einsum(std::string_view spec, const std::vector<Tensor>& operands,
              SourceLocation where = SourceLocation::current());

}  // namespace meshard
