#include "meshard/ops/abs.h"

#include "meshard/ops/comparison.h"
#include "meshard/ops/complex.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/divide.h"
#include "meshard/ops/multiply.h"
#include "meshard/ops/negative.h"
#include "meshard/ops/where.h"

namespace meshard {

extern constinit const OpDef abs_op = element_wise::define({
    .name = "abs",
    .operands = "x",
    .example = "abs(x)",
    .domain = DTypeDomain::kSigned,
    .infer =
        [](const OpCall& call, ResultTypes& results) {
          element_wise::check_operands(call, DTypeDomain::kSignedOrComplex);
          const TensorType& x = call.operand(0);
          results.push_back({real_dtype(x.dtype), x.shape});
        },
    .mnemonic = "stablehlo.abs",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const Tensor& x = call.operands[0];
          if (!is_complex(x.dtype())) {
            // The derivative is 1 at zero, as in JAX.
            const Tensor& given = call.cotangents[0];
            out[0] = where(greater_equal(x, 0), given, negative(given));
            return;
          }
          // d|z| = Re(conj(z) / |z| dz); zero at 0.
          const Tensor& size = call.results[0];
          Tensor divisor = where(equal(size, 0), 1, size);
          out[0] = multiply(conj(x), divide(call.cotangents[0], divisor));
        },
    .samples =
        [](SampleSource& source) {
          auto samples = element_wise::unary_samples(source, abs);
          samples.push_back({"complex",
                             {source.uniform(DType::f64, {8}), source.uniform(DType::f64, {8})},
                             [](std::span<const Tensor> x) { return abs(complex(x[0], x[1])); },
                             false});
          samples.push_back({"c64",
                             {source.uniform(DType::c64, {4, 8})},
                             [](std::span<const Tensor> x) { return abs(x[0]); }});
          return samples;
        },
});

Tensor abs(In x) {
  if (is_unsigned_integer(element_wise::dtype_of_operand(abs_op, x))) return *x.tensor;
  if (x.tensor && is_complex(x.tensor->dtype()))
    return record(abs_op, nullptr, {x.tensor}, x.where);
  return element_wise::unary(abs_op, x);
}

}  // namespace meshard
