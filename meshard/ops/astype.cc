#include "meshard/ops/astype.h"

#include "meshard/ops/comparison.h"
#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/weak_number.h"
#include "meshard/ops/real.h"

namespace meshard {

extern constinit const OpDef astype_op = element_wise::define({
    .name = "astype",
    .operands = "x",
    .example = "astype(x, DType::i32)",
    .infer =
        [](const OpCall& call, ResultTypes& results) {
          DType dtype = call.as<AstypeAttributes>().dtype;
          if (is_complex(call.operand(0).dtype) && !is_complex(dtype))
            call.fail("complex numbers cannot be converted to ", dtype,
                      ": use real, imag or abs first");
          results.push_back({dtype, call.operand(0).shape});
        },
    .mnemonic = "stablehlo.convert",
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          out[0] = astype(call.cotangents[0], call.operands[0].dtype());
        },
    .samples =
        [](SampleSource& source) {
          auto to = [](DType dtype) {
            return [dtype](std::span<const Tensor> x) { return astype(x[0], dtype); };
          };
          return std::vector<OpSample>{
              {"f32 to bf16", {source.uniform(DType::f32, {4, 8})}, to(DType::bf16), false},
              {"f64 to f32", {source.uniform(DType::f64, {4, 8})}, to(DType::f32), false},
              {"f32 to f64", {source.uniform(DType::f32, {4, 8})}, to(DType::f64), false},
              {"f32 to i32", {source.uniform(DType::f32, {4, 8}, -50, 50)}, to(DType::i32), false},
              {"i32 to f32", {source.uniform(DType::i32, {4, 8}, -50, 50)}, to(DType::f32), false},
              {"i32 to bool", {source.uniform(DType::i32, {4, 8}, -1, 1)}, to(DType::bool_), false},
              {"bool to f32", {source.uniform(DType::bool_, {4, 8}, 0, 1)}, to(DType::f32), false},
              {"f64 to c64", {source.uniform(DType::f64, {4, 8})}, to(DType::c64), false},
              {"c64 to c128", {source.uniform(DType::c64, {4, 8})}, to(DType::c128), false},
              {"f64 to f32 and back",
               {source.uniform(DType::f64, {4})},
               [](std::span<const Tensor> x) {
                 return astype(astype(x[0], DType::f32), DType::f64);
               },
               false},
          };
        },
    .parse_attributes = parse_attributes<AstypeAttributes>,
});

Tensor astype(In x, DType dtype) {
  if (!x.tensor) return element_wise::to_tensor(x, dtype);
  DType from = x.tensor->type(effective_source(x.where)).dtype;
  if (from == dtype) return *x.tensor;
  if (Tensor wide = wide_number(x); wide.defined()) {
    check_holds_large(x, dtype);
    return astype(In(wide, x.where), dtype);
  }
  if (is_complex(from) && dtype == DType::bool_) return not_equal(x, 0);
  if (is_complex(from) && !is_complex(dtype)) {
    SourceScope line(x.where);
    return astype(real(x), dtype);
  }
  return record(astype_op, make_attributes(AstypeAttributes{dtype}), {x.tensor}, x.where);
}

}  // namespace meshard
