#include "meshard/ops/composite/unique.h"

#include <limits>
#include <vector>

#include "meshard/ops/arithmetic.h"
#include "meshard/ops/cast.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/composite/create.h"
#include "meshard/ops/composite/rearrange.h"
#include "meshard/ops/composite/search.h"
#include "meshard/ops/composite/take.h"
#include "meshard/ops/cumulative.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/iota.h"
#include "meshard/ops/movement.h"
#include "meshard/ops/reshape.h"
#include "meshard/ops/slicing.h"
#include "meshard/ops/sort.h"

namespace meshard {
namespace {

// Elements `first` to `last` - 1 of a vector.
Tensor elements_between(const Tensor& x, std::int64_t first, std::int64_t last) {
  return slice(x, {first}, {last});
}

}  // namespace

Unique unique_all(In x, std::int64_t size) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor operand = operand_tensor("unique", x), flat = flatten(operand);
  std::int64_t n = flat.dim(0);
  if (size < 0) throw_invalid(where, "[unique] size = ", size, " is negative");
  if (n == 0 || n > std::numeric_limits<std::int32_t>::max())
    throw_invalid(where, "[unique] takes 1 to 2^31 - 1 elements, not ", operand.type());
  std::vector<Tensor> sorted = sort({flat, iota(DType::i32, Shape{n}, 0)});
  // The number of each sorted element's value: a running count of the places where a new value
  // begins.
  Tensor begins =
      not_equal(elements_between(sorted[0], 1, n), elements_between(sorted[0], 0, n - 1));
  Tensor numbers = cumulative_sum(concat({zeros({1}, DType::i32), astype(begins, DType::i32)}));
  Tensor starts = searchsorted(numbers, iota(DType::i32, Shape{size + 1}, 0));
  Tensor first = elements_between(starts, 0, size);
  return {.values = take(sorted[0], first),
          .indices = take(sorted[1], first),
          .inverse_indices = reshape(take(numbers, argsort(sorted[1])), operand.shape()),
          .counts = subtract(elements_between(starts, 1, size + 1), first),
          .number = add(reshape(elements_between(numbers, n - 1, n), Shape{}), 1)};
}

Tensor unique_values(In x, std::int64_t size) { return unique_all(x, size).values; }

UniqueCounts unique_counts(In x, std::int64_t size) {
  Unique all = unique_all(x, size);
  return {all.values, all.counts};
}

UniqueInverse unique_inverse(In x, std::int64_t size) {
  Unique all = unique_all(x, size);
  return {all.values, all.inverse_indices};
}

}  // namespace meshard
