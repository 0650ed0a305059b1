// Tested in meshard/ops/reduction_test.cc.
#include "meshard/ops/internal/ordered_bits.h"

#include <limits>

namespace meshard::internal {
namespace {

using stablehlo::Typed;
using SsaBits = stablehlo::Value;

// Writes conversions between floats of one dtype and integers in the same order.
class BitOrder {
 public:
  BitOrder(OpEmission& out, DType dtype)
      : out_(out),
        dtype_(dtype),
        wide_(dtype == DType::f64 ? DType::f64 : DType::f32),
        bits_(dtype == DType::f64 ? DType::i64 : DType::i32) {}

  DType bits() const { return bits_; }

  SsaBits to_bits(SsaBits x, const Shape& shape, NanEnd nan) {
    TensorType narrow{dtype_, shape}, wide{wide_, shape}, bits{bits_, shape};
    TensorType bools{DType::bool_, shape};
    if (dtype_ != wide_) x = unary("stablehlo.convert", {x, narrow}, wide);
    SsaBits ordered = flipped(unary("stablehlo.bitcast_convert", {x, wide}, bits), bits);
    SsaBits end = end_of_integers(nan, bits), is_nan = out_.writer.temporary();
    out_.writer.op("stablehlo.compare", {{is_nan, bools}}, {{x, wide}, {x, wide}}, out_.location)
        .enumeration("comparison_direction", "comparison_direction", "NE")
        .done();
    SsaBits result = out_.writer.temporary();
    out_.writer
        .op("stablehlo.select", {{result, bits}}, {{is_nan, bools}, {end, bits}, {ordered, bits}},
            out_.location)
        .done();
    return result;
  }

  // The extreme integers, with all bits or all but the sign set, become NaN.
  void to_floats(Typed result, SsaBits ordered) {
    const Shape& shape = result.type->shape;
    TensorType wide{wide_, shape}, bits{bits_, shape};
    Typed patterns(flipped(ordered, bits), bits);
    if (dtype_ == wide_)
      return out_.writer.op("stablehlo.bitcast_convert", {result}, {patterns}, out_.location)
          .done();
    SsaBits floats = unary("stablehlo.bitcast_convert", patterns, wide);
    out_.writer.op("stablehlo.convert", {result}, {{floats, wide}}, out_.location).done();
  }

 private:
  SsaBits unary(std::string_view mnemonic, Typed x, const TensorType& type) {
    SsaBits result = out_.writer.temporary();
    out_.writer.op(mnemonic, {{result, type}}, {x}, out_.location).done();
    return result;
  }

  // Inverts all bits except the sign of negative numbers, so that integers are ordered as the
  // floats are. It is its own inverse.
  SsaBits flipped(SsaBits x, const TensorType& type) {
    stablehlo::ModuleWriter& w = out_.writer;
    SsaBits rest = end_of_integers(NanEnd::kGreatest, type), width = w.temporary();
    SsaBits sign = w.temporary(), turned = w.temporary(), result = w.temporary();
    w.splat(width, type, bits_ == DType::i64 ? 63 : 31, out_.location);
    w.elementwise("stablehlo.shift_right_arithmetic", sign, {x, width}, type, out_.location);
    w.elementwise("stablehlo.and", turned, {sign, rest}, type, out_.location);
    w.elementwise("stablehlo.xor", result, {x, turned}, type, out_.location);
    return result;
  }

  // A tensor of the largest (smallest) integer.
  SsaBits end_of_integers(NanEnd end, const TensorType& type) {
    auto scalar = [end]<class T>(std::numeric_limits<T> limits) {
      return HostArray::scalar<T>(end == NanEnd::kGreatest ? limits.max() : limits.min());
    };
    TensorType one{bits_, {}};
    SsaBits number = out_.writer.temporary(), result = out_.writer.temporary();
    out_.writer.constant(number, bits_ == DType::i64 ? scalar(std::numeric_limits<std::int64_t>())
                                                     : scalar(std::numeric_limits<std::int32_t>()));
    out_.writer.op("stablehlo.broadcast_in_dim", {{result, type}}, {{number, one}}, out_.location)
        .i64_array("broadcast_dimensions", Dimensions{})
        .done();
    return result;
  }

  OpEmission& out_;
  DType dtype_, wide_, bits_;
};

}  // namespace

bool loses_nans(const OpCall& call, const OpEmission& out) {
  return is_floating(call.result().dtype) && out.quirks.has(Quirk::kUnorderedNans);
}

void emit_in_order_of_bits(const OpCall& call, OpEmission& out, NanEnd nan,
                           void (*emit)(const OpCall& call, OpEmission& out)) {
  BitOrder order(out, call.result().dtype);
  // The types must outlive the call of `emit`, at stable addresses.
  InlineVector<TensorType, 4> types;
  InlineVector<Typed, 4> operands;
  OpCall inner = call;
  for (const Typed& operand : out.operands) types.push_back(*operand.type);
  for (std::size_t i = 0; i < types.size(); ++i) {
    stablehlo::Value value = out.operands[i].value;
    if (types[i].dtype == call.result().dtype) {
      value = order.to_bits(value, types[i].shape, nan);
      types[i].dtype = order.bits();
    }
    inner.operands[i] = &types[i];
    operands.push_back(Typed(value, types[i]));
  }
  TensorType type{order.bits(), call.result().shape};
  Typed result(out.writer.temporary(), type);
  inner.results[0] = &type;
  OpEmission within = out;
  within.operands = std::span<const Typed>(operands.data(), operands.size());
  within.results = std::span<const Typed>(&result, 1);
  emit(inner, within);
  order.to_floats(out.results[0], result.value);
}

}  // namespace meshard::internal
