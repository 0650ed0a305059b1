#include "meshard/ops/composite/logaddexp.h"

#include "meshard/graph/record.h"
#include "meshard/ops/abs.h"
#include "meshard/ops/add.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/composite/special_values.h"
#include "meshard/ops/exp.h"
#include "meshard/ops/log1p.h"
#include "meshard/ops/maximum.h"
#include "meshard/ops/negative.h"
#include "meshard/ops/subtract.h"
#include "meshard/ops/where.h"

namespace meshard {

Tensor logaddexp(In a, In b) {
  SourceScope line(a.where);
  Tensor difference = subtract(a, b);
  // Equal infinities have no difference: their sum is right, and 0 in its place keeps NaN out of
  // the derivative.
  Tensor undefined = isnan(difference);
  Tensor distance = abs(where(undefined, 0, difference));
  Tensor far = add(maximum(a, b), log1p(exp(negative(distance))));
  return where(undefined, add(a, b), far);
}

}  // namespace meshard
