#include "meshard/ops/composite/linear.h"

#include "meshard/ops/add.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/dot_general.h"

namespace meshard {

Tensor linear(In x, In weight) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor input = operand_tensor("linear", x), matrix = operand_tensor("linear", weight);
  if (input.rank() == 0 || matrix.rank() != 2 || input.shape()[-1] != matrix.shape()[1])
    throw_invalid(where, "[linear] takes x [..., in] and a weight [out, in], not ", input.type(),
                  " and ", matrix.type());
  return dot_general(input, matrix, {.lhs_contracting = {-1}, .rhs_contracting = {1}});
}

Tensor linear(In x, In weight, In bias) {
  SourceScope line(x.where);
  SourceLocation where = effective_source(x.where);
  Tensor product = linear(x, weight), offset = operand_tensor("linear", bias);
  if (offset.rank() != 1 || offset.shape()[0] != product.shape()[-1])
    throw_invalid(where, "[linear] takes a bias [out] for out = ", product.shape()[-1], ", not ",
                  offset.type());
  return add(product, offset);
}

}  // namespace meshard
