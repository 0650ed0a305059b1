// Tested in meshard/ops/movement_test.cc.
#include "meshard/ops/definition/emission.h"

namespace meshard {
KeptElements kept_elements(std::int64_t size, std::int64_t low, std::int64_t high,
                           std::int64_t interior) {
  std::int64_t step = interior + 1;
  auto cut = [&](std::int64_t edge) { return edge < 0 ? (-edge + step - 1) / step : 0; };
  return {cut(low), size - cut(high), low + cut(low) * step, high + cut(high) * step};
}

void emit_pad(OpEmission& out, OpEmission::Typed result, OpEmission::Typed x,
              OpEmission::Typed value, const Dimensions& low, const Dimensions& high,
              const Dimensions& interior) {
  auto write_pad = [&](const Dimensions& before, const Dimensions& after) {
    out.writer.op("stablehlo.pad", {result}, {x, value}, out.location)
        .i64_array("edge_padding_low", before)
        .i64_array("edge_padding_high", after)
        .i64_array("interior_padding", interior)
        .done();
  };
  if (!out.quirks.has(Quirk::kNegativePads)) return write_pad(low, high);
  Dimensions start, stop, before, after, sizes, ones(low.size(), 1);
  bool any_kept = true, any_cut = false, any_padding = false;
  for (std::size_t d = 0; d < low.size(); ++d) {
    std::int64_t size = x.type->shape[static_cast<int>(d)];
    KeptElements part = kept_elements(size, low[d], high[d], interior[d]);
    any_kept = any_kept && part.start < part.stop;
    any_cut = any_cut || part.stop - part.start < size;
    any_padding = any_padding || part.low > 0 || part.high > 0 || interior[d] > 0;
    start.push_back(part.start);
    stop.push_back(part.stop);
    before.push_back(part.low);
    after.push_back(part.high);
    sizes.push_back(part.stop - part.start);
  }
  if (!any_kept) {
    out.writer.op("stablehlo.broadcast_in_dim", {result}, {value}, out.location)
        .i64_array("broadcast_dimensions", Dimensions())
        .done();
    return;
  }
  TensorType cut_type = any_cut ? TensorType{x.type->dtype, Shape(std::move(sizes))} : *x.type;
  if (any_cut) {
    bool is_result = !any_padding;
    OpEmission::Typed part(is_result ? result.value : out.writer.temporary(), cut_type);
    out.writer.op("stablehlo.slice", {part}, {x}, out.location)
        .i64_array("start_indices", start)
        .i64_array("limit_indices", stop)
        .i64_array("strides", ones)
        .done();
    if (is_result) return;
    x = part;
  }
  write_pad(before, after);
}

}  // namespace meshard
