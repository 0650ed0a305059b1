#include "meshard/lowering/internal/boundary_padding.h"

#include "meshard/lowering/internal/node_writer.h"

namespace meshard {

TensorType padded_type(const TensorType& type, const Sharding& sharding) {
  Dimensions padded;
  for (std::int64_t size : sharding.padded_shape(type.shape)) padded.push_back(size);
  return {type.dtype, Shape(std::move(padded))};
}

NodeWriter::SsaValue NodeWriter::cut(SsaValue padded, const TensorType& from, const TensorType& to,
                                     std::uint32_t number) {
  if (from == to) return padded;
  SsaValue whole = writer_.temporary();
  write_cut({whole, to}, {padded, from}, location_of(number));
  return whole;
}

void NodeWriter::write_cut(const stablehlo::Typed& result, const stablehlo::Typed& padded,
                           std::string_view location) {
  const TensorType& to = *result.type;
  Dimensions zeros(static_cast<std::size_t>(to.rank()), 0);
  Dimensions ones(static_cast<std::size_t>(to.rank()), 1);
  writer_.op("stablehlo.slice", {result}, {padded}, location)
      .i64_array("start_indices", zeros)
      .i64_array("limit_indices", to.shape)
      .i64_array("strides", ones)
      .done();
}

NodeWriter::SsaValue NodeWriter::pad(SsaValue value, const TensorType& from, const TensorType& to,
                                     std::uint32_t number) {
  if (from == to) return value;
  if (quirks_.has(Quirk::kWindowFills))
    value = behind_barriers(value, from, counters_.fills.group(from, kZeroFill));
  SsaValue padded = writer_.temporary();
  SsaValue zero = writer_.scalar(from.dtype, 0);
  TensorType scalar{from.dtype, Shape{}};
  Dimensions none_low(static_cast<std::size_t>(from.rank()), 0);
  Dimensions high;
  for (int d = 0; d < from.rank(); ++d) high.push_back(to.shape[d] - from.shape[d]);
  writer_.op("stablehlo.pad", {{padded, to}}, {{value, from}, {zero, scalar}}, location_of(number))
      .i64_array("edge_padding_low", none_low)
      .i64_array("edge_padding_high", high)
      .i64_array("interior_padding", none_low)
      .done();
  return padded;
}

}  // namespace meshard
