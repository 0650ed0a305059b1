// What one layer of the model does, but for where its keys and values are. Used by model.cc and
// cache.cc.
#pragma once
#include <optional>

#include "examples/llm/model/model.h"
#include "meshard/ops/definition/capped_attention.h"

namespace llm {

/// Constants of one layer, or stacked of all: the angles per position, [head size / 2]; and how
/// many positions a position sees, i32.
struct LayerSetting {
  meshard::Tensor frequencies, window;
  MESHARD_FIELDS(frequencies, window)
};

/// A slice of the loop over the layers.
struct LayerStep {
  Layer layer;
  LayerSetting setting;
  std::optional<LayerAdapters> adapters;
  MESHARD_FIELDS(layer, setting, adapters)
};

/// All layers, stacked, as the loop slices them.
LayerStep stacked_steps(const Model& model, const Config& config,
                        const std::optional<Adaptation>& adaptation = std::nullopt);

/// A layer: its functions share the parameters.
class Block {
 public:
  /// @pre the step outlives it
  Block(const LayerStep& step, const Config& config, const meshard::nn::AxisRules& rules,
        double adapter_scale = 1)
      : step_(step), config_(config), rules_(rules), adapter_scale_(adapter_scale) {}

  struct Heads {
    meshard::Tensor query, key, value;
  };
  /// Queries, keys and values [batch, time, heads, size] of x, rotated to their positions, i32
  /// [time] or [batch, time].
  Heads heads_of(const meshard::Tensor& x, const meshard::Tensor& positions) const;
  /// Attends, masked by `seen` (or causally if it is undefined).
  meshard::Tensor attend(const Heads& heads, const meshard::Tensor& seen) const;
  /// The stream after the layer, of that before it and what was attended to.
  meshard::Tensor finish(const meshard::Tensor& x, const meshard::Tensor& attended) const;

  /// Bools: whether positions see those of keys, which broadcast; with the window of the layer.
  meshard::Tensor sees(const meshard::Tensor& positions, const meshard::Tensor& keys) const;

 private:
  meshard::Tensor norm(const Weight& weight, const meshard::Tensor& x) const;
  meshard::Tensor rotated(const meshard::Tensor& heads, const meshard::Tensor& positions) const;
  meshard::Tensor mlp(const meshard::Tensor& x) const;
  meshard::Tensor experts(const Weight& router, const Expert& stacked,
                          const meshard::Tensor& x) const;
  meshard::Tensor project_by(const Projection& params, const meshard::Tensor& x,
                             const std::optional<Adapter>& adapter) const;
  const LayerStep& step_;
  const Config& config_;
  const meshard::nn::AxisRules& rules_;
  double adapter_scale_;
};

/// Embeddings of tokens, [batch, time] to [batch, time, width].
meshard::Tensor embedded(const Model& model, const Config& config, const meshard::Tensor& tokens,
                         const meshard::nn::AxisRules& rules);
/// The logits, f32, of the stream after the last layer.
meshard::Tensor to_logits(const Model& model, const Config& config, const meshard::Tensor& x,
                          const meshard::nn::AxisRules& rules);

}  // namespace llm
