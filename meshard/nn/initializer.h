// Initial values of parameters.
#pragma once
#include <cstdint>
#include <functional>

#include "meshard/graph/tensor.h"

namespace meshard::nn {

/// The number of inputs per output of a weight (in), and of outputs per input (out). The layer
/// specifies them because a shape is not sufficient: a weight [width, heads, size] has heads * size
/// outputs.
struct Fans {
  std::int64_t in = 1, out = 1;
};

/// Computes an initial parameter of this shape and dtype: `initializer(key, shape, fans, dtype)`.
/// The key is as in ops/composite/random.h; the values do not depend on the mesh.
using Initializer =
    std::function<Tensor(const Tensor& key, const Shape& shape, const Fans& fans, DType dtype)>;

namespace init {

/// All zeros.
Initializer zeros();
/// All ones.
Initializer ones();
/// All equal to `value`.
Initializer constant(double value);
/// Normal with mean 0.
Initializer normal(double deviation);
/// Uniform in [-limit, limit).
Initializer uniform(double limit);
/// Normal with mean 0, truncated at two standard deviations. `deviation` is the standard
/// deviation before truncation.
Initializer truncated_normal(double deviation);

/// Uniform and normal with variance 2 / (in + out) (Glorot and Bengio: Understanding the Difficulty
/// of Training Deep Feedforward Neural Networks, 2010; also called Xavier).
Initializer glorot_uniform();
Initializer glorot_normal();
/// Uniform and normal with variance 2 / in, for relu (He et al.: Delving Deep into Rectifiers,
/// 2015; also called Kaiming).
Initializer he_uniform();
Initializer he_normal();
/// Uniform and normal with variance 1 / in (LeCun, Bottou, Orr and Müller: Efficient BackProp,
/// 1998).
Initializer lecun_uniform();
Initializer lecun_normal();

/// Uniformly distributed matrices with orthonormal columns (or rows, if there are more columns),
/// times `scale`. (Saxe, McClelland and Ganguli: Exact Solutions to the Nonlinear Dynamics of
/// Learning in Deep Linear Neural Networks, 2014.) `column_dimension` is the dimension of the
/// columns; all others together are the rows.
/// @error when it is called: a rank below 2; no such dimension.
Initializer orthogonal(double scale = 1, std::int64_t column_dimension = -1);

}  // namespace init
}  // namespace meshard::nn
