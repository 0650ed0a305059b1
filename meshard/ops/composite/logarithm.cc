#include "meshard/ops/composite/logarithm.h"

#include <numbers>

#include "meshard/graph/record.h"
#include "meshard/ops/astype.h"
#include "meshard/ops/complex.h"
#include "meshard/ops/composite/internal/float_computation.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/exp.h"
#include "meshard/ops/imag.h"
#include "meshard/ops/log.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/real.h"

namespace meshard {
using namespace internal;
namespace {

Tensor scaled_log(std::string_view name, const In& x, double factor) {
  SourceScope line(x.where);
  Tensor natural = log(operand_tensor(name, x));
  auto scaled = [&](const Tensor& part) {
    return multiply(part, element_wise::literal(factor, part));
  };
  // Scales the parts separately: the complex product of (-inf, 0) and (factor, 0) contains NaN.
  return is_complex(natural.dtype()) ? complex(scaled(real(natural)), scaled(imag(natural)))
                                     : scaled(natural);
}

}  // namespace

Tensor exp2(In x) {
  SourceScope line(x.where);
  Tensor operand = floating_operand("exp2", x);
  return exp(multiply(operand, element_wise::literal(std::numbers::ln2, operand)));
}

Tensor log2(In x) { return scaled_log("log2", x, std::numbers::log2e); }
Tensor log10(In x) { return scaled_log("log10", x, std::numbers::log10e); }

}  // namespace meshard
