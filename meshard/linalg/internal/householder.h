// Panels of Householder reflections on a grid of devices.
#pragma once
#include <optional>

#include "meshard/linalg/internal/block_layout.h"

namespace meshard::linalg::distributed::internal {

/// The product H_0 H_1 ... of the reflections of a panel, I - v t v^T (Schreiber and Van Loan,
/// 1989).
struct Reflections {
  Tensor own_v;      ///< own rows, from the panel's first one on
  Tensor inverse_t;  ///< [panel, panel], upper triangular: that of v^T v, with 1 / tau on the
                     ///< diagonal (Puglisi, 1992); the same on all devices
};

/// A reflection that maps a vector x to beta e: I - tau v v^T, v = 1 at e and `scale` x below it
/// (LAPACK's xLARFG).
struct Reflector {
  Tensor beta, tau, scale, is_identity;
};
/// @param at the element of x at e
/// @param below the sum of the squares of those below it
Reflector reflector(const Tensor& at, const Tensor& below);

/// From v's products v^T v, [panel, panel], and taus, [panel], of which those of identities are 0.
Tensor inverse_t(const Tensor& products, const Tensor& taus);

/// `x` with the product of the reflections applied from the left, or its transpose.
/// @param x the device's part of rows, from the panel's first one on
Tensor reflected(const BlockLayout& layout, const Reflections& by, const Tensor& x, bool transpose);

struct LocalQr {
  Tensor q, r;
};
/// The reduced factors of a matrix in the layout. @param with_r otherwise r is undefined
LocalQr qr_on_device(const BlockLayout& layout, const Tensor& matrix, bool with_r);

}  // namespace meshard::linalg::distributed::internal
