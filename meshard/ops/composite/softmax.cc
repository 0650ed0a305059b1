#include "meshard/ops/composite/softmax.h"

#include "meshard/ops/add.h"
#include "meshard/ops/astype.h"
#include "meshard/ops/composite/float_computation.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/exp.h"
#include "meshard/ops/isfinite.h"
#include "meshard/ops/log.h"
#include "meshard/ops/operand.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/reshape.h"
#include "meshard/ops/stop_gradient.h"
#include "meshard/ops/subtract.h"
#include "meshard/ops/where.h"

namespace meshard {
namespace {

Tensor as_float(std::string_view name, const In& x) {
  Tensor operand = operand_tensor(name, x);
  return astype(operand, float_result_dtype(operand.dtype()));
}

// x less its largest element. The results do not depend on what is taken away, nor do derivatives.
Tensor shifted(const Tensor& x, std::int64_t dimension) {
  if (x.shape().size() == 0) return x;
  return subtract(x, stop_gradient(max(x, dimension, true)));
}

}  // namespace

Tensor softmax(In x, std::int64_t dimension) {
  SourceScope line(x.where);
  Tensor powers = exp(shifted(as_float("softmax", x), dimension));
  return divide(powers, sum(powers, dimension, true));
}

Tensor log_softmax(In x, std::int64_t dimension) {
  SourceScope line(x.where);
  Tensor centred = shifted(as_float("log_softmax", x), dimension);
  return subtract(centred, log(sum(exp(centred), dimension, true)));
}

Tensor logsumexp(In x, DimensionList dimensions, bool keepdims) {
  SourceScope line(x.where);
  Tensor operand = as_float("logsumexp", x);
  Dimensions along =
      dimensions.resolve(operand.shape().rank(), "logsumexp", effective_source(x.where));
  Tensor result;
  if (operand.shape().size() == 0) {
    result = log(sum(exp(operand), along, true));
  } else {
    Tensor largest = stop_gradient(max(operand, along, true));
    // Of infinities only: exp(x) says it all, and inf - inf would be NaN.
    largest = where(isfinite(largest), largest, 0);
    result = add(log(sum(exp(subtract(operand, largest)), along, true)), largest);
  }
  if (keepdims) return result;
  Dimensions sizes;
  for (int d = 0, next = 0; d < operand.shape().rank(); ++d) {
    bool gone = next < static_cast<int>(along.size()) && along[static_cast<std::size_t>(next)] == d;
    if (gone)
      ++next;
    else
      sizes.push_back(operand.shape()[d]);
  }
  return reshape(result, std::move(sizes));
}

}  // namespace meshard
