#include "meshard/ops/complex.h"

#include <array>

#include "meshard/ops/arithmetic.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/operand.h"

namespace meshard {

extern constinit const OpDef complex_op = element_wise::define({
    .name = "complex",
    .operands = "real, imag",
    .example = "complex(x, y)",
    .infer =
        [](const OpCall& call, ResultTypes& results) {
          const TensorType& part = call.operand(0);
          if (call.operand(1) != part)
            call.fail("operand types differ: ", part, " and ", call.operand(1));
          if (part.dtype != DType::f32 && part.dtype != DType::f64)
            call.fail("takes f32 or f64, not ", part);
          results.push_back({complex_dtype(part.dtype), part.shape});
        },
    .mnemonic = "stablehlo.complex",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          if (call.needs(0)) out[0] = real(call.cotangents[0]);
          if (call.needs(1)) out[1] = negative(imag(call.cotangents[0]));
        },
});

Tensor complex(In real, In imag) {
  SourceScope line(real.where);
  SourceLocation where = effective_source(real.where);
  DType dtype = element_wise::common_dtype(complex_op, real, imag);
  if (is_complex(dtype))
    throw_invalid(where, "[complex] the parts must be real numbers, not ", dtype);
  dtype = dtype == DType::f64 ? DType::f64 : DType::f32;
  std::array parts{element_wise::to_tensor(real, dtype), element_wise::to_tensor(imag, dtype)};
  element_wise::broadcast_together(complex_op, parts, where);
  return record(complex_op, nullptr, {&parts[0], &parts[1]}, where);
}

Tensor conj(In x) {
  SourceScope line(x.where);
  Tensor operand = operand_tensor("conj", x);
  if (!is_complex(operand.dtype())) return operand;
  return complex(real(operand), negative(imag(operand)));
}

namespace {

void infer_part(const OpCall& call, ResultTypes& results) {
  const TensorType& operand = call.operand(0);
  if (!is_complex(operand.dtype)) call.fail("takes complex numbers, not ", operand);
  results.push_back({real_dtype(operand.dtype), operand.shape});
}

// The real or the imaginary part.
constexpr OpDef part(std::string_view name, std::string_view example, std::string_view mnemonic,
                     void (*vjp)(const VjpCall&, std::span<Tensor>)) {
  return element_wise::define({
      .name = name,
      .operands = "x",
      .example = example,
      .infer = infer_part,
      .mnemonic = mnemonic,
      .vjp = vjp,
  });
}

}  // namespace

extern constinit const OpDef real_op = part("real", "real(complex(x, y))", "stablehlo.real",
                                            [](const VjpCall& call, std::span<Tensor> out) {
                                              // Re(g (dx + i dy)) = g dx
                                              out[0] = complex(call.cotangents[0], 0);
                                            });
extern constinit const OpDef imag_op = part("imag", "imag(complex(x, y))", "stablehlo.imag",
                                            [](const VjpCall& call, std::span<Tensor> out) {
                                              // Re(-i g (dx + i dy)) = g dy
                                              out[0] = complex(0, negative(call.cotangents[0]));
                                            });

Tensor real(In x) {
  SourceScope line(x.where);
  Tensor operand = operand_tensor(real_op, x);
  if (!is_complex(operand.dtype())) return operand;
  return record(real_op, nullptr, {&operand}, x.where);
}

Tensor imag(In x) {
  SourceScope line(x.where);
  Tensor operand = operand_tensor(imag_op, x);
  if (!is_complex(operand.dtype())) return filled(operand.type(), 0);
  return record(imag_op, nullptr, {&operand}, x.where);
}

}  // namespace meshard
