// Complex numbers and their parts.
#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// Complex numbers from real and imaginary parts. They are c64 for f32 (to which integers, bools
/// and narrower floats are converted), c128 for f64. Shapes broadcast.
///
/// Derivatives follow JAX's convention: the cotangent of z = x + iy is the number g for which a
/// change dz changes the result by the real part of g * dz (not of conj(g) * dz). The gradient of
/// abs(z)**2 is 2 * conj(z).
Tensor complex(In real, In imag);
/// The complex conjugates; real numbers are unchanged.
Tensor conj(In x);

/// The real parts; real numbers are unchanged.
Tensor real(In x);

/// The imaginary parts; zeros for real numbers.
Tensor imag(In x);

}  // namespace meshard
