// A three-layer MLP, sharded over a mesh with the axes "data" and "model".
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

/// An MLP with layers 64 -> 256 -> 128 -> 10. The first weight is sharded by columns and the second
/// by rows, both over "model": each device computes its part of the 256 hidden values and
/// multiplies it by its own rows, so that a single sum over "model" (an all-reduce) combines the
/// parts. The last layer is small and replicated.
struct Classifier {
  Linear columns, rows, head;
  MESHARD_FIELDS(columns, rows, head)
};

/// Initializes the weights on the devices of `mesh`. They depend only on the seed, not on the mesh.
Classifier make_classifier(const meshard::Mesh& mesh, std::uint64_t seed);

/// The logits of each image, f32[images, 10]; the largest is the predicted class.
meshard::Tensor logits_of(const Classifier& model, const meshard::Tensor& images);

/// One layer, followed by a relu if it is a hidden one.
meshard::Tensor hidden(const Linear& layer, const meshard::Tensor& x);
meshard::Tensor apply(const Linear& layer, const meshard::Tensor& x);

/// The mean cross-entropy of the predictions.
meshard::Tensor loss_of(const Classifier& model, const meshard::Tensor& images,
                        const meshard::Tensor& labels);

/// Bytes of all tensors of `value` on one device.
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
