#include "examples/digits/model.h"

#include <cmath>
#include <utility>

#include "examples/digits/data.h"

namespace digits {
namespace {

using namespace meshard;

// Uniform in [-limit, limit) with limit = sqrt(6 / inputs), for relu: He et al., 2015.
Tensor random_weight(std::int64_t inputs, std::int64_t outputs, std::uint64_t& random,
                     const Mesh& mesh, const PartitionSpec& spec) {
  double limit = std::sqrt(6.0 / static_cast<double>(inputs));
  HostArray weight = HostArray::uninitialized({DType::f32, {inputs, outputs}});
  for (float& value : weight.mutable_data<float>())
    value = static_cast<float>((std::ldexp(double(next_random(random) >> 11), -52) - 1) * limit);
  return mark_sharding(from_host(std::move(weight)), mesh, spec);
}

Tensor zero_bias(std::int64_t outputs, const Mesh& mesh, const PartitionSpec& spec) {
  return mark_sharding(from_host(HostArray::zeros({DType::f32, {outputs}})), mesh, spec);
}

}  // namespace

Classifier make_classifier(const Mesh& mesh, std::uint64_t seed) {
  Classifier model;
  model.columns.w = random_weight(kPixels, 256, seed, mesh, P(none, "model"));
  model.columns.b = zero_bias(256, mesh, P("model"));
  model.rows.w = random_weight(256, 128, seed, mesh, P("model", none));
  model.rows.b = zero_bias(128, mesh, P(none));
  model.head.w = random_weight(128, kClasses, seed, mesh, P(none, none));
  model.head.b = zero_bias(kClasses, mesh, P(none));
  return model;
}

Tensor logits_of(const Classifier& model, const Tensor& images) {
  return apply(model.head, hidden(model.rows, hidden(model.columns, images)));
}

Tensor hidden(const Linear& layer, const Tensor& x) { return relu(apply(layer, x)); }
Tensor apply(const Linear& layer, const Tensor& x) { return matmul(x, layer.w) + layer.b; }

Tensor loss_of(const Classifier& model, const Tensor& images, const Tensor& labels) {
  return cross_entropy(logits_of(model, images), labels);
}

}  // namespace digits
