#include "meshard/ops/cast.h"

#include <algorithm>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"

namespace meshard {
namespace {

struct AstypeAttributes {
  DType dtype = DType::f32;
  MESHARD_FIELDS(dtype)
};

}  // namespace

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

namespace {

void infer_bitcast(const OpCall& call, ResultTypes& results) {
  const TensorType& operand = call.operand(0);
  DType to = call.as<BitcastConvertAttributes>().dtype;
  if (operand.dtype == DType::bool_ || to == DType::bool_)
    call.fail("takes numbers, not ", operand.dtype, " to ", to, ": use astype");
  std::size_t from_bytes = size_in_bytes(operand.dtype), to_bytes = size_in_bytes(to);
  Dimensions sizes = operand.shape.sizes();
  if (from_bytes > to_bytes) {
    sizes.push_back(static_cast<std::int64_t>(from_bytes / to_bytes));
  } else if (from_bytes < to_bytes) {
    auto parts = static_cast<std::int64_t>(to_bytes / from_bytes);
    if (sizes.empty() || sizes.back() != parts)
      call.fail("an element of ", to, " consists of ", parts, " elements of ", operand.dtype,
                ", but the last dimension of ", operand, " has a different size");
    sizes.pop_back();
  }
  results.push_back({to, Shape(std::move(sizes))});
}

// The dimension that holds the parts of an element must not be split.
ShardingRule bitcast_rule(const OpCall& call) {
  const Shape &in = call.operand(0).shape, &out = call.result().shape;
  ShardingRuleBuilder builder;
  InlineVector<int, 6> operand, result;
  for (int d = 0; d < std::min(in.rank(), out.rank()); ++d) {
    operand.push_back(builder.factor(in[d]));
    result.push_back(operand.back());
  }
  const Shape& longer = in.rank() > out.rank() ? in : out;
  if (in.rank() != out.rank())
    (in.rank() > out.rank() ? operand : result)
        .push_back(builder.factor(longer[longer.rank() - 1], FactorKind::kNeedReplication));
  return builder.operand(one_factor_each(operand)).result(one_factor_each(result)).build();
}

}  // namespace

extern constinit const OpDef bitcast_convert_op = {
    .name = "bitcast_convert",
    .operands = "x",
    .doc =
        "The bits of the elements, reinterpreted as another dtype; the parts of an element form "
        "the last dimension.",
    .example = "bitcast_convert(x, DType::u32)",
    .infer = infer_bitcast,
    .sharding_rule = bitcast_rule,
    .emit = [](const OpCall&, OpEmission& out) { out.op("stablehlo.bitcast_convert").done(); },
    .read = {.mnemonic = "stablehlo.bitcast_convert",
             .attributes =
                 [](const OpText& text) {
                   return make_attributes(BitcastConvertAttributes{text.results[0].dtype});
                 },
             .dtypes_as_written = true},
    .vjp = element_wise::zero_vjp,
    .batch = element_wise::batch,
    .parse_attributes = parse_attributes<BitcastConvertAttributes>,
};

Tensor bitcast_convert(In x, DType dtype) {
  Tensor operand = operand_tensor(bitcast_convert_op, x);
  return record(bitcast_convert_op, make_attributes(BitcastConvertAttributes{dtype}), {&operand},
                x.where);
}

Tensor Tensor::astype(DType dtype, SourceLocation where) const {
  return meshard::astype(In(*this, where), dtype);
}

}  // namespace meshard
