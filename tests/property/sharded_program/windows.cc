// Operations whose windows reach beyond the edges of a value, where they are filled.
#include <algorithm>

#include "tests/property/sharded_program/draw.h"
#include "tests/property/sharded_program/host_value.h"

namespace meshard::property {
namespace {

using Known = Draw::Known;

bool is_list_of_numbers(const Known& value) {
  return value.type().rank() > 0 && value.type().dtype != DType::bool_;
}

bool draw_pad(Draw& draw, Step& step) {
  if (!draw.take(step, is_list_of_numbers)) return false;
  std::vector<std::int64_t> low, high, interior;
  for (std::int64_t size : draw.operand(step, 0).type().shape) {
    low.push_back(draw.one_in(2) ? draw.between(size > 1 ? -1 : 0, 2) : 0);
    high.push_back(draw.one_in(2) ? draw.between(size > 2 ? -1 : 0, 2) : 0);
    interior.push_back(draw.one_in(4) ? 1 : 0);
  }
  step.lists = {low, high, interior, {draw.between(0, 3)}};
  return true;
}

bool draw_cumulative(Draw& draw, Step& step) {
  if (!draw.take(step, is_list_of_numbers)) return false;
  step.lists.push_back({draw.between(0, draw.operand(step, 0).type().rank() - 1)});
  return true;
}
bool draw_windows(Draw& draw, Step& step) {
  if (!draw.take(step, is_list_of_numbers)) return false;
  std::vector<std::int64_t> window, strides;
  for (std::int64_t size : draw.operand(step, 0).type().shape) {
    window.push_back(
        draw.one_in(2) ? draw.between(1, static_cast<int>(std::min<std::int64_t>(size, 4))) : 1);
    strides.push_back(draw.one_in(3) ? draw.between(1, 3) : 1);
  }
  step.lists = {window, strides};
  return true;
}
bool draw_roll(Draw& draw, Step& step) {
  if (!draw.take(step, is_list_of_numbers)) return false;
  step.lists = {{draw.between(-3, 3)}, {draw.between(0, draw.operand(step, 0).type().rank() - 1)}};
  return true;
}

bool is_wide_float(const Known& value) {
  return value.type().dtype == DType::f32 || value.type().dtype == DType::f64;
}
// The kernel is the sum over the batch.
bool draw_series(Draw& draw, Step& step) {
  if (!draw.take(step, [](const Known& x) { return is_wide_float(x) && x.type().rank() == 3; }))
    return false;
  const Shape& shape = draw.operand(step, 0).type().shape;
  step.lists = {{shape[1], shape[2], 1}};
  return true;
}
bool draw_transform(Draw& draw, Step& step) {
  if (!draw.take(step, [](const Known& x) { return is_wide_float(x) && x.type().rank() > 0; }))
    return false;
  step.lists = {{draw.between(0, draw.operand(step, 0).type().rank() - 1)}};
  return true;
}
bool draw_segments(Draw& draw, Step& step) {
  if (!draw.take(step, [](const Known& x) { return is_wide_float(x) && x.type().rank() > 0; }))
    return false;
  step.lists = {{draw.operand(step, 0).type().shape[0]}, {draw.between(1, 5)}};
  return true;
}

Bounds padded(const Arguments& args, const TensorType& result) {
  Bounds bounds = moved(args, result);
  return {std::max(bounds.size, 3.0), bounds.error};
}
Bounds cumulative_bounds(const Arguments& args, const TensorType& result) {
  auto count = static_cast<double>(args.type(0).shape[args.number(0)]);
  return rounded(result, count * args.bounds[0].size, count * args.bounds[0].error, count + 4);
}
Bounds window_sum_bounds(const Arguments& args, const TensorType& result) {
  double count = 1;
  for (std::int64_t size : args.list(0)) count *= static_cast<double>(size);
  return rounded(result, count * args.bounds[0].size, count * args.bounds[0].error, count + 4);
}

Bounds convolution_bounds(const Arguments& args, const TensorType& result) {
  const Bounds& x = args.bounds[0];
  auto batch = static_cast<double>(args.type(0).shape[0]);
  Bounds kernel = rounded(args.type(0), batch * x.size, batch * x.error, batch + 4);
  auto count = static_cast<double>(args.type(0).shape[1] * args.type(0).shape[2]);
  return rounded(result, count * x.size * kernel.size,
                 count * (x.error * kernel.size + kernel.error * x.size), count + 4);
}
Bounds transform_bounds(const Arguments& args, const TensorType& result) {
  auto count = static_cast<double>(args.type(0).shape[static_cast<int>(args.number(0))]);
  return rounded(result, count * args.bounds[0].size, count * args.bounds[0].error, 8 * count);
}
Bounds segment_bounds(const Arguments& args, const TensorType& result) {
  auto count = static_cast<double>(args.type(0).shape[0]);
  return rounded(result, count * args.bounds[0].size, count * args.bounds[0].error, count + 4);
}

const Operation kWindows[] = {
    {"pad", MESHARD_CALL(pad(A(0), N(3), L(0), L(1), L(2))), draw_pad, padded, true, 3},
    {"cumulative_sum", MESHARD_CALL(cumulative_sum(A(0), N(0))), draw_cumulative, cumulative_bounds,
     true, 2, host::cumulative_sum},
    {"cumulative_max", MESHARD_CALL(cumulative_max(A(0), N(0))), draw_cumulative, moved, false, 1},
    {"cumulative_min", MESHARD_CALL(cumulative_min(A(0), N(0), true)), draw_cumulative, moved,
     false, 1},
    {"reduce_window_sum",
     MESHARD_CALL(reduce_window_sum(A(0), L(0), {.strides = L(1), .padding = Padding::kSame})),
     draw_windows, window_sum_bounds, true, 2},
    {"reduce_window_max",
     MESHARD_CALL(reduce_window_max(A(0), L(0), {.strides = L(1), .padding = Padding::kSame})),
     draw_windows, moved, false, 1},
    {"reduce_window_min",
     MESHARD_CALL(reduce_window_min(A(0), L(0), {.strides = L(1), .padding = Padding::kSameLower})),
     draw_windows, moved, false, 1},
    {"conv1d", MESHARD_CALL(conv1d(A(0), reshape(sum(A(0), 0), S(0)), {.padding = Padding::kSame})),
     draw_series, convolution_bounds, true, 3, nullptr, false, false, true},
    {"real part of fft", MESHARD_CALL(real(fft(A(0), std::nullopt, N(0)))), draw_transform,
     transform_bounds, true, 2, nullptr, false, false, true},
    {"segment_sum", MESHARD_CALL(segment_sum(A(0), iota(DType::i32, S(0), 0) % N(1), N(1))),
     draw_segments, segment_bounds, true, 2, nullptr, false, false, true},
    {"roll", MESHARD_CALL(roll(A(0), N(0), N(1))), draw_roll, moved, true, 1},
};

}  // namespace

std::span<const Operation> window_operations() { return kWindows; }

}  // namespace meshard::property
