#include "meshard/ops/composite/activation.h"

#include <numbers>

#include "meshard/graph/record.h"
#include "meshard/ops/add.h"
#include "meshard/ops/astype.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/composite/logaddexp.h"
#include "meshard/ops/element_wise.h"
#include "meshard/ops/erf.h"
#include "meshard/ops/logistic.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/operand.h"
#include "meshard/ops/tanh.h"
#include "meshard/ops/where.h"

namespace meshard {

Tensor relu(In x) {
  SourceScope line(x.where);
  // Not maximum(x, 0), which halves the cotangent at zero.
  return where(less_equal(x, 0), 0, x);
}

Tensor gelu(In argument, GeluForm form) {
  SourceScope line(argument.where);
  Tensor x = operand_tensor("gelu", argument);
  if (!is_floating(x.dtype())) x = astype(x, kDefaultFloat);
  auto number = [&](double value) { return element_wise::literal(value, x); };
  Tensor half = multiply(x, number(0.5));
  if (form == GeluForm::kErf)
    return multiply(half, add(erf(multiply(x, number(std::numbers::sqrt2 / 2))), 1));
  Tensor cube = multiply(x, multiply(x, x));
  Tensor inner = add(x, multiply(cube, number(0.044715)));
  // sqrt(2 / pi)
  Tensor scaled = multiply(inner, number(std::numbers::sqrt2 * std::numbers::inv_sqrtpi));
  return multiply(half, add(tanh(scaled), 1));
}

Tensor silu(In x) {
  SourceScope line(x.where);
  return multiply(x, logistic(x));
}

Tensor softplus(In x) { return logaddexp(x, 0); }

}  // namespace meshard
