// What random.h and the distributions share: uniform numbers between bounds that are computed, and
// the numbers of many keys at once.
#pragma once
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard::random {

/// Bits of the stored mantissa of f16, bf16, f32 and f64; 0 of other dtypes.
int mantissa_bits(DType dtype);

/// @error invalid argument, naming random.`place`, unless `key` is u32[2].
void check_key(std::string_view place, const In& key);

/// @error invalid argument, naming random.`place`, unless dtype is f16, bf16, f32 or f64.
void check_float(std::string_view place, DType dtype, SourceLocation where);

/// `value` rounded to `dtype`, of rank 0, as part of the program.
Tensor float_constant(DType dtype, double value);

/// Random words, or keys: the first words of each, and the second ones, of one shape.
using Words = std::pair<Tensor, Tensor>;

/// What split gives for each of these keys: new keys number 0 to count - 1.
std::vector<Words> split_each(const Words& keys, std::int64_t count);
/// What uniform and normal draw of rank 0 from each of these keys.
Tensor uniform_each(const Words& keys, DType dtype);
Tensor normal_each(const Words& keys, DType dtype);

/// Random bits as unsigned integers of `dtype`.
Tensor bits_of(const Words& words, DType dtype);
/// The same as numbers of `dtype` in [0, 1).
Tensor unit_of(const Words& words, DType dtype);
/// unit * (high - low) + low.
Tensor between(const Tensor& unit, double low, double high);
/// Normal numbers from uniform ones. How they begin: from just above -1, where erf_inv is finite.
Tensor normal_of(const Tensor& unit);

/// The words at each position of `shape` under a key; as keys, those of split_into.
Words words_at(std::string_view place, const In& key, const Shape& shape);

/// Uniform in [low, high). The bounds have `dtype`, and rank 0 or a shape that broadcasts to
/// `shape`; low + u * (high - low) is rounded as JAX rounds it.
/// @pre check_float(dtype)
Tensor uniform_between(In key, const Shape& shape, DType dtype, const Tensor& low,
                       const Tensor& high);
/// The same for numbers.
Tensor uniform_between(In key, const Shape& shape, DType dtype, double low, double high);

}  // namespace meshard::random
