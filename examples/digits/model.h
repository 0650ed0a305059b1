// A perceptron of three layers, spread over a mesh with the axes "data" and "model".
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "meshard/meshard.h"

namespace digits {

/// y = x w + b.
struct Linear {
  meshard::Tensor w, b;
  MESHARD_FIELDS(w, b)
};

/// 64 -> 256 -> 128 -> 10. The first weight is split by columns and the second by rows, both over
/// "model": each device computes its part of the 256 hidden values and multiplies it on with its
/// own rows, so that a single sum over "model" (an all-reduce) joins the parts. The last layer is
/// small and lies on every device.
struct Perceptron {
  Linear columns, rows, head;
  MESHARD_FIELDS(columns, rows, head)
};

/// Fresh weights on the devices of `mesh`: the same numbers for one seed, whatever the mesh.
Perceptron make_perceptron(const meshard::Mesh& mesh, std::uint64_t seed);

/// What it thinks of each image: f32[images, 10], the largest number is its answer.
meshard::Tensor logits_of(const Perceptron& model, const meshard::Tensor& images);

/// The mean cross-entropy of the answers.
meshard::Tensor loss_of(const Perceptron& model, const meshard::Tensor& images,
                        const meshard::Tensor& labels);

/// The bytes of all tensors of `value` on the device at a position of their meshes.
template <class T>
std::int64_t bytes_on_device(const T& value) {
  std::int64_t bytes = 0;
  for (const meshard::Tensor& tensor : meshard::structure::tensors(value)) {
    std::int64_t elements = 1;
    for (std::int64_t size : tensor.sharding()->shard_shape(tensor.shape())) elements *= size;
    bytes += elements * static_cast<std::int64_t>(meshard::size_in_bytes(tensor.dtype()));
  }
  return bytes;
}

}  // namespace digits
