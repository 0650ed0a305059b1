// Whole numbers at random, and drawing from what is there: randint, permutation, categorical,
// choice. Bit for bit as JAX draws them.
#pragma once
#include <optional>

#include "meshard/graph/tensor.h"

namespace meshard::random {

/// Whole numbers in [low, high), of any integer dtype; `low` everywhere if the range is empty.
/// Bounds beyond the dtype mean its last numbers: randint(key, {4}, 0, 256, DType::u8) gives all of
/// them. Unless the size of the range is a power of two, some of its numbers are more likely than
/// others, by at most size / 2^32 for dtypes up to 32 bits and size / 2^64 for those of 64.
/// @error invalid argument unless dtype is an integer.
Tensor randint(In key, Shape shape, std::int64_t low, std::int64_t high,
               DType dtype = kDefaultInteger);

/// -1 or 1, with equal probability, of any integer or floating-point dtype.
/// @error invalid argument for bool and unsigned dtypes.
Tensor rademacher(In key, Shape shape, DType dtype = kDefaultInteger);

/// The numbers of trials until the first success, each succeeding with this probability: a number
/// or a tensor that broadcasts to `shape`.
/// @error invalid argument unless dtype is an integer.
Tensor geometric(In key, In probability, Shape shape, DType dtype = kDefaultInteger);

/// If `x` is a whole number: 0, 1, ..., x - 1 in random order (i32). Else the slices of the tensor
/// along a dimension, in random order.
/// @error invalid argument if x is neither, or a tensor of rank 0, or negative.
Tensor permutation(In key, In x, std::int64_t dimension = 0);

/// The elements of `x` along a dimension in random order, which differs from vector to vector.
/// @error invalid argument if x is a number or of rank 0.
Tensor shuffle(In key, In x, std::int64_t dimension = 0);

/// Indices along `dimension`, each with the probability that softmax(logits) gives it (i32).
/// @param shape of the result; it ends with the shape of `logits` without `dimension`, or with
/// sizes that this broadcasts to. Left out, it is that shape. Sizes before are further draws.
/// @param replace false: the draws of one distribution differ from one another, likely ones first.
/// @error invalid argument unless logits are f16, bf16, f32 or f64; a shape that does not fit; more
/// draws than indices, without replacement.
Tensor categorical(In key, In logits, std::int64_t dimension = -1,
                   std::optional<Shape> shape = std::nullopt, bool replace = true);

/// How choice() draws.
struct ChoiceOptions {
  /// Whether one can be drawn again.
  bool replace = true;
  /// A vector of floats that sum to 1; without a value: all equal.
  Tensor probabilities = {};
  /// Of the tensor that is drawn from.
  std::int64_t dimension = 0;
};

/// Draws of a tensor's slices along a dimension, or of 0, 1, ..., a - 1 if `a` is a whole number.
/// `shape` replaces the dimension.
/// @error invalid argument if there is nothing to draw; more draws than there are, without
/// replacement; probabilities of another size.
Tensor choice(In key, In a, Shape shape, const ChoiceOptions& options = {});

}  // namespace meshard::random
