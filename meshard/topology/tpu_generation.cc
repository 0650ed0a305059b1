#include "meshard/topology/tpu_generation.h"

#include <algorithm>

namespace meshard {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;
constexpr const char* kMemory = "memory: device_memory_bytes_limit of libtpu 0.0.51";

// When directions close: TPU system architecture,
// https://docs.cloud.google.com/tpu/docs/system-architecture-tpu-vm. Figures are per chip. f32
// products take one bf16 pass at XLA's default precision. ICI: published rates count both
// directions where the page says "bidirectional", else one; these figures count one.

TpuGeneration v4() {
  return {.name = "v4",
          .kinds = {"TPU v4"},
          .directions = 3,
          .devices_per_chip = 2,
          .megacore = true,
          .closing_multiple = 4,
          .figures = TpuFigures{
              .matrix_rates = {{"bf16", 275 * kTera}, {"f32", 275 * kTera}, {"s8", 275 * kTera}},
              .memory_bytes = 32745971712,
              .megacore_memory_bytes = 33014413312,
              .memory_bandwidth = 1200 * kGiga,
              .link_bandwidth = 300 * kGiga,
              .links = 6,
              .sources = {
                  "Google Cloud TPU documentation, \"TPU v4\": 275 TFLOPS bf16 or int8, 1200 GBps "
                  "HBM",
                  "N. Jouppi et al., TPU v4 (ISCA 2023): 6 ICI links of 50 GB/s in each direction",
                  kMemory}}};
}

TpuGeneration v5e() {
  return {.name = "v5e",
          .kinds = {"TPU v5 lite", "TPU v5e"},
          .closing_multiple = 16,
          .board_order = TpuBoardOrder::kFlat,
          .figures = TpuFigures{
              .matrix_rates = {{"bf16", 197 * kTera}, {"f32", 197 * kTera}, {"s8", 393 * kTera}},
              .memory_bytes = 16909334528,
              .memory_bandwidth = 819 * kGiga,
              .link_bandwidth = 200 * kGiga,
              .links = 4,
              .network_bandwidth = 25 * kGiga / 8,
              .sources = {
                  "Google Cloud TPU documentation, \"TPU v6e\" (comparison with v5e): 197 TFLOPS "
                  "bf16, 393 TOPS "
                  "int8, 819 GBps HBM, 1600 Gbps ICI over 4 ports, 6.4 Tbps DCN per pod of 256",
                  kMemory}}};
}

TpuGeneration v5p() {
  return {.name = "v5p",
          .kinds = {"TPU v5", "TPU v5p"},
          .directions = 3,
          .closing_multiple = 4,
          .figures = TpuFigures{
              .matrix_rates = {{"bf16", 459 * kTera}, {"f32", 459 * kTera}, {"s8", 918 * kTera}},
              .memory_bytes = 102786660352,
              .memory_bandwidth = 2765 * kGiga,
              .link_bandwidth = 600 * kGiga,
              .links = 6,
              .network_bandwidth = 50 * kGiga / 8,
              .sources = {
                  "Google Cloud TPU documentation, \"TPU v5p\" and \"TPU7x\": 459 TFLOPS bf16, 918 "
                  "TOPS int8, "
                  "2765 GBps HBM, 1200 GBps bidirectional ICI, 50 Gbps DCN per chip",
                  kMemory}}};
}

TpuGeneration v6e() {
  return {
      .name = "v6e",
      .kinds = {"TPU v6 lite", "TPU v6e"},
      .closing_multiple = 16,
      .board_order = TpuBoardOrder::kFlat,
      .figures = TpuFigures{
          .matrix_rates = {{"bf16", 918 * kTera}, {"f32", 918 * kTera}, {"s8", 1836 * kTera}},
          .memory_bytes = 33546041344,
          .memory_bandwidth = 1638 * kGiga,
          .link_bandwidth = 400 * kGiga,
          .links = 4,
          .network_bandwidth = 100 * kGiga / 8,
          .sources = {
              "Google Cloud TPU documentation, \"TPU v6e\" and \"TPU7x\": 918 TFLOPS bf16, 1836 "
              "TOPS int8, "
              "1638 GBps HBM, 800 GBps bidirectional ICI over 4 ports, 100 Gbps DCN per chip",
              kMemory}}};
}

TpuGeneration tpu7x() {
  return {.name = "tpu7x",
          .kinds = {"TPU7x", "TPU v7x"},
          .directions = 3,
          .devices_per_chip = 2,
          .closing_multiple = 4,
          .board_order = TpuBoardOrder::kRingsOfTwoBoards,
          .has_hybrid_cores = true,
          .figures = TpuFigures{
              .matrix_rates = {{"bf16", 2307 * kTera}, {"f32", 2307 * kTera}, {"f8", 4614 * kTera}},
              .memory_bytes = 101724450816,
              .megacore_memory_bytes = 2 * 101724450816,
              .memory_bandwidth = 7380 * kGiga,
              .link_bandwidth = 600 * kGiga,
              .links = 6,
              .network_bandwidth = 100 * kGiga / 8,
              .sources = {
                  "Google Cloud TPU documentation, \"TPU7x\": per chip of two devices 2307 TFLOPS "
                  "bf16, 4614 "
                  "TFLOPS fp8, 7380 GBps HBM, 1200 GBps bidirectional ICI, 100 Gbps DCN",
                  kMemory}}};
}

std::vector<TpuGeneration> all_generations() {
  return {{.name = "v2",
           .kinds = {"TPU v2"},
           .devices_per_chip = 2,
           .board_order = TpuBoardOrder::kRingOfEight},
          {.name = "v3",
           .kinds = {"TPU v3"},
           .devices_per_chip = 2,
           .board_order = TpuBoardOrder::kRingOfEight},
          v4(),
          v5e(),
          v5p(),
          v6e(),
          tpu7x()};
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
