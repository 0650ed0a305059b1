// Random integers and random selection: randint, permutation, categorical, choice. Bit for bit as
// in JAX.
#pragma once
#include <optional>

#include "meshard/graph/tensor.h"

namespace meshard::random {

/// Random integers in [low, high), of any integer dtype; all are `low` if the range is empty.
/// Bounds out of the dtype's range are clamped, so that the dtype's last number is included:
/// randint(key, {4}, 0, 256, DType::u8) can give every u8. Unless the size of the range is a power
/// of two, some numbers are more likely than others, by at most size / 2^32 for dtypes up to 32
/// bits and size / 2^64 for 64-bit ones.
/// @error invalid argument unless dtype is an integer.
Tensor randint(In key, Shape shape, std::int64_t low, std::int64_t high,
               DType dtype = kDefaultInteger);

/// -1 or 1, with equal probability, of any integer or floating-point dtype.
/// @error invalid argument for bool and unsigned dtypes.
Tensor rademacher(In key, Shape shape, DType dtype = kDefaultInteger);

/// The number of trials until the first success. Each trial succeeds with this probability, a
/// number or a tensor that broadcasts to `shape`.
/// @error invalid argument unless dtype is an integer.
Tensor geometric(In key, In probability, Shape shape, DType dtype = kDefaultInteger);

/// A random permutation of 0, 1, ..., x - 1 (i32) if `x` is a whole number. Otherwise the slices of
/// the tensor along a dimension, in random order.
/// @error invalid argument if x is neither, or a tensor of rank 0, or negative.
Tensor permutation(In key, In x, std::int64_t dimension = 0);

/// The elements of `x` along a dimension, in a different random order for each vector.
/// @error invalid argument if x is a number or of rank 0.
Tensor shuffle(In key, In x, std::int64_t dimension = 0);

/// Draws indices along `dimension` with the probabilities softmax(logits) (i32).
/// @param shape of the result. It ends with the shape of `logits` without `dimension`, or with
/// sizes to which this broadcasts; leading sizes are further draws. Default: the shape without
/// `dimension`.
/// @param replace if false, the draws from one distribution are distinct, likely ones first.
/// @error invalid argument unless logits are f16, bf16, f32 or f64; a shape that does not fit; more
/// draws than indices, without replacement.
Tensor categorical(In key, In logits, std::int64_t dimension = -1,
                   std::optional<Shape> shape = std::nullopt, bool replace = true);

/// Options of choice().
struct ChoiceOptions {
  /// Whether an element can be drawn more than once. Default: true.
  bool replace = true;
  /// A vector of floats that sum to 1. Default (undefined): all are equally likely.
  Tensor probabilities = {};
  /// The dimension of the tensor along which slices are drawn. Default: 0.
  std::int64_t dimension = 0;
};

/// Draws slices of a tensor along a dimension. If `a` is a whole number, draws numbers from 0, 1,
/// ..., a - 1. `shape` replaces the dimension.
/// @error invalid argument if there is nothing to draw from; more draws than elements, without
/// replacement; probabilities of another size.
Tensor choice(In key, In a, Shape shape, const ChoiceOptions& options = {});

}  // namespace meshard::random
