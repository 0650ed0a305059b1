#include "meshard/ops/composite/logaddexp.h"

#include "meshard/graph/record.h"
#include "meshard/ops/add.h"
#include "meshard/ops/astype.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/composite/internal/float_computation.h"
#include "meshard/ops/composite/special_values.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/exp.h"
#include "meshard/ops/log1p.h"
#include "meshard/ops/logical.h"
#include "meshard/ops/negative.h"
#include "meshard/ops/subtract.h"
#include "meshard/ops/where.h"

namespace meshard {
using namespace internal;
namespace {

// The op's name for the messages of common_dtype.
constexpr OpDef kLogaddexp{.name = "logaddexp"};

}  // namespace

Tensor logaddexp(In a, In b) {
  SourceScope line(a.where);
  check_real("logaddexp", a);
  check_real("logaddexp", b);
  DType common = element_wise::common_dtype(kLogaddexp, a, b);
  // Integers are converted first, because their differences could wrap around.
  bool integral = is_integer(common) || common == DType::bool_;
  auto operand = [&](const In& number) {
    DType dtype = integral ? kDefaultFloat : common;
    return number.tensor ? astype(number, dtype) : element_wise::to_tensor(number, dtype);
  };
  Tensor x = operand(a), y = operand(b), difference = subtract(x, y);
  // The difference of equal infinities is NaN. Their sum is the correct result, and a distance of 0
  // keeps NaN out of the derivative. (NaN operands take the other path, so that their derivative is
  // NaN.)
  Tensor undefined = logical_and(equal(x, y), isinf(x));
  // Uses a selection instead of maximum and abs: for equal operands, any choice gives the correct
  // derivatives of the whole, but maximum and abs would not.
  Tensor x_is_larger = greater_equal(x, y);
  Tensor larger = where(x_is_larger, x, y);
  Tensor distance = where(undefined, 0, where(x_is_larger, difference, negative(difference)));
  Tensor far = add(larger, log1p(exp(negative(distance))));
  return where(undefined, add(x, y), far);
}

}  // namespace meshard
