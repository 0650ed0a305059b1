#include "meshard/ops/sign.h"

#include "meshard/graph/record.h"
#include "meshard/ops/abs.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/internal/element_writer.h"
#include "meshard/ops/minimum.h"
#include "meshard/ops/where.h"

namespace meshard {
using namespace internal;

extern constinit const OpDef sign_op = element_wise::define({
    .name = "sign",
    .operands = "x",
    .example = "sign(x)",
    .domain = DTypeDomain::kSigned,
    .mnemonic = "stablehlo.sign",
    .emit =
        [](const OpCall& call, OpEmission& out) {
          if (!is_floating(call.result().dtype)) return out.element_wise("stablehlo.sign");
          // StableHLO's sign of -0 is -0.
          ElementWriter w(call.result(), out);
          OpEmission::Typed zero = w.number(0);
          OpEmission::Typed sign = w.unary("stablehlo.sign", out.operands[0]);
          OpEmission::Typed is_zero = w.compare("EQ", out.operands[0], zero);
          w.finish_with_select(is_zero, zero, sign);
        },
    .vjp = element_wise::zero_vjp,
    .samples =
        [](SampleSource& source) {
          std::vector<OpSample> samples = element_wise::unary_samples(source, sign);
          samples.push_back({"i32",
                             {source.uniform(DType::i32, {4, 8}, -20, 20)},
                             [](std::span<const Tensor> x) { return sign(x[0]); },
                             false});
          return samples;
        },
});

Tensor sign(In x) {
  if (x.tensor && is_complex(x.tensor->dtype())) {
    SourceScope line(x.where);
    Tensor size = abs(x), is_zero = equal(size, 0);
    return where(is_zero, 0, divide(x, where(is_zero, 1, size)));
  }
  // StableHLO's sign does not support unsigned integers.
  if (is_unsigned_integer(element_wise::dtype_of_operand(sign_op, x))) return minimum(x, 1);
  return element_wise::unary(sign_op, x);
}

}  // namespace meshard
