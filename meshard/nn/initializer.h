// The values that parameters begin with.
#pragma once
#include <cstdint>
#include <functional>

#include "meshard/graph/tensor.h"

namespace meshard::nn {

/// How many inputs an output of a weight sums over, and how many outputs an input reaches. A layer
/// knows them; a shape alone does not: a weight [width, heads, size] has heads * size outputs.
struct Fans {
  std::int64_t in = 1, out = 1;
};

/// A parameter of this shape and dtype: `initializer(key, shape, fans, dtype)`. The key is as in
/// ops/composite/random.h; the values do not depend on the mesh.
using Initializer =
    std::function<Tensor(const Tensor& key, const Shape& shape, const Fans& fans, DType dtype)>;

namespace init {

Initializer zeros();
Initializer ones();
Initializer constant(double value);
/// Normal with mean 0.
Initializer normal(double deviation);
/// Uniform in [-limit, limit).
Initializer uniform(double limit);
/// Normal with mean 0, without what is beyond two deviations; `deviation` is that of the normal
/// before it is cut.
Initializer truncated_normal(double deviation);

/// Uniform with variance 2 / (in + out), and normal (Glorot and Bengio: Understanding the
/// Difficulty of Training Deep Feedforward Neural Networks, 2010; also called xavier).
Initializer glorot_uniform();
Initializer glorot_normal();
/// With variance 2 / in, for relu (He et al.: Delving Deep into Rectifiers, 2015; also called
/// kaiming).
Initializer he_uniform();
Initializer he_normal();
/// With variance 1 / in (LeCun, Bottou, Orr and Müller: Efficient BackProp, 1998).
Initializer lecun_uniform();
Initializer lecun_normal();

/// Matrices with orthonormal columns, or rows if there are more columns, evenly distributed, times
/// `scale` (Saxe, McClelland and Ganguli: Exact Solutions to the Nonlinear Dynamics of Learning in
/// Deep Linear Neural Networks, 2014). `column_dimension` says where the columns lie; all other
/// dimensions together are the rows.
/// @error when it is used: a rank below 2; no such dimension.
Initializer orthogonal(double scale = 1, std::int64_t column_dimension = -1);

}  // namespace init
}  // namespace meshard::nn
