// The heat equation du/dt = u_xx + u_yy on a square whose border is kept at zero, by explicit steps
// on a grid that is spread over the mesh axes "rows" and "columns".
#pragma once
#include <cstdint>

#include "meshard/meshard.h"

namespace heat {

/// Time step times conductivity over the square of the grid's distance. Above 1/4 the steps grow
/// without bound.
inline constexpr double kCourant = 0.2;

/// `steps` steps from `state` [rows, columns], said about the whole grid: each point gets kCourant
/// times its neighbours less four times itself. The neighbours are shifted copies; where they cross
/// from one device to another the compiler makes an exchange of it.
meshard::Tensor by_shifts(meshard::Tensor state, std::int64_t steps);

/// The same, said about each device's own part: its outermost rows and columns go to its neighbours
/// by collective_permute. At the border nothing arrives, and that is a zero.
meshard::Tensor by_exchange(const meshard::Mesh& mesh, const meshard::Tensor& state,
                            std::int64_t steps);

/// A warm disc on a cold plate, f64 [size, size], laid out over the mesh.
meshard::Tensor warm_disc(const meshard::Mesh& mesh, std::int64_t size);

/// The mean square of what `steps` steps make of a state, less what was observed.
meshard::Tensor misfit(const meshard::Tensor& state, const meshard::Tensor& observed,
                       std::int64_t steps);

}  // namespace heat
