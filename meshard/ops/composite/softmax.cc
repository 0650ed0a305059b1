#include "meshard/ops/composite/softmax.h"

#include "meshard/ops/arithmetic.h"
#include "meshard/ops/cast.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/complex.h"
#include "meshard/ops/composite/internal/float_computation.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/exponential.h"
#include "meshard/ops/identity.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/reshape.h"
#include "meshard/ops/selection.h"

namespace meshard {
using namespace internal;
namespace {

// The largest element; for complex numbers the largest real part, which determines the magnitude of
// the exponential. A NaN reaches the results by its exponential.
Tensor largest_of(const Tensor& x, const DimensionList& dimensions) {
  return stop_gradient(max_of_numbers(is_complex(x.dtype()) ? real(x) : x, dimensions, true));
}

// x minus its largest element. Neither the results nor their derivatives depend on the shift.
Tensor shifted(const Tensor& x, std::int64_t dimension) {
  if (x.shape().size() == 0) return x;
  return subtract(x, largest_of(x, dimension));
}

}  // namespace

Tensor softmax(In x, std::int64_t dimension) {
  SourceScope line(x.where);
  Tensor operand = floating_operand("softmax", x);
  Tensor powers = exp(shifted(for_computation(operand), dimension));
  return astype(divide(powers, sum(powers, dimension, true)), operand.dtype());
}

Tensor log_softmax(In x, std::int64_t dimension) {
  SourceScope line(x.where);
  Tensor operand = floating_operand("log_softmax", x);
  Tensor centered = shifted(for_computation(operand), dimension);
  return astype(subtract(centered, log(sum(exp(centered), dimension, true))), operand.dtype());
}

Tensor logsumexp(In x, DimensionList dimensions, bool keepdims) {
  SourceScope line(x.where);
  Tensor operand = floating_operand("logsumexp", x);
  Dimensions along =
      dimensions.resolve(operand.shape().rank(), "logsumexp", effective_source(x.where));
  Tensor result;
  if (operand.shape().size() == 0) {
    result = log(sum(exp(operand), along, true));
  } else {
    Tensor largest = largest_of(operand, along);
    // If all elements are infinite there is no shift, because inf - inf would be NaN.
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
