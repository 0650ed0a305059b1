// Helpers for random.h and the distributions. Uniform numbers between computed bounds, and numbers
// from many keys at once.
#pragma once
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/graph/record.h"

namespace meshard::random::internal {

/// The number of stored mantissa bits of f16, bf16, f32 and f64; 0 for other dtypes.
int mantissa_bits(DType dtype);

/// @error invalid argument, naming random.`place`, unless `key` is u32[2].
void check_key(std::string_view place, const In& key);

/// @error invalid argument, naming random.`place`, unless dtype is f16, bf16, f32 or f64.
void check_float(std::string_view place, DType dtype, SourceLocation where);

/// While it exists, nodes are recorded at the line that gave `key`. @error as check_float
class FloatDraw {
 public:
  FloatDraw(std::string_view place, const In& key, DType dtype) : line_(key.where) {
    check_float(place, dtype, key.where);
  }

 private:
  SourceScope line_;
};

/// `value` rounded to `dtype`, a constant of rank 0.
Tensor float_constant(DType dtype, double value);

/// Random words, or keys: the tensor of all first words and that of all second words, of one shape.
using Words = std::pair<Tensor, Tensor>;

/// Splits each of these keys into new keys number 0 to count - 1, as split does.
std::vector<Words> split_each(const Words& keys, std::int64_t count);
/// One number of rank 0 for each of these keys, as uniform and normal draw it.
Tensor uniform_each(const Words& keys, DType dtype);
Tensor normal_each(const Words& keys, DType dtype);

/// Random bits as unsigned integers of `dtype`.
Tensor bits_of(const Words& words, DType dtype);
/// The same bits as numbers of `dtype` in [0, 1).
Tensor unit_of(const Words& words, DType dtype);
/// unit * (high - low) + low.
Tensor between(const Tensor& unit, double low, double high);
/// Normal numbers from uniform ones, which start just above -1, where erf_inv is finite.
Tensor normal_of(const Tensor& unit);

/// The random words at each position of `shape` under a key; used as keys, they equal the
/// keys of split_into.
Words words_at(std::string_view place, const In& key, const Shape& shape);

/// Uniform in [low, high). The bounds have `dtype`, and rank 0 or a shape that broadcasts to
/// `shape`; low + u * (high - low) is rounded as in JAX.
/// @pre check_float(dtype)
Tensor uniform_between(In key, const Shape& shape, DType dtype, const Tensor& low,
                       const Tensor& high);
/// The same for numbers.
Tensor uniform_between(In key, const Shape& shape, DType dtype, double low, double high);

}  // namespace meshard::random::internal
