// Tested in meshard/ops/reduce_window_test.cc.
#include "meshard/ops/internal/window_elements.h"

#include "meshard/ops/arithmetic.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/definition/operand.h"
#include "meshard/ops/movement.h"
#include "meshard/ops/selection.h"
#include "meshard/ops/slicing.h"

namespace meshard::internal {
namespace {

// The positions inside a window, in row-major order.
std::vector<Dimensions> places_of(const Windows& windows) {
  std::vector<Dimensions> places;
  Dimensions place(windows.rank(), 0);
  for (;;) {
    places.push_back(place);
    std::size_t d = windows.rank();
    while (d > 0 && ++place[d - 1] == windows.size[d - 1]) place[--d] = 0;
    if (d == 0) return places;
  }
}

Dimensions interior_of(const Dimensions& dilation) {
  Dimensions interior = dilation;
  for (std::int64_t& n : interior) --n;
  return interior;
}

}  // namespace

Tensor padded_for_windows(const Tensor& x, double padding, const Windows& windows) {
  return pad(x, filled({x.dtype(), {}}, padding), windows.low, windows.high,
             interior_of(windows.base_dilation));
}

std::vector<Tensor> window_elements(const Tensor& padded, const Windows& windows,
                                    const Dimensions& counts) {
  std::vector<Tensor> elements;
  for (const Dimensions& place : places_of(windows)) {
    Dimensions start, stop;
    for (std::size_t d = 0; d < place.size(); ++d) {
      start.push_back(place[d] * windows.dilation[d]);
      stop.push_back(start[d] + dilated_size(counts[d], windows.stride[d]));
    }
    elements.push_back(slice(padded, std::move(start), std::move(stop), windows.stride));
  }
  return elements;
}

std::vector<Tensor> window_members(const Shape& shape, const Windows& windows,
                                   const Dimensions& counts) {
  return window_elements(padded_for_windows(filled({DType::bool_, shape}, 1), 0, windows), windows,
                         counts);
}

Tensor chosen_places(const std::vector<Tensor>& elements, const std::vector<Tensor>& members,
                     bool greatest) {
  Tensor best = elements[0], found = members[0];
  Tensor chosen = filled({DType::i32, best.shape()}, 0);
  for (std::size_t k = 1; k < elements.size(); ++k) {
    Tensor keep = greatest ? greater_equal(best, elements[k]) : less_equal(best, elements[k]);
    // The padding may equal a member that is infinite, but must never be chosen before it.
    keep = logical_or(logical_and(keep, found), logical_not(members[k]));
    best = where(keep, best, elements[k]);
    chosen = where(keep, chosen, static_cast<std::int64_t>(k));
    found = logical_or(found, members[k]);
  }
  return chosen;
}

Tensor scattered_to_windows(const Tensor& values, const Tensor& chosen, const Windows& windows,
                            const Shape& shape) {
  Tensor sum;
  std::int64_t k = 0;
  for (const Dimensions& place : places_of(windows)) {
    Dimensions low, high;
    for (std::size_t d = 0; d < place.size(); ++d) {
      low.push_back(place[d] * windows.dilation[d]);
      high.push_back(windows.padded(d, shape.sizes()[d]) - low[d] -
                     dilated_size(values.shape().sizes()[d], windows.stride[d]));
    }
    Tensor part = pad(where(equal(chosen, k++), values, 0), 0, std::move(low), std::move(high),
                      interior_of(windows.stride));
    sum = sum.defined() ? add(sum, part) : part;
  }
  // Removes the padding, then the gaps.
  Dimensions low = windows.low, high = windows.high, start(windows.rank(), 0);
  for (std::int64_t& n : low) n = -n;
  for (std::int64_t& n : high) n = -n;
  Tensor inner = pad(sum, 0, std::move(low), std::move(high));
  return slice(inner, std::move(start), inner.shape().sizes(), windows.base_dilation);
}

}  // namespace meshard::internal
