#include "meshard/topology/tpu_generation.h"

#include <algorithm>

namespace meshard {
namespace {

// When directions close: TPU system architecture,
// https://docs.cloud.google.com/tpu/docs/system-architecture-tpu-vm.
std::vector<TpuGeneration> all_generations() {
  return {{.name = "v2",
           .kinds = {"TPU v2"},
           .devices_per_chip = 2,
           .board_order = TpuBoardOrder::kRingOfEight},
          {.name = "v3",
           .kinds = {"TPU v3"},
           .devices_per_chip = 2,
           .board_order = TpuBoardOrder::kRingOfEight},
          {.name = "v4",
           .kinds = {"TPU v4"},
           .directions = 3,
           .devices_per_chip = 2,
           .megacore = true,
           .closing_multiple = 4},
          {.name = "v5e",
           .kinds = {"TPU v5 lite", "TPU v5e"},
           .closing_multiple = 16,
           .board_order = TpuBoardOrder::kFlat},
          {.name = "v5p", .kinds = {"TPU v5", "TPU v5p"}, .directions = 3, .closing_multiple = 4},
          {.name = "v6e",
           .kinds = {"TPU v6 lite", "TPU v6e"},
           .closing_multiple = 16,
           .board_order = TpuBoardOrder::kFlat},
          {.name = "tpu7x",
           .kinds = {"TPU7x", "TPU v7x"},
           .directions = 3,
           .devices_per_chip = 2,
           .closing_multiple = 4,
           .board_order = TpuBoardOrder::kRingsOfTwoBoards,
           .has_hybrid_cores = true}};
}

}  // namespace

std::span<const TpuGeneration> tpu_generations() {
  static const std::vector<TpuGeneration> all = all_generations();
  return all;
}

const TpuGeneration* tpu_generation_named(std::string_view name) {
  for (const TpuGeneration& tpu : tpu_generations())
    if (tpu.name == name) return &tpu;
  return nullptr;
}

const TpuGeneration* tpu_generation_of(std::string_view kind) {
  for (const TpuGeneration& tpu : tpu_generations())
    if (std::find(tpu.kinds.begin(), tpu.kinds.end(), kind) != tpu.kinds.end()) return &tpu;
  return nullptr;
}

}  // namespace meshard
