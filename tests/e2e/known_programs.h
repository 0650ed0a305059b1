// Programs with known partitioning costs, and how to check these.
#pragma once
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "meshard/meshard.h"

namespace meshard::known {

constexpr std::int64_t kBytesOfF32 = 4;

/// The line of the program below whose collective is checked, as reports print it.
inline std::uint32_t line = 0;
inline std::string place() { return cat("known_programs.h:", line); }

/// Two layers, the first split by columns, the second by rows (Shoeybi et al., Megatron-LM, 2019,
/// section 3): one sum of the second layer's result over "model".
inline Tensor mlp(const Tensor& x, const Tensor& v, const Tensor& w) {
  Tensor hidden = tanh(matmul(x, v));
  line = SourceLocation::current().line + 1;
  return matmul(hidden, w);
}

/// The same with the outer activations split along the sequence (Korthikanti et al., 2022, section
/// 4.2.2): gathered before the layers, reduce-scattered after them.
inline Tensor sequence_mlp(const Tensor& x, const Tensor& v, const Tensor& w,
                           const Sharding& outside, const Sharding& whole) {
  Tensor gathered = mark_sharding(x, whole);
  return mark_sharding(matmul(tanh(matmul(gathered, v)), w), outside);
}

/// The gradients of two layers' weights, with the sharding of the weights (Rajbhandari et al.,
/// ZeRO, 2020, stage 3): each weight is gathered, each gradient is reduce-scattered.
inline std::vector<Tensor> gradients(const Tensor& v, const Tensor& w, const Tensor& x) {
  auto both = grad([](std::vector<Tensor> weights, Tensor t) {
    return meshard::sum(tanh(matmul(tanh(matmul(t, weights[0])), weights[1])));
  })(std::vector<Tensor>{v, w}, x);
  return {mark_sharding(both[0], *v.sharding()), mark_sharding(both[1], *w.sharding())};
}

/// The sum over a split dimension.
inline Tensor total(const Tensor& x) {
  line = SourceLocation::current().line + 1;
  return meshard::sum(exp(x), 0);
}

/// Bytes of the collectives of these kinds, in ascending order.
inline std::vector<std::int64_t> bytes_of(const ProgramReport& report,
                                          const std::vector<CollectiveKind>& kinds) {
  std::vector<std::int64_t> bytes;
  for (const Collective& one : report.collectives())
    if (std::find(kinds.begin(), kinds.end(), one.kind) != kinds.end())
      bytes.push_back(one.bytes());
  std::sort(bytes.begin(), bytes.end());
  return bytes;
}

inline std::int64_t sum(const std::vector<std::int64_t>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
}

/// What a sum over devices may be compiled to: if a device needs only its part of the result, the
/// sum may be a reduce-scatter, or an all-reduce and a slice.
inline const std::vector<CollectiveKind> kSums{CollectiveKind::kAllReduce,
                                               CollectiveKind::kReduceScatter};

/// x = tanh(x w), 12 times; each iteration needs the sum over "model". For 8 devices.
inline constexpr const char* kLoop = R"(
module @loop attributes {mhlo.num_partitions = 8 : i32} {
  sdy.mesh @mesh = <["data"=2, "model"=4]>
  func.func @main(
      %x: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
      %w: tensor<32x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>})
      -> (tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %r:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<16x32xf32>
    cond {
      %n = stablehlo.constant dense<12> : tensor<i32>
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %k = sdy.sharding_constraint %v <@mesh, [{"data"}, {"model"}]> : tensor<16x32xf32>
      %d = stablehlo.dot_general %k, %w, contracting_dims = [1] x [0]
          : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
      %s = sdy.sharding_constraint %d <@mesh, [{"data"}, {}]> : tensor<16x32xf32>
      %t = stablehlo.tanh %s : tensor<16x32xf32>
      stablehlo.return %j, %t : tensor<i32>, tensor<16x32xf32>
    }
    return %r#1 : tensor<16x32xf32>
  }
}
)";

}  // namespace meshard::known
