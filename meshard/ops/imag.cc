#include "meshard/ops/imag.h"

#include "meshard/ops/complex.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/negative.h"
#include "meshard/ops/real.h"

namespace meshard {

extern constinit const OpDef imag_op = element_wise::define({
    .name = "imag",
    .operands = "x",
    .example = "imag(complex(x, y))",
    .infer =
        [](const OpCall& call, ResultTypes& results) {
          const TensorType& operand = call.operand(0);
          if (!is_complex(operand.dtype)) call.fail("takes complex numbers, not ", operand);
          results.push_back({real_dtype(operand.dtype), operand.shape});
        },
    .mnemonic = "stablehlo.imag",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          // Re(-i g (dx + i dy)) = g dy
          out[0] = complex(0, negative(call.cotangents[0]));
        },
    .samples =
        [](SampleSource& source) {
          auto of_square = [](std::span<const Tensor> x) {
            Tensor z = complex(x[0], x[1]);
            return imag(multiply(z, z));
          };
          auto plain = [](std::span<const Tensor> x) { return imag(x[0]); };
          DType f64 = DType::f64;
          return std::vector<OpSample>{
              {"of a square",
               {source.uniform(f64, {4, 8}), source.uniform(f64, {4, 8})},
               of_square},
              {"c64", {source.uniform(DType::c64, {8})}, plain},
              {"c128", {source.uniform(DType::c128, {4, 2, 8})}, plain, false},
          };
        },
});

Tensor imag(In x) {
  SourceScope line(x.where);
  Tensor operand = operand_tensor(imag_op, x);
  if (!is_complex(operand.dtype())) return filled(operand.type(), 0);
  return record(imag_op, nullptr, {&operand}, x.where);
}

}  // namespace meshard
