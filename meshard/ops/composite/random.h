// Stateless random numbers: a number is a function of a key and a position.
//
// The generator is Threefry-2x32 with 20 rounds (Salmon, Moraes, Dror, Shaw: Parallel Random
// Numbers: As Easy as 1, 2, 3, SC 2011). An element's counter is its row-major position in the
// whole tensor, as in JAX's partitionable scheme, and the bits are equal to JAX's. So values do not
// depend on the mesh, and every device computes its own part without communication. (The last
// digits of functions that use a logarithm or similar, such as normal(), can differ if a compiler
// computes it differently for another shape of the shards.)
//
// A key is a tensor u32[2]. Use each key only once: derive new ones with split or fold_in.
//
//     Tensor seed = random::key(42);
//     std::vector<Tensor> keys = random::split(seed, 2);
//     Tensor w = random::normal(keys[0], {256, 64});
//     Tensor mask = random::bernoulli(random::fold_in(keys[1], step), 0.9, {32, 64});
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "meshard/graph/tensor.h"

namespace meshard::random {

/// The key of a seed. It is data, not part of the program: another seed does not compile another
/// program. Seeds that fit into 32 signed bits use only these bits, as in JAX without 64-bit mode.
Tensor key(std::int64_t seed, SourceLocation where = SourceLocation::current());

/// Derives `count` new keys. @error invalid argument if count is negative, or `key` is not a key.
std::vector<Tensor> split(In key, std::int64_t count = 2);

/// Derives one new key per element of `shape`, as one tensor u32[shape..., 2]. They equal the keys
/// of `split`, in row-major order.
Tensor split_into(In key, Shape shape);

/// Derives a key from this key and a number, such as a step, a layer, a rank. The number may be a
/// tensor of rank 0; only its low 32 bits are used. @error invalid argument if it is not a whole
/// number.
Tensor fold_in(In key, In number);

/// The generator itself: two random words for the 64-bit counter (high, low) under a key. The
/// counter's halves are u32, of one shape.
std::pair<Tensor, Tensor> threefry(In key, In high, In low);

/// Random bits as unsigned integers of `dtype`: u8, u16, u32 or u64.
Tensor bits(In key, Shape shape, DType dtype = DType::u32);

/// Uniform in [low, high). 16-bit floats get as many random bits as their mantissa holds.
/// @error invalid argument unless dtype is f16, bf16, f32 or f64.
Tensor uniform(In key, Shape shape, DType dtype = kDefaultFloat, double low = 0, double high = 1);

/// Normal with mean 0 and standard deviation 1. @error as uniform
Tensor normal(In key, Shape shape, DType dtype = kDefaultFloat);

/// True with this probability: a number or a tensor that broadcasts to `shape`.
Tensor bernoulli(In key, In probability, Shape shape);

}  // namespace meshard::random
