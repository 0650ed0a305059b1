#include "meshard/ops/rounding.h"

#include "meshard/ops/definition/element_wise.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/ops/internal/element_writer.h"

namespace meshard {
namespace {

Tensor rounded(const OpDef& op, const In& x) {
  if (x.tensor && is_integer(element_wise::dtype_of_operand(op, x))) return *x.tensor;
  return element_wise::unary(op, x);
}

// Rounds up below zero and down elsewhere.
void emit_trunc(const OpCall& call, OpEmission& out) {
  internal::ElementWriter w(call.result(), out);
  OpEmission::Typed x = out.operands[0], zero = w.number(0);
  OpEmission::Typed below = w.compare("LT", x, zero);
  OpEmission::Typed up = w.unary("stablehlo.ceil", x), down = w.unary("stablehlo.floor", x);
  w.finish_with_select(below, up, down);
}

constexpr OpDef rounding(std::string_view name, std::string_view doc, std::string_view example,
                         std::string_view mnemonic,
                         void (*emit)(const OpCall&, OpEmission&) = nullptr) {
  return element_wise::define({
      .name = name,
      .operands = "x",
      .doc = doc,
      .example = example,
      .domain = DTypeDomain::kFloat,
      .mnemonic = mnemonic,
      .emit = emit,
      .vjp = element_wise::zero_vjp,
  });
}

}  // namespace

extern constinit const OpDef floor_op =
    rounding("floor", "The largest integer that is less than or equal to each element.", "floor(x)",
             "stablehlo.floor");
extern constinit const OpDef ceil_op =
    rounding("ceil", "The smallest integer that is greater than or equal to each element.",
             "ceil(x)", "stablehlo.ceil");
extern constinit const OpDef round_op =
    rounding("round", "The integer nearest to each element; ties go to the even one.", "round(x)",
             "stablehlo.round_nearest_even");
extern constinit const OpDef round_nearest_afz_op =
    rounding("round_nearest_afz", "The integer nearest to each element; ties go away from zero.",
             "round_nearest_afz(x)", "stablehlo.round_nearest_afz");
extern constinit const OpDef trunc_op =
    rounding("trunc", "Each element without its fractional part.", "trunc(x)", {}, emit_trunc);

Tensor floor(In x) { return rounded(floor_op, x); }
Tensor ceil(In x) { return rounded(ceil_op, x); }
Tensor round(In x) { return rounded(round_op, x); }
Tensor round_nearest_afz(In x) { return rounded(round_nearest_afz_op, x); }
Tensor trunc(In x) { return rounded(trunc_op, x); }

namespace {

struct ReducePrecisionAttributes {
  std::int64_t exponent_bits = 8, mantissa_bits = 23;
  MESHARD_FIELDS(exponent_bits, mantissa_bits)
};

void infer_reduce_precision(const OpCall& call, ResultTypes& results) {
  const auto& [exponent, mantissa] = call.as<ReducePrecisionAttributes>();
  if (exponent < 1 || mantissa < 0 || exponent > 64 || mantissa > 64)
    call.fail("invalid float format: ", exponent, " exponent bits and ", mantissa,
              " mantissa bits");
  element_wise::infer(call, results);
}

}  // namespace

extern constinit const OpDef reduce_precision_op = element_wise::define({
    .name = "reduce_precision",
    .operands = "x",
    .example = "reduce_precision(x, 5, 10)",
    .domain = DTypeDomain::kFloat,
    .infer = infer_reduce_precision,
    .mnemonic = "stablehlo.reduce_precision",
    .emit =
        [](const OpCall& call, OpEmission& out) {
          const auto& [exponent, mantissa] = call.as<ReducePrecisionAttributes>();
          out.op("stablehlo.reduce_precision")
              .i32("exponent_bits", static_cast<std::int32_t>(exponent))
              .i32("mantissa_bits", static_cast<std::int32_t>(mantissa))
              .done();
        },
    .vjp =
        [](const VjpCall& call, std::span<Tensor> out) {
          const auto& [exponent, mantissa] = call.as<ReducePrecisionAttributes>();
          out[0] = reduce_precision(call.cotangents[0], exponent, mantissa);
        },
    .parse_attributes = parse_attributes<ReducePrecisionAttributes>,
});

Tensor reduce_precision(In x, std::int64_t exponent_bits, std::int64_t mantissa_bits) {
  DType dtype = element_wise::enter_domain(
      reduce_precision_op, element_wise::dtype_of_operand(reduce_precision_op, x), x.where);
  Tensor operand = element_wise::to_tensor(x, dtype);
  return record(reduce_precision_op,
                make_attributes(ReducePrecisionAttributes{exponent_bits, mantissa_bits}),
                {&operand}, x.where);
}

extern constinit const OpDef nextafter_op = element_wise::define({
    .name = "nextafter",
    .operands = "a, b",
    .example = "nextafter(x, y)",
    .domain = DTypeDomain::kFloat,
    .mnemonic = "chlo.next_after",
    .vjp = kNotDifferentiable,
});

Tensor nextafter(In a, In b) { return element_wise::binary(nextafter_op, a, b); }

}  // namespace meshard
