#include "meshard/ops/composite/one_hot.h"

#include "meshard/graph/record.h"
#include "meshard/ops/astype.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/iota.h"
#include "meshard/ops/reshape.h"

namespace meshard {

Tensor one_hot(In indices, std::int64_t classes, DType dtype) {
  SourceScope line(indices.where);
  Tensor index = operand_tensor("one_hot", indices);
  if (!is_integer(index.dtype()))
    throw_invalid(effective_source(indices.where), "[one_hot] indices must be integers, not ",
                  index.type());
  if (classes < 0)
    throw_invalid(effective_source(indices.where), "[one_hot] classes = ", classes, " is negative");
  // Compares in i32 or wider: iota in a narrow dtype could not represent every class.
  if (size_in_bytes(index.dtype()) < size_in_bytes(kDefaultInteger))
    index = astype(index, kDefaultInteger);
  Dimensions column = index.shape().sizes();
  column.push_back(1);
  Tensor row = iota(index.dtype(), Shape{classes}, 0);
  return astype(equal(reshape(index, column), row), dtype);
}

}  // namespace meshard
