// Linear layers as checkpoints store them: dense, or quantized in groups (GPTQ, AWQ).
#pragma once
#include <optional>

#include "examples/llm/model/config.h"
#include "meshard/meshard.h"

namespace llm {

/// A tensor that checkpoints call `weight`.
struct Weight {
  meshard::Tensor weight;
  MESHARD_FIELDS(weight)
};

/// The parameters of a linear layer: weight [out, in]; or quantized, with p = 32 / bits numbers in
/// each i32:
/// - GPTQ (Frantar et al., 2022): qweight i32[in / p, out], qzeros i32[groups, out / p], scales
///   [groups, out], and g_idx i32[in], the group of each input;
/// - AWQ (Lin et al., 2023): qweight i32[in, out / p], qzeros i32[groups, out / p], scales [groups,
/// out].
struct Projection {
  std::optional<meshard::Tensor> weight, bias, qweight, qzeros, scales, g_idx;
  MESHARD_FIELDS(weight, bias, qweight, qzeros, scales, g_idx)
};

/// A low-rank adapter as PEFT stores it: lora_A [rank, in], lora_B [out, rank].
struct Adapter {
  Weight lora_A, lora_B;
  MESHARD_FIELDS(lora_A, lora_B)
};

/// The dense weight [out, in] in this dtype. Quantized weights are computed on their devices.
meshard::Tensor dense_weight(const Projection& params, const Quantization& quantization,
                             meshard::DType dtype);

/// x weight^T + bias, [..., in] to [..., out], in the dtype of x; with an adapter, plus scale * (x
/// lora_A^T) lora_B^T.
meshard::Tensor project(const Projection& params, const Quantization& quantization,
                        const meshard::Tensor& x,
                        const std::optional<Adapter>& adapter = std::nullopt,
                        double adapter_scale = 1);

}  // namespace llm
