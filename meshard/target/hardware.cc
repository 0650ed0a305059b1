#include "meshard/target/hardware.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "meshard/base/error.h"
#include "meshard/topology/tpu_generation.h"

namespace meshard {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;

struct KnownHardware {
  std::vector<std::string_view> names;
  /// Devices that plugins list per chip by default. `chip` holds the figures of a whole chip.
  int devices_per_chip = 1;
  /// Bytes that one device may use; for chips with two devices by default, as a single device.
  std::int64_t chip_memory_bytes = 0;
  HardwareFigures chip;
};

// Figures per chip. f32 products take one bf16 pass at XLA's default precision. ICI: published
// rates count both directions where the page says "bidirectional", else one; these figures count
// one. v2 and v3 have none. topology/tpu_generation.cc has the shape of each generation.
std::vector<KnownHardware> tpu_hardware() {
  constexpr const char* kMemory = "memory: device_memory_bytes_limit of libtpu 0.0.51";
  constexpr const char* kHost =
      "J. Austin et al., How to Scale Your Model (2025), part 2: about 15 GB/s of PCIe for each "
      "chip, 32 GB/s for v6e";
  auto row = [](std::string_view generation, std::int64_t chip_memory_bytes, HardwareFigures chip) {
    const TpuGeneration* tpu = tpu_generation_named(generation);
    internal_check(tpu != nullptr, "[hardware] figures of an unknown generation of TPUs");
    KnownHardware known{tpu->kinds, static_cast<int>(tpu->devices_per_chip), chip_memory_bytes,
                        std::move(chip)};
    known.names.push_back(tpu->name);
    known.chip.link_name = "ICI";
    known.chip.network_name = "DCN";
    return known;
  };
  return {
      row("v4", 33014413312,
          {.matrix_rates = {{"bf16", 275 * kTera}, {"f32", 275 * kTera}, {"s8", 275 * kTera}},
           .memory_bytes = 32745971712,
           .memory_bandwidth = 1200 * kGiga,
           .link_bandwidth = 300 * kGiga,
           .links = 6,
           .sources =
               {"Google Cloud TPU documentation, \"TPU v4\": 275 TFLOPS bf16 or int8, 1200 GBps "
                "HBM",
                "N. Jouppi et al., TPU v4 (ISCA 2023): 6 ICI links of 50 GB/s in each direction",
                kMemory, kHost},
           .host_bandwidth = 15 * kGiga}),
      row("v5e", 0,
          {.matrix_rates = {{"bf16", 197 * kTera}, {"f32", 197 * kTera}, {"s8", 393 * kTera}},
           .memory_bytes = 16909334528,
           .memory_bandwidth = 819 * kGiga,
           .link_bandwidth = 200 * kGiga,
           .links = 4,
           .network_bandwidth = 25 * kGiga / 8,
           .sources = {"Google Cloud TPU documentation, \"TPU v6e\" (comparison with v5e): 197 "
                       "TFLOPS bf16, 393 TOPS int8, 819 GBps HBM, 1600 Gbps ICI over 4 ports, 6.4 "
                       "Tbps DCN per pod of 256",
                       kMemory, kHost},
           .host_bandwidth = 15 * kGiga}),
      row("v5p", 0,
          {.matrix_rates = {{"bf16", 459 * kTera}, {"f32", 459 * kTera}, {"s8", 918 * kTera}},
           .memory_bytes = 102786660352,
           .memory_bandwidth = 2765 * kGiga,
           .link_bandwidth = 600 * kGiga,
           .links = 6,
           .network_bandwidth = 50 * kGiga / 8,
           .sources =
               {"Google Cloud TPU documentation, \"TPU v5p\" and \"TPU7x\": 459 TFLOPS bf16, 918 "
                "TOPS int8, 2765 GBps HBM, 1200 GBps bidirectional ICI, 50 Gbps DCN per chip",
                kMemory, kHost},
           .host_bandwidth = 15 * kGiga}),
      row("v6e", 0,
          {.matrix_rates = {{"bf16", 918 * kTera}, {"f32", 918 * kTera}, {"s8", 1836 * kTera}},
           .memory_bytes = 33546041344,
           .memory_bandwidth = 1638 * kGiga,
           .link_bandwidth = 400 * kGiga,
           .links = 4,
           .network_bandwidth = 100 * kGiga / 8,
           .sources = {"Google Cloud TPU documentation, \"TPU v6e\" and \"TPU7x\": 918 TFLOPS "
                       "bf16, 1836 TOPS int8, 1638 GBps HBM, 800 GBps bidirectional ICI over 4 "
                       "ports, 100 Gbps DCN per chip",
                       kMemory, kHost},
           .host_bandwidth = 32 * kGiga}),
      row("tpu7x", 2 * 101724450816,
          {.matrix_rates = {{"bf16", 2307 * kTera}, {"f32", 2307 * kTera}, {"f8", 4614 * kTera}},
           .memory_bytes = 101724450816,
           .memory_bandwidth = 7380 * kGiga,
           .link_bandwidth = 600 * kGiga,
           .links = 6,
           .network_bandwidth = 100 * kGiga / 8,
           .sources = {
               "Google Cloud TPU documentation, \"TPU7x\": per chip of two devices 2307 TFLOPS "
               "bf16, 4614 TFLOPS fp8, 7380 GBps HBM, 1200 GBps bidirectional ICI, 100 Gbps DCN",
               kMemory}})};
}

// Dense rates: the data sheets list rates with sparsity, which are twice as high. f32 products use
// TF32, XLA's default. The data sheets' NVLink and PCIe rates count both directions.
std::vector<KnownHardware> gpu_hardware() {
  const std::vector<HardwareFigures::Rate> hopper = {{"f64", 66.9 * kTera},
                                                     {"f32", 494.7 * kTera},
                                                     {"bf16", 989.4 * kTera},
                                                     {"f8", 1978.9 * kTera},
                                                     {"s8", 1978.9 * kTera}};
  constexpr double kHostBandwidth = 64 * kGiga;
  constexpr const char* kHost =
      "NVIDIA H100, HGX H200 and HGX B200 data sheets: PCIe Gen5, 128 GB/s in both directions";
  constexpr const char* kAdds =
      "NVIDIA NCCL release notes 2.17: all-reduces in the NVLink switch (NVLink SHARP)";
  return {
      {{"NVIDIA H100 80GB HBM3", "h100"},
       1,
       0,
       {hopper,
        85028765696,
        3352 * kGiga,
        450 * kGiga,
        18,
        "NVLink",
        50 * kGiga,
        "InfiniBand",
        {"NVIDIA H100 Tensor Core GPU Architecture (white paper), H100 SXM5: dense rates, 3352 "
         "GB/s "
         "HBM3; memory as its driver reports it",
         "NVIDIA H100 data sheet: 900 GB/s NVLink in both directions",
         "NVIDIA DGX H100 data sheet: a ConnectX-7 of 400 Gb/s for each GPU", kHost, kAdds},
        kHostBandwidth,
        true}},
      {{"NVIDIA H200 141GB HBM3e", "NVIDIA H200", "h200"},
       1,
       0,
       {hopper,
        151397597184,
        4800 * kGiga,
        450 * kGiga,
        18,
        "NVLink",
        50 * kGiga,
        "InfiniBand",
        {"NVIDIA H200 data sheet, H200 SXM: rates of the H100, 4.8 TB/s HBM3e, 900 GB/s NVLink in "
         "both "
         "directions; memory as its driver reports it",
         "NVIDIA DGX H200 data sheet: a ConnectX-7 of 400 Gb/s for each GPU", kHost, kAdds},
        kHostBandwidth,
        true}},
      {{"NVIDIA B200", "b200"},
       1,
       0,
       {{{"f64", 37 * kTera},
         {"f32", 1125 * kTera},
         {"bf16", 2250 * kTera},
         {"f8", 4500 * kTera},
         {"s8", 4500 * kTera},
         {"f4", 9000 * kTera}},
        191514411008,
        7672 * kGiga,
        900 * kGiga,
        18,
        "NVLink",
        50 * kGiga,
        "InfiniBand",
        {"NVIDIA HGX B200 data sheet, an eighth of the board: dense rates, 1.8 TB/s NVLink in both "
         "directions; memory and its bandwidth as its driver reports them",
         "NVIDIA DGX B200 data sheet: a ConnectX-7 of 400 Gb/s for each GPU", kHost, kAdds},
        kHostBandwidth,
        true}},
  };
}

const KnownHardware* find_hardware(std::string_view kind) {
  static const std::vector<KnownHardware> all = [] {
    std::vector<KnownHardware> list = tpu_hardware();
    for (KnownHardware& gpu : gpu_hardware()) list.push_back(std::move(gpu));
    return list;
  }();
  for (const KnownHardware& known : all)
    if (std::find(known.names.begin(), known.names.end(), kind) != known.names.end()) return &known;
  return nullptr;
}

HardwareFigures device_share(const KnownHardware& known, int devices_per_chip) {
  HardwareFigures figures = known.chip;
  if (devices_per_chip == 1 && known.devices_per_chip > 1)
    figures.memory_bytes = known.chip_memory_bytes;
  for (HardwareFigures::Rate& rate : figures.matrix_rates) rate.flops /= devices_per_chip;
  figures.memory_bandwidth /= devices_per_chip;
  figures.link_bandwidth /= devices_per_chip;
  figures.network_bandwidth /= devices_per_chip;
  figures.host_bandwidth /= devices_per_chip;
  return figures;
}

struct TypeWidth {
  bool floating = false;
  int bits = 0;
};

// Parses `bf16`, `f8e4m3fn`, `f8E4M3FN`, `s8`, `ui8`, `i1`, `pred`, `c64`.
TypeWidth width_of(std::string_view type) {
  if (type == "pred") return {false, 8};
  std::size_t digits = type.find_first_of("0123456789");
  if (digits == std::string_view::npos) return {};
  TypeWidth width;
  std::from_chars(type.data() + digits, type.data() + type.size(), width.bits);
  std::string_view letters = type.substr(0, digits);
  width.floating = letters == "f" || letters == "bf" || letters == "c";
  if (letters == "c") width.bits /= 2;
  return width;
}

}  // namespace

double HardwareFigures::matrix_rate(std::string_view element_type) const {
  TypeWidth wanted = width_of(element_type);
  bool has_kind = std::any_of(matrix_rates.begin(), matrix_rates.end(), [&](const Rate& rate) {
    return width_of(rate.element_type).floating == wanted.floating;
  });
  const Rate* best = nullptr;
  int best_bits = 0;
  for (const Rate& rate : matrix_rates) {
    TypeWidth width = width_of(rate.element_type);
    if (has_kind && width.floating != wanted.floating) continue;
    bool fits = width.bits >= wanted.bits, best_fits = best != nullptr && best_bits >= wanted.bits;
    // Prefers the narrowest type that is wide enough, else the widest.
    bool better = best == nullptr || (fits && (!best_fits || width.bits < best_bits)) ||
                  (!fits && !best_fits && width.bits > best_bits);
    if (!better) continue;
    best = &rate;
    best_bits = width.bits;
  }
  return best == nullptr ? 0 : best->flops;
}

std::optional<HardwareFigures> hardware_figures(std::string_view device_kind) {
  const KnownHardware* known = find_hardware(device_kind);
  if (known == nullptr) return std::nullopt;
  return device_share(*known, known->devices_per_chip);
}

std::optional<HardwareFigures> hardware_figures(const Topology& topology) {
  const KnownHardware* known = find_hardware(topology.kind());
  if (known == nullptr) return std::nullopt;
  std::int64_t cores = 1;
  for (const DeviceAttributes& device : topology.devices())
    cores = std::max(cores, device.core_on_chip + 1);
  return device_share(*known,
                      static_cast<int>(std::min<std::int64_t>(cores, known->devices_per_chip)));
}

std::optional<std::int64_t> device_memory(const Target& target) {
  std::optional<HardwareFigures> figures = hardware_figures(target.topology());
  if (!figures || figures->memory_bytes <= 0) return std::nullopt;
  return figures->memory_bytes;
}

}  // namespace meshard
