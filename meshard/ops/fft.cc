#include "meshard/ops/fft.h"

#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"

namespace meshard {
namespace {

void infer_fft(const OpCall& call, ResultTypes& results) {
  const auto& [kind, lengths] = call.as<FftAttributes>();
  const TensorType& x = call.operand(0);
  bool takes_real = kind == FftKind::kRfft;
  if (takes_real ? x.dtype != DType::f32 && x.dtype != DType::f64 : !is_complex(x.dtype))
    call.fail(enum_name(kind),
              takes_real ? " takes f32 or f64, not " : " takes complex numbers, not ", x);
  std::size_t count = lengths.size();
  if (count < 1 || count > 3 || count > static_cast<std::size_t>(x.rank()))
    call.fail("transforms the last 1 to 3 dimensions, but ", count, " lengths are given for ", x);
  Dimensions sizes = x.shape.sizes();
  std::size_t first = sizes.size() - count;
  for (std::size_t i = 0; i < count; ++i) {
    bool last = i + 1 == count;
    std::int64_t expected = last && kind == FftKind::kIrfft ? lengths[i] / 2 + 1 : lengths[i];
    if (lengths[i] < 1 || sizes[first + i] != expected)
      call.fail("dimension ", first + i, " of ", x, " must have size ", expected, " for length ",
                lengths[i], ", 1 or more, of ", enum_name(kind));
    if (last && kind == FftKind::kRfft) sizes[first + i] = lengths[i] / 2 + 1;
    if (last && kind == FftKind::kIrfft) sizes[first + i] = lengths[i];
  }
  DType dtype = kind == FftKind::kRfft    ? complex_dtype(x.dtype)
                : kind == FftKind::kIrfft ? real_dtype(x.dtype)
                                          : x.dtype;
  results.push_back({dtype, Shape(std::move(sizes))});
}

template <FactorKind of_batch>
ShardingRule fft_rule(const OpCall& call) {
  const Shape &from = call.operand(0).shape, &to = call.result().shape;
  int batch = from.rank() - static_cast<int>(call.as<FftAttributes>().lengths.size());
  ShardingRuleBuilder builder;
  InlineVector<int, 6> in, out;
  for (int d = 0; d < from.rank(); ++d) {
    in.push_back(builder.factor(from[d], d < batch ? of_batch : FactorKind::kNeedReplication));
    out.push_back(from[d] == to[d] ? in.back()
                                   : builder.factor(to[d], FactorKind::kNeedReplication));
  }
  return builder.operand(one_factor_each(in)).result(one_factor_each(out)).build();
}

// Requests row-major layouts. The compiler would choose a layout that suits neighboring ops, such
// as a gather, but the CPU plugin supports fft only in row-major order.
void write_row_major(OpEmission& out, stablehlo::Value result, stablehlo::Value operand,
                     const TensorType& type) {
  std::string order = "[dense<[";
  for (int d = type.rank() - 1; d >= 0; --d) append(order, cat(d, d == 0 ? "" : ", "));
  append(order, cat("]> : tensor<", type.rank(), "xindex>]"));
  out.writer.custom_call("LayoutConstraint", {{result, type}}, {{operand, type}}, out.location)
      .raw("operand_layouts", order)
      .raw("result_layouts", order)
      .done();
}

void emit_fft(const OpCall& call, OpEmission& out) {
  constexpr std::string_view kNames[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
  const auto& [kind, lengths] = call.as<FftAttributes>();
  const TensorType &from = call.operand(0), &to = out.results[0].type[0];
  bool ordered = out.quirks.has(Quirk::kTransformLayouts);
  stablehlo::Value before = ordered ? out.writer.temporary() : out.operands[0].value;
  stablehlo::Value after = ordered ? out.writer.temporary() : out.results[0].value;
  if (ordered) write_row_major(out, before, out.operands[0].value, from);
  out.writer.op("stablehlo.fft", {{after, to}}, {{before, from}}, out.location)
      .enumeration("fft_type", "fft_type", kNames[static_cast<int>(kind)])
      .i64_array("fft_length", lengths)
      .done();
  if (ordered) write_row_major(out, out.results[0].value, after, to);
}

// The weights of irfft's operand: 1 for elements that occur once, 2 for those that also represent
// their conjugate, divided by the number of elements.
Tensor irfft_weights(DType dtype, const Dimensions& lengths) {
  std::int64_t n = lengths.back();
  double count = 1;
  for (std::int64_t length : lengths) count *= static_cast<double>(length);
  std::vector<double> weights(static_cast<std::size_t>(n / 2 + 1), 2 / count);
  weights[0] = 1 / count;
  if (n % 2 == 0) weights.back() = 1 / count;
  return constant(HostArray::from_vector(std::move(weights), {n / 2 + 1}).astype(dtype));
}

// `x` truncated or padded with zeros to `size` along a dimension.
Tensor resized(const Tensor& x, std::int64_t dimension, std::int64_t size) {
  std::int64_t present = x.shape()[dimension];
  return present == size ? x : pad_along(x, 0, dimension, 0, size - present);
}

// The transforms are linear, and the matrices of fft and ifft are symmetric: they are their own
// transposes.
void fft_vjp(const VjpCall& call, std::span<Tensor> out) {
  const auto& [kind, lengths] = call.as<FftAttributes>();
  const Tensor& cotangent = call.cotangents[0];
  if (kind == FftKind::kRfft) {
    // The transpose of rfft: the real part of fft, of the cotangent padded with the elements beyond
    // n / 2.
    Tensor whole = resized(cotangent, cotangent.rank() - 1, lengths.back());
    out[0] = real(fft(whole, FftKind::kFft, lengths));
  } else if (kind == FftKind::kIrfft) {
    // x = sum of w_k Re(z_k exp(2 pi i k j / n)) / n: conj(rfft) with the weights w_k / n.
    Tensor weights = irfft_weights(cotangent.dtype(), lengths);
    out[0] = conj(multiply(fft(cotangent, FftKind::kRfft, lengths), weights));
  } else {
    out[0] = fft(cotangent, kind, lengths);
  }
}

// x in the dtype that the kind requires.
Tensor fft_operand(const Tensor& x, FftKind kind) {
  DType dtype = x.dtype();
  if (kind == FftKind::kRfft)
    return astype(x, real_dtype(dtype) == DType::f64 ? DType::f64 : DType::f32);
  return astype(x, complex_dtype(dtype));
}

Tensor fft_along(std::string_view name, FftKind kind, const In& given,
                 std::optional<std::int64_t> n, std::int64_t dimension) {
  SourceScope line(given.where);
  SourceLocation where = effective_source(given.where);
  Tensor x = operand_tensor(name, given);
  dimension = normalize_dimension(dimension, x.shape().rank(), name, where);
  if (kind == FftKind::kRfft && is_complex(x.dtype()))
    throw_invalid(where, "[", name, "] takes real numbers, not ", x.type(), "; use fft");
  std::int64_t size = x.shape().sizes()[static_cast<std::size_t>(dimension)];
  std::int64_t length = n.value_or(kind == FftKind::kIrfft ? 2 * (size - 1) : size);
  if (length < 1)
    throw_invalid(where, "[", name, "] invalid length ", length, " along dimension ", dimension,
                  " of ", x.type());
  x = resized(x, dimension, kind == FftKind::kIrfft ? length / 2 + 1 : length);
  x = fft_operand(x, kind);
  bool last = dimension == x.rank() - 1;
  if (!last) x = moveaxis(x, dimension, -1);
  x = fft(x, kind, {length});
  return last ? x : moveaxis(x, -1, dimension);
}

Tensor fft_over(std::string_view name, FftKind kind, const In& given, DimensionList list,
                std::optional<std::int64_t> last_length) {
  SourceScope line(given.where);
  SourceLocation where = effective_source(given.where);
  Tensor x = operand_tensor(name, given);
  Dimensions dimensions = list.resolve(x.shape().rank(), name, where);
  if (dimensions.empty())
    throw_invalid(where, "[", name, "] requires at least one dimension of ", x.type());
  // The transform with the real side handles the last dimension: rfft goes first, irfft last.
  bool real_last = kind == FftKind::kRfft || kind == FftKind::kIrfft;
  FftKind others = kind == FftKind::kRfft    ? FftKind::kFft
                   : kind == FftKind::kIrfft ? FftKind::kIfft
                                             : kind;
  if (kind == FftKind::kRfft) x = fft_along(name, kind, x, std::nullopt, dimensions.back());
  std::size_t count = dimensions.size() - (real_last ? 1 : 0);
  for (std::size_t i = 0; i < count; ++i)
    x = fft_along(name, others, x, std::nullopt, dimensions[i]);
  return kind == FftKind::kIrfft ? fft_along(name, kind, x, last_length, dimensions.back()) : x;
}

std::unique_ptr<const Attributes> read_fft(const OpText& text) {
  std::string_view kind = text.attribute({"type", "fft_type"});
  FftKind found = kind.find("IRFFT") != std::string_view::npos  ? FftKind::kIrfft
                  : kind.find("RFFT") != std::string_view::npos ? FftKind::kRfft
                  : kind.find("IFFT") != std::string_view::npos ? FftKind::kIfft
                                                                : FftKind::kFft;
  return make_attributes(FftAttributes{found, text.list({"length", "fft_length"})});
}

}  // namespace

extern constinit const OpDef fft_op = {
    .name = "fft",
    .operands = "x",
    .doc = "Discrete Fourier transforms of the last dimensions, and their inverses.",
    .example = "fft(x)",
    .infer = infer_fft,
    .sharding_rule = fft_rule<FactorKind::kPassThrough>,
    .emit = emit_fft,
    .read = {.mnemonic = "stablehlo.fft",
             .attributes = read_fft,
             // The partitioner gathers the whole operand, even if only the batch is split.
             .sharding_rule = fft_rule<FactorKind::kNeedReplication>,
             .dtypes_as_written = true},
    .vjp = fft_vjp,
    .batch = batch_unchanged,
    .parse_attributes = parse_attributes<FftAttributes>,
    .traits = {.runs_on_shards = [](const OpCall&) { return true; }},
};

Tensor fft(In x, FftKind kind, Dimensions lengths) {
  Tensor operand = operand_tensor(fft_op, x);
  return record(fft_op, make_attributes(FftAttributes{kind, std::move(lengths)}), {&operand},
                x.where);
}

Tensor fft(In x, std::optional<std::int64_t> n, std::int64_t dimension) {
  return fft_along("fft", FftKind::kFft, x, n, dimension);
}
Tensor ifft(In x, std::optional<std::int64_t> n, std::int64_t dimension) {
  return fft_along("ifft", FftKind::kIfft, x, n, dimension);
}
Tensor rfft(In x, std::optional<std::int64_t> n, std::int64_t dimension) {
  return fft_along("rfft", FftKind::kRfft, x, n, dimension);
}
Tensor irfft(In x, std::optional<std::int64_t> n, std::int64_t dimension) {
  return fft_along("irfft", FftKind::kIrfft, x, n, dimension);
}

Tensor fftn(In x, DimensionList dimensions) {
  return fft_over("fftn", FftKind::kFft, x, std::move(dimensions), std::nullopt);
}
Tensor ifftn(In x, DimensionList dimensions) {
  return fft_over("ifftn", FftKind::kIfft, x, std::move(dimensions), std::nullopt);
}
Tensor rfftn(In x, DimensionList dimensions) {
  return fft_over("rfftn", FftKind::kRfft, x, std::move(dimensions), std::nullopt);
}
Tensor irfftn(In x, DimensionList dimensions, std::optional<std::int64_t> last_length) {
  return fft_over("irfftn", FftKind::kIrfft, x, std::move(dimensions), last_length);
}

}  // namespace meshard
