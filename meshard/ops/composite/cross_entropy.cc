#include "meshard/ops/composite/cross_entropy.h"

#include "meshard/ops/comparison.h"
#include "meshard/ops/composite/float_computation.h"
#include "meshard/ops/composite/rearrange.h"
#include "meshard/ops/composite/softmax.h"
#include "meshard/ops/composite/statistics.h"
#include "meshard/ops/exp.h"
#include "meshard/ops/iota.h"
#include "meshard/ops/log.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/negative.h"
#include "meshard/ops/operand.h"
#include "meshard/ops/reduction.h"
#include "meshard/ops/stop_gradient.h"
#include "meshard/ops/subtract.h"
#include "meshard/ops/where.h"

namespace meshard {

Tensor cross_entropy(In logits, In targets, std::int64_t dimension) {
  SourceScope line(logits.where);
  SourceLocation place = effective_source(logits.where);
  Tensor x = for_computation(operand_tensor("cross_entropy", logits));
  Tensor wanted = operand_tensor("cross_entropy", targets);
  int along = normalise_dimension(dimension, x.shape().rank(), "cross_entropy", place);
  if (is_floating(wanted.dtype())) {
    if (wanted.shape() != x.shape())
      throw_invalid(place, "[cross_entropy] probabilities ", wanted.type(),
                    " have not the shape of logits ", x.type());
    Tensor logs = log_softmax(x, along);
    return negative(mean(sum(multiply(astype(wanted, x.dtype()), logs), along)));
  }
  Dimensions samples = x.shape().sizes();
  samples.erase(samples.begin() + along);
  if (!is_integer(wanted.dtype()) || wanted.shape() != Shape(samples))
    throw_invalid(place, "[cross_entropy] targets ", wanted.type(),
                  " are not class numbers of shape ", Shape(samples), ", logits ", x.type(),
                  " without dimension ", along);
  Tensor centred = subtract(x, stop_gradient(max(x, along, true)));
  // A comparison and a sum in place of a gather: both run on shards of the classes as they are.
  // Narrow integers could not number all classes.
  if (size_in_bytes(wanted.dtype()) < 4) wanted = astype(wanted, DType::i32);
  Tensor classes = iota(wanted.dtype(), x.shape(), along);
  Tensor chosen = equal(classes, expand_dims(wanted, along));
  Tensor at_target = sum(where(chosen, centred, 0), along);
  return mean(subtract(log(sum(exp(centred), along)), at_target));
}

}  // namespace meshard
