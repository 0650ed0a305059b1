#include "meshard/autodiff/grad.h"

#include "meshard/graph/annotation.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/op_def.h"
#include "meshard/graph/sharding_mark.h"
#include "meshard/ops/composite/create.h"
#include "meshard/ops/reshape.h"
#include "meshard/ops/sharding_constraint.h"

namespace meshard {
extern const OpDef reshape_op;
}

namespace meshard::internal {

Tensor differentiation_input(const Tensor& argument, const std::string& path,
                             SourceLocation where) {
  const TensorType& type = argument.type(where);
  if (!is_inexact(type.dtype))
    throw_invalid(where.known() ? where : argument.where(), "[grad] ", path, " is ", type,
                  ": only floating-point tensors have gradients. Pass it as another argument");
  // Another leaf on the same storage; for a recorded value, a reshape to its own shape, which the
  // compiler drops. So too inside another differentiated function, whose input the value may be: a
  // leaf would cut its path.
  Storage* storage = argument.value().storage();
  if (storage && recorder().keep_operands <= 1) {
    Tensor leaf = make_array(type, StoragePtr(storage), argument.where());
    // Where the compiler put a value that did not say how it lies is no part of it.
    if (!explicit_sharding(argument.value())) leaf.value().node()->annotate(nullptr);
    return leaf;
  }
  InheritSource line(argument.where());
  Tensor input = record(reshape_op, make_attributes(ReshapeAttributes{type.shape}), {&argument},
                        argument.where());
  std::optional<Sharding> sharding = argument.sharding();
  return sharding ? sharding_constraint(input, *sharding) : input;
}

Tensor loss_seed(const Tensor& loss, SourceLocation where) {
  const TensorType& type = loss.type(where);
  if (!is_floating(type.dtype) || type.shape.rank() != 0)
    throw_invalid(loss.where(), "[grad] the function's result must be a float of rank 0, not ",
                  type, "; reduce it with mean or sum");
  InheritSource line(loss.where());
  return ones(type.shape, type.dtype);
}

}  // namespace meshard::internal
