// Tested in tests/e2e/llm_test.cc.
#include "examples/llm/model/projection.h"

namespace llm {

using namespace meshard;

namespace {

// The numbers of `bits` bits in each i32, at these shifts, along a new last dimension.
Tensor unpacked(const Tensor& packed, std::vector<std::int32_t> shifts, std::int64_t bits) {
  auto count = static_cast<std::int64_t>(shifts.size());
  Tensor moved =
      shift_right_logical(expand_dims(packed, -1), from_host(std::move(shifts), {count}));
  return bitwise_and(moved, full({}, static_cast<std::int32_t>((1 << bits) - 1), DType::i32));
}

std::vector<std::int32_t> ascending_shifts(std::int64_t bits) {
  std::vector<std::int32_t> shifts;
  for (std::int64_t shift = 0; shift < 32; shift += bits)
    shifts.push_back(static_cast<std::int32_t>(shift));
  return shifts;
}

// [groups, out] of [groups, out / p].
Tensor zero_points(const Projection& params, std::vector<std::int32_t> shifts,
                   const Quantization& how) {
  Tensor zeros = unpacked(*params.qzeros, std::move(shifts), how.bits);
  zeros = reshape(zeros, {zeros.dim(0), zeros.dim(1) * zeros.dim(2)});
  return how.zero_minus_one ? zeros + 1 : zeros;
}

Tensor gptq_weight(const Projection& params, const Quantization& how) {
  std::vector<std::int32_t> shifts = ascending_shifts(how.bits);
  Tensor q = swapaxes(unpacked(*params.qweight, shifts, how.bits), 1, 2);  // [in / p, p, out]
  q = reshape(q, {q.dim(0) * q.dim(1), q.dim(2)});
  Tensor zeros = take(zero_points(params, shifts, how), *params.g_idx, 0);
  Tensor scales = astype(take(*params.scales, *params.g_idx, 0), DType::f32);
  return astype(q - zeros, DType::f32) * scales;
}

// AWQ's kernels interleave columns: column c of eight is number kOrder[c] of an i32.
Tensor awq_weight(const Projection& params, const Quantization& how) {
  constexpr std::int32_t kOrder[] = {0, 4, 1, 5, 2, 6, 3, 7};
  std::vector<std::int32_t> shifts;
  for (std::int32_t place : kOrder) shifts.push_back(4 * place);
  Tensor q = unpacked(*params.qweight, shifts, how.bits);
  std::int64_t in = q.dim(0), out = q.dim(1) * q.dim(2), groups = params.scales->dim(0);
  q = reshape(q, {groups, in / groups, out});
  Tensor zeros = expand_dims(zero_points(params, shifts, how), 1);
  Tensor scales = expand_dims(astype(*params.scales, DType::f32), 1);
  return reshape(astype(q - zeros, DType::f32) * scales, {in, out});
}

}  // namespace

Tensor dense_weight(const Projection& params, const Quantization& quantization, DType dtype) {
  if (params.weight) return astype(*params.weight, dtype);
  Tensor weight = quantization.method == Quantization::Method::kGptq
                      ? gptq_weight(params, quantization)
                      : awq_weight(params, quantization);
  return astype(permute_dims(weight, {1, 0}), dtype);
}

Tensor project(const Projection& params, const Quantization& quantization, const Tensor& x,
               const std::optional<Adapter>& adapter, double adapter_scale) {
  Tensor y = einsum("...i,oi->...o", {x, dense_weight(params, quantization, x.dtype())});
  if (params.bias) y = y + astype(*params.bias, x.dtype());
  if (!adapter) return y;
  Tensor low = einsum("...i,ri->...r", {x, astype(adapter->lora_A.weight, x.dtype())});
  return y +
         einsum("...r,or->...o", {low, astype(adapter->lora_B.weight, x.dtype())}) * adapter_scale;
}

}  // namespace llm
