#include "examples/heat/heat.h"

#include <utility>
#include <vector>

namespace heat {

using namespace meshard;

namespace {

// Each point's neighbor `by` positions before it along a dimension; zero outside the grid.
Tensor shifted(const Tensor& u, int dimension, int by) {
  Range kept = by > 0 ? range(0, -by) : range(-by, none);
  Dimensions low{0, 0}, high{0, 0};
  (by > 0 ? low : high)[static_cast<std::size_t>(dimension)] = by > 0 ? by : -by;
  Tensor part = dimension == 0 ? index(u, {kept, whole}) : index(u, {whole, kept});
  return pad(part, 0, low, high);
}

// The border line received from the previous (by = 1) or next (by = -1) neighbor.
Tensor received(const Tensor& part, int dimension, const char* axis, std::int64_t count, int by) {
  Range line = by > 0 ? range(-1, none) : range(0, 1);
  Tensor sent = dimension == 0 ? index(part, {line, whole}) : index(part, {whole, line});
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  for (std::int64_t i = 0; i < count; ++i)
    if (i + by >= 0 && i + by < count) pairs.push_back({i, i + by});
  return collective_permute(sent, axis, pairs);
}

Tensor exchange_step(const Tensor& part, std::int64_t rows, std::int64_t columns) {
  Tensor tall =
      concat({received(part, 0, "rows", rows, 1), part, received(part, 0, "rows", rows, -1)}, 0);
  Tensor wide = concat(
      {received(part, 1, "columns", columns, 1), part, received(part, 1, "columns", columns, -1)},
      1);
  Tensor around = index(tall, {range(0, -2), whole}) + index(tall, {range(2, none), whole}) +
                  index(wide, {whole, range(0, -2)}) + index(wide, {whole, range(2, none)});
  return part + kCourant * (around - 4 * part);
}

}  // namespace

Tensor by_shifts(Tensor state, std::int64_t steps) {
  for (std::int64_t i = 0; i < steps; ++i) {
    Tensor around =
        shifted(state, 0, 1) + shifted(state, 0, -1) + shifted(state, 1, 1) + shifted(state, 1, -1);
    state = state + kCourant * (around - 4 * state);
  }
  return state;
}

Tensor by_exchange(const Mesh& mesh, const Tensor& state, std::int64_t steps) {
  std::int64_t rows = mesh.axis_size("rows"), columns = mesh.axis_size("columns");
  auto run = manual(mesh, P("rows", "columns"), P("rows", "columns"), [=](Tensor part) {
    for (std::int64_t i = 0; i < steps; ++i) part = exchange_step(part, rows, columns);
    return part;
  });
  return run(state);
}

Tensor warm_disc(const Mesh& mesh, std::int64_t size) {
  HostArray plate = HostArray::zeros({DType::f64, {size, size}});
  std::span<double> points = plate.mutable_data<double>();
  for (std::int64_t i = 0; i < size; ++i)
    for (std::int64_t j = 0; j < size; ++j) {
      double y = double(i) / double(size) - 0.3, x = double(j) / double(size) - 0.4;
      points[static_cast<std::size_t>(i * size + j)] = x * x + y * y < 0.04 ? 1 : 0;
    }
  return mark_sharding(from_host(std::move(plate)), mesh, P("rows", "columns"));
}

Tensor misfit(const Tensor& state, const Tensor& observed, std::int64_t steps) {
  return mean(square(by_shifts(state, steps) - observed));
}

}  // namespace heat
