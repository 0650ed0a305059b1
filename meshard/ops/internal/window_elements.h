// The elements of windows, one window position at a time: for derivatives of max and min of
// windows.
#pragma once
#include <cstdint>
#include <vector>

#include "meshard/ops/internal/window.h"

namespace meshard::internal {

/// `x` dilated and padded with the scalar `padding`, as windows see it.
Tensor padded_for_windows(const Tensor& x, double padding, const Windows& windows);

/// For each position in a window, the elements of all windows there, of a tensor from
/// padded_for_windows. `counts` of windows.
std::vector<Tensor> window_elements(const Tensor& padded, const Windows& windows,
                                    const Dimensions& counts);

/// The same for a mask: true at the elements of a tensor of `shape`, false at padding and in gaps.
std::vector<Tensor> window_members(const Shape& shape, const Windows& windows,
                                   const Dimensions& counts);

/// For each window the index of its greatest (least) member, the first of equal ones.
Tensor chosen_places(const std::vector<Tensor>& elements, const std::vector<Tensor>& members,
                     bool greatest);

/// The transpose of padded_for_windows and window_elements. Each element of `values` (one per
/// window) is added at the position that element `chosen` of the window came from, in a tensor of
/// `shape`.
Tensor scattered_to_windows(const Tensor& values, const Tensor& chosen, const Windows& windows,
                            const Shape& shape);

}  // namespace meshard::internal
