#include "meshard/ops/composite/dropout.h"

#include "meshard/ops/arithmetic.h"
#include "meshard/ops/composite/create.h"
#include "meshard/ops/composite/internal/float_computation.h"
#include "meshard/ops/composite/random.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/selection.h"

namespace meshard {
using namespace internal;

Tensor dropout(In argument, double rate, In key) {
  SourceScope line(argument.where);
  SourceLocation place = effective_source(argument.where);
  if (!(rate >= 0 && rate <= 1))
    throw_invalid(place, "[dropout] rate = ", rate, " is outside 0 to 1");
  Tensor x = floating_operand("dropout", argument);
  if (rate == 0) return x;
  if (rate == 1) return zeros_like(x);
  // In f32 for every dtype of x: a narrow dtype would round the probability.
  Tensor kept = random::bernoulli(key, element_wise::literal(1 - rate, zeros({})), x.shape());
  return where(kept, divide(x, element_wise::literal(1 - rate, x)), zeros_like(x));
}

}  // namespace meshard
