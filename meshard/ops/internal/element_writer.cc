// Tested in meshard/ops/division_test.cc.
#include "meshard/ops/internal/element_writer.h"

#include "meshard/ops/definition/operand.h"

namespace meshard::internal {

using Typed = OpEmission::Typed;

stablehlo::OpWriter& write_reducer(stablehlo::OpWriter& op, const OpEmission& out,
                                   std::string_view mnemonic, DType dtype) {
  TensorType scalar{dtype, {}};
  stablehlo::Value a = out.writer.block_argument(), b = out.writer.block_argument();
  return op.region({{a, scalar}, {b, scalar}}, [&] {
    stablehlo::Value both = out.writer.temporary();
    out.writer.elementwise(mnemonic, both, {a, b}, scalar);
    out.writer.terminate({{both, scalar}});
  });
}

Typed ElementWriter::made(std::string_view mnemonic, const TensorType& type,
                          std::initializer_list<Typed> operands) {
  Typed result = temporary(type);
  out_.writer.op(mnemonic, {result}, operands, out_.location).done();
  return result;
}

Typed ElementWriter::number(double value) {
  Typed result = temporary(parts_);
  out_.writer.splat(result.value, parts_, value, out_.location);
  return result;
}

Typed ElementWriter::unary(std::string_view mnemonic, Typed x) {
  if (mnemonic.starts_with("chlo.")) return made(mnemonic, *x.type, {x});
  Typed result = temporary(*x.type);
  out_.writer.elementwise(mnemonic, result.value, {x.value}, *x.type, out_.location);
  return result;
}

Typed ElementWriter::binary(std::string_view mnemonic, Typed a, Typed b) {
  Typed result = temporary(*a.type);
  out_.writer.elementwise(mnemonic, result.value, {a.value, b.value}, *a.type, out_.location);
  return result;
}

Typed ElementWriter::compare(std::string_view direction, Typed a, Typed b) {
  Typed result = temporary(bools_);
  out_.writer.op("stablehlo.compare", {result}, {a, b}, out_.location)
      .enumeration("comparison_direction", "comparison_direction", direction)
      .done();
  return result;
}

Typed ElementWriter::is_finite(Typed x) { return made("stablehlo.is_finite", bools_, {x}); }
Typed ElementWriter::real(Typed z) { return made("stablehlo.real", parts_, {z}); }
Typed ElementWriter::imag(Typed z) { return made("stablehlo.imag", parts_, {z}); }
Typed ElementWriter::abs_of_complex(Typed z) { return made("stablehlo.abs", parts_, {z}); }
Typed ElementWriter::complex(Typed re, Typed im) {
  return made("stablehlo.complex", type_, {re, im});
}

Typed ElementWriter::select(Typed condition, Typed when_true, Typed when_false) {
  return made("stablehlo.select", *when_true.type, {condition, when_true, when_false});
}

void ElementWriter::finish_with_select(Typed condition, Typed when_true, Typed when_false) {
  out_.writer
      .op("stablehlo.select", {out_.results[0]}, {condition, when_true, when_false}, out_.location)
      .done();
}

void ElementWriter::finish_with(std::string_view mnemonic, Typed a, Typed b) {
  out_.writer.elementwise(mnemonic, out_.results[0].value, {a.value, b.value}, type_,
                          out_.location);
}

void ElementWriter::finish_with_complex(Typed re, Typed im) {
  out_.writer.op("stablehlo.complex", {out_.results[0]}, {re, im}, out_.location).done();
}

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
    ElementWriter w(wide, out_);
    Typed number(x, narrow);
    if (dtype_ != wide_) number = w.made("stablehlo.convert", wide, {number});
    Typed ordered = flipped(w.made("stablehlo.bitcast_convert", bits, {number}));
    Typed end = end_of_integers(nan, bits), is_nan = w.compare("NE", number, number);
    return w.select(is_nan, end, ordered).value;
  }

  // The extreme integers, with all bits or all but the sign set, become NaN.
  void to_floats(Typed result, SsaBits ordered) {
    const Shape& shape = result.type->shape;
    TensorType wide{wide_, shape}, bits{bits_, shape};
    Typed patterns = flipped({ordered, bits});
    if (dtype_ == wide_)
      return out_.writer.op("stablehlo.bitcast_convert", {result}, {patterns}, out_.location)
          .done();
    Typed floats = ElementWriter(wide, out_).made("stablehlo.bitcast_convert", wide, {patterns});
    out_.writer.op("stablehlo.convert", {result}, {floats}, out_.location).done();
  }

 private:
  // Inverts all bits except the sign of negative numbers, so that integers are ordered as the
  // floats are. It is its own inverse.
  Typed flipped(Typed x) {
    ElementWriter w(*x.type, out_);
    Typed rest = end_of_integers(NanEnd::kGreatest, *x.type);
    Typed width = w.number(bits_ == DType::i64 ? 63 : 31);
    Typed sign = w.binary("stablehlo.shift_right_arithmetic", x, width);
    Typed turned = w.binary("stablehlo.and", sign, rest);
    return w.binary("stablehlo.xor", x, turned);
  }

  // A tensor of the largest (smallest) integer.
  Typed end_of_integers(NanEnd end, const TensorType& type) {
    TensorType one{bits_, {}};
    Typed number(out_.writer.temporary(), one), result(out_.writer.temporary(), type);
    out_.writer.constant(number.value,
                         end == NanEnd::kGreatest ? highest_of(bits_) : lowest_of(bits_));
    out_.writer.op("stablehlo.broadcast_in_dim", {result}, {number}, out_.location)
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
