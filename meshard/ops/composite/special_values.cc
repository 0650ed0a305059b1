#include "meshard/ops/composite/special_values.h"

#include "meshard/graph/record.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/isfinite.h"
#include "meshard/ops/logical.h"

namespace meshard {

Tensor isnan(In x) { return not_equal(x, x); }

// Neither finite nor NaN. Some 8-bit floats have no infinity with which to compare.
Tensor isinf(In x) {
  SourceScope line(x.where);
  return logical_not(logical_or(isfinite(x), isnan(x)));
}

}  // namespace meshard
