// Tested in meshard/ops/division_test.cc.
#include "meshard/ops/internal/element_writer.h"

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

}  // namespace meshard::internal
