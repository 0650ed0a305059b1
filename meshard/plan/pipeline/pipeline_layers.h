// A model as a sequence of layers, which can be divided into stages anywhere.
#pragma once
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#include "meshard/pipeline/stage.h"

namespace meshard {

/// A model of which any range of layers can be a stage.
struct PipelineLayers {
  int count = 0;
  /// Makes the stage of the layers in [begin, end), with its parameters, on a mesh. The stage with
  /// layer 0 is a function of (parameters, batch), others of (parameters, what the previous stage
  /// returned, batch); the stage with the last layer returns the loss.
  std::function<PipelineStage(int begin, int end, const Mesh& mesh)> stage;
};

/// The layers of a model whose layers have parameters of one type, and pass on values of one type.
///
/// @code
/// std::vector<Tensor> weights(6, ones({8, 8}) * 0.1f);
/// PipelineLayers model = pipeline_layers(
///     weights, [](const Tensor& x) { return x; },
///     [](const Tensor& w, const Tensor& h) { return tanh(matmul(h, w)); },
///     [](const Tensor& h, const Tensor& x) { return mean(square(h - x)); });
/// Mesh mesh({{"stage", 2}, {"x", 4}});
/// Pipeline pipeline({model.stage(0, 3, *mesh.submesh({"x"}, 0)),
///                    model.stage(3, 6, *mesh.submesh({"x"}, 4))},
///                   one_forward_one_backward(2, 2), {.optimizer = optim::Sgd{.rate = 0.1}});
/// std::cout << (pipeline.step(std::vector<Tensor>(2, ones({4, 8}))).item<float>() > 0) << "\n";
/// @endcode
/// prints `1`.
///
/// @param layers the parameters of each layer. A stage's are a vector of those of its layers.
/// @param enter of (batch): what the first layer gets
/// @param apply of (parameters of a layer, value): what it passes on, of the same type as the value
/// @param loss of (value of the last layer, batch), a float of rank 0. States its argument types.
template <class Params, class Enter, class Apply, class Loss>
PipelineLayers pipeline_layers(std::vector<Params> layers, Enter enter, Apply apply, Loss loss,
                               PipelineStageOptions options = {},
                               SourceLocation where = SourceLocation::current()) {
  static_assert(internal::HasStageSignature<Loss>,
                "the loss states its argument types: [](const Hidden&, const Batch&)");
  using Arguments = typename internal::StageSignature<Loss>::Arguments;
  using Hidden = std::tuple_element_t<0, Arguments>;
  using Batch = std::tuple_element_t<1, Arguments>;
  using Stage = std::vector<Params>;
  auto count = static_cast<int>(layers.size());
  auto run = [apply](const Stage& own, Hidden value) {
    for (const Params& one : own) value = apply(one, value);
    return value;
  };
  return {count, [=](int begin, int end, const Mesh& mesh) {
            Stage own(layers.begin() + begin, layers.begin() + end);
            const auto made = [&](auto f) { return PipelineStage(mesh, own, f, options, where); };
            if (begin == 0 && end == count)
              return made([=](const Stage& given, const Batch& batch) {
                return loss(run(given, enter(batch)), batch);
              });
            if (begin == 0)
              return made(
                  [=](const Stage& given, const Batch& batch) { return run(given, enter(batch)); });
            if (end == count)
              return made([=](const Stage& given, const Hidden& value, const Batch& batch) {
                return loss(run(given, value), batch);
              });
            return made([=](const Stage& given, const Hidden& value, const Batch&) {
              return run(given, value);
            });
          }};
}

}  // namespace meshard
