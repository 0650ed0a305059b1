// The heat equation du/dt = u_xx + u_yy on a square with zero boundary values, solved by explicit
// time steps on a grid that is sharded over the mesh axes "rows" and "columns".
#pragma once
#include <cstdint>

#include "meshard/core.h"

namespace heat {

/// Time step times conductivity over the square of the grid spacing. The scheme is unstable above
/// 1/4.
inline constexpr double kCourant = 0.2;

/// Runs `steps` steps from `state` [rows, columns], as operations on the whole grid. Each step adds
/// to each point kCourant times (the sum of its neighbors minus four times itself). The neighbors
/// are shifted copies; where they cross device boundaries, the compiler inserts an exchange.
meshard::Tensor by_shifts(meshard::Tensor state, std::int64_t steps);

/// The same, as operations on each device's shard. Devices send their outermost rows and columns to
/// their neighbors with collective_permute; at the boundary nothing is received, which gives zeros.
meshard::Tensor by_exchange(const meshard::Mesh& mesh, const meshard::Tensor& state,
                            std::int64_t steps);

/// A warm disc on a cold plate, f64 [size, size], sharded over the mesh.
meshard::Tensor warm_disc(const meshard::Mesh& mesh, std::int64_t size);

/// The mean squared difference between the state after `steps` steps and the observation.
meshard::Tensor misfit(const meshard::Tensor& state, const meshard::Tensor& observed,
                       std::int64_t steps);

}  // namespace heat
