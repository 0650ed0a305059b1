// The elements of windows, one place at a time: derivatives of max and min of windows.
#pragma once
#include <cstdint>
#include <vector>

#include "meshard/ops/window.h"

namespace meshard {

/// `x` as windows see it: dilated and padded with `padding`, a scalar.
Tensor padded_for_windows(const Tensor& x, double padding, const Windows& windows);

/// The elements of all windows of a tensor that padded_for_windows gave. `counts` of windows.
std::vector<Tensor> window_elements(const Tensor& padded, const Windows& windows,
                                    const Dimensions& counts);

/// True at the elements of all windows of a tensor of `shape`, false at padding and in gaps.
std::vector<Tensor> window_members(const Shape& shape, const Windows& windows,
                                   const Dimensions& counts);

/// For each window the place of its greatest (least) member, the first of equal ones.
Tensor chosen_places(const std::vector<Tensor>& elements, const std::vector<Tensor>& members,
                     bool greatest);

/// The transpose of padded_for_windows and window_elements: each element of `values` (of every
/// window) is added where element chosen of the window came from, in a tensor of `shape`.
Tensor scattered_to_windows(const Tensor& values, const Tensor& chosen, const Windows& windows,
                            const Shape& shape);

}  // namespace meshard
