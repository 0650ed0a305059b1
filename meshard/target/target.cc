#include "meshard/target/target.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"
#include "meshard/layout/text_scanner.h"
#include "meshard/topology/tpu_topology.h"

namespace meshard {
namespace {

// As for TPUs: device counts are bounded, so that a typo does not exhaust memory.
constexpr std::int64_t kMostGpus = std::int64_t{1} << 20;
// The CPU plugin packs device ids so that one process can have at most 2048 devices.
constexpr std::int64_t kMostCpus = 2048;

std::string known_targets() {
  std::string gpus;
  for (const GpuKind& kind : gpu_kinds())
    gpus += kind.most_in_domain == 0 ? cat("`", kind.name, ":4x8`, ")
                                     : cat("`", kind.name, ":2x", kind.most_in_domain, "`, ");
  return cat(
      "TPUs `v5e:4x4`, `v6e:16x16`, `v5p:4x4x4`, `v4:4x4x4`, `tpu7x:4x4x4`, several slices "
      "`v5e:16x16*2`; GPUs by nodes (or NVLink domains) and devices of each ",
      gpus, "`h100:8`; virtual CPU devices `cpu:8`");
}

Error bad_target(std::string_view name, std::string_view why) {
  return Error(ErrorCode::kInvalidArgument,
               cat("[target] `", name, "`: ", why, "; known targets are ", known_targets()));
}

std::int64_t read_count(TextScanner& scanner, std::int64_t most) {
  std::int64_t count = scanner.integer();
  if (count < 1 || count > most) scanner.fail(cat("a size must be 1 to ", most, ", got ", count));
  return count;
}

Topology nodes_of(std::int64_t nodes, std::int64_t devices_per_node, std::string_view kind) {
  std::vector<DeviceAttributes> devices;
  devices.reserve(static_cast<std::size_t>(nodes * devices_per_node));
  for (std::int64_t id = 0; id < nodes * devices_per_node; ++id)
    devices.push_back({.id = id,
                       .process_index = id / devices_per_node,
                       .slice_index = {},
                       .coords = {},
                       .core_on_chip = 0,
                       .kind = std::string(kind)});
  return Topology(std::move(devices));
}

// Ids count up host by host; the hosts of a domain are full, except the only one of a small domain.
Topology domains_of(std::int64_t domains, std::int64_t devices, const GpuKind& kind) {
  Topology nodes = nodes_of(domains, devices, kind.description);
  std::vector<DeviceAttributes> all = nodes.devices();
  std::int64_t on_host = std::min<std::int64_t>(devices, kind.on_host);
  for (DeviceAttributes& device : all) {
    device.slice_index = device.id / devices;
    device.process_index = device.id / on_host;
  }
  return Topology(std::move(all));
}

struct PluginTopology {
  std::string name;
  std::vector<pjrt::NamedValue> options;
};

// libtpu takes the number of slices and the v4 megacore configuration as options, not in the name.
PluginTopology tpu_plugin_topology(std::string_view name) {
  constexpr std::string_view kMegacore = "/megacore";
  PluginTopology plugin{std::string(name), {}};
  if (plugin.name.ends_with(kMegacore)) {
    plugin.name.resize(plugin.name.size() - kMegacore.size());
    plugin.options.push_back({"chip_config_name", std::string("megacore")});
  }
  if (std::size_t star = plugin.name.find('*'); star != std::string::npos) {
    TextScanner scanner("slices", std::string_view(plugin.name).substr(star + 1));
    if (std::int64_t slices = scanner.integer(); slices > 1)
      plugin.options.push_back({"num_slices", slices});
    plugin.name.resize(star);
  }
  std::erase(plugin.name, ' ');
  return plugin;
}

struct GpuNodes {
  std::int64_t nodes = 1, devices = 1;
};

GpuNodes read_gpu_nodes(TextScanner& scanner) {
  GpuNodes gpus;
  if (scanner.at_end()) return gpus;
  scanner.expect(":");
  gpus.devices = read_count(scanner, kMostGpus);
  if (!scanner.accept("x")) return gpus;
  gpus.nodes = gpus.devices;
  gpus.devices = read_count(scanner, kMostGpus / gpus.nodes);
  return gpus;
}

std::int64_t read_cpus(TextScanner& scanner) {
  if (scanner.at_end()) return 1;
  scanner.expect(":");
  return read_count(scanner, kMostCpus);
}

// By the box around the coordinates, which may have more directions than the generation's grid.
std::optional<std::string> tpu_name_of(std::span<const DeviceAttributes> devices) {
  const TpuGeneration* tpu = tpu_generation_of(devices[0].kind);
  std::size_t directions = devices[0].coords.size();
  if (!tpu || directions < tpu->directions) return std::nullopt;
  std::vector<std::int64_t> extent(directions, 1);
  for (const DeviceAttributes& device : devices)
    for (std::size_t d = 0; d < directions; ++d)
      extent[d] = std::max(extent[d], device.coords[d] + 1);
  for (std::size_t d = tpu->directions; d < directions; ++d)
    if (extent[d] != 1) return std::nullopt;
  extent.resize(tpu->directions);
  return cat(tpu->name, ":", join(extent, "x"));
}

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

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

KnownHardware tpu_row(std::string_view generation, std::int64_t chip_memory_bytes,
                      HardwareFigures chip) {
  const TpuGeneration* tpu = tpu_generation_named(generation);
  internal_check(tpu != nullptr, "[hardware] figures of an unknown generation of TPUs");
  KnownHardware known{tpu->kinds, static_cast<int>(tpu->devices_per_chip), chip_memory_bytes,
                      std::move(chip)};
  known.names.push_back(tpu->name);
  known.chip.link_name = "ICI";
  known.chip.network_name = "DCN";
  return known;
}

// Figures per chip. f32 products take one bf16 pass at XLA's default precision. ICI: published
// rates count both directions where the page says "bidirectional", else one; these figures count
// one. v2 and v3 have none. topology/tpu_generation.cc has the shape of each generation.
// NOLINTNEXTLINE(readability-function-size): a table
std::vector<KnownHardware> tpu_hardware() {
  constexpr const char* kMemory = "memory: device_memory_bytes_limit of libtpu 0.0.51";
  constexpr const char* kHost =
      "J. Austin et al., How to Scale Your Model (2025), part 2: about 15 GB/s of PCIe for each "
      "chip, 32 GB/s for v6e";
  return {
      tpu_row(
          "v4", 33014413312,
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
      tpu_row(
          "v5e", 0,
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
      tpu_row(
          "v5p", 0,
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
      tpu_row("v6e", 0,
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
      tpu_row(
          "tpu7x", 2 * 101724450816,
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

using Rates = std::vector<HardwareFigures::Rate>;

struct GpuLinks {  // bytes per second in one direction
  double nvlink, network, host;
  std::string_view host_source;
};

KnownHardware nvidia_row(std::string_view name, Rates rates, double memory_bandwidth,
                         const GpuLinks& links, std::vector<std::string> sources) {
  const auto kind = std::ranges::find(gpu_kinds(), name, &GpuKind::name);
  sources.emplace_back(links.host_source);
  sources.emplace_back(
      "NVIDIA NCCL release notes 2.17: all-reduces in the NVLink switch (NVLink SHARP)");
  return KnownHardware{.names = {kind->description, kind->name},
                       .chip = {.matrix_rates = std::move(rates),
                                .memory_bytes = kind->memory_bytes,
                                .memory_bandwidth = memory_bandwidth,
                                .link_bandwidth = links.nvlink,
                                .links = 18,
                                .link_name = "NVLink",
                                .network_bandwidth = links.network,
                                .network_name = "InfiniBand",
                                .sources = std::move(sources),
                                .host_bandwidth = links.host,
                                .switch_adds = true}};
}

// Rates of one GPU, from those of a rack of 72 or a board of 8 in TFLOPS.
Rates blackwell_rates(double gpus, double f64, double f32, double bf16, double f8, double s8,
                      double f4) {
  Rates rates = {{"f64", f64}, {"f32", f32}, {"bf16", bf16}, {"f8", f8}, {"s8", s8}, {"f4", f4}};
  for (HardwareFigures::Rate& rate : rates) rate.flops *= kTera / gpus;
  return rates;
}

// Dense rates: the data sheets list rates with sparsity, which are twice as high. f32 products use
// TF32, XLA's default. The data sheets' NVLink and PCIe rates count both directions.
std::vector<KnownHardware> nvidia_hardware() {
  const Rates hopper = {{"f64", 66.9 * kTera},
                        {"f32", 494.7 * kTera},
                        {"bf16", 989.4 * kTera},
                        {"f8", 1978.9 * kTera},
                        {"s8", 1978.9 * kTera}};
  constexpr std::string_view kGen5 =
      "NVIDIA H100, HGX H200 and HGX B200 data sheets: PCIe Gen5, 128 GB/s in both directions";
  const GpuLinks hopper_links{450 * kGiga, 50 * kGiga, 64 * kGiga, kGen5};
  const GpuLinks grace{900 * kGiga, 50 * kGiga, 225 * kGiga,
                       "NVIDIA GB200 and GB300 NVL72 data sheets: 900 GB/s NVLink-C2C in both "
                       "directions between a Grace CPU and its two GPUs"};
  GpuLinks gb300 = grace;
  gb300.network = 100 * kGiga;
  std::vector<KnownHardware> all = {
      nvidia_row(
          "h100", hopper, 3352 * kGiga, hopper_links,
          {"NVIDIA H100 Tensor Core GPU Architecture (white paper), H100 SXM5: dense rates, 3352 "
           "GB/s HBM3; memory as its driver reports it",
           "NVIDIA H100 data sheet: 900 GB/s NVLink in both directions",
           "NVIDIA DGX H100 data sheet: a ConnectX-7 of 400 Gb/s for each GPU"}),
      nvidia_row(
          "h200", hopper, 4800 * kGiga, hopper_links,
          {"NVIDIA H200 data sheet, H200 SXM: rates of the H100, 4.8 TB/s HBM3e, 900 GB/s NVLink "
           "in both directions; memory as its driver reports it",
           "NVIDIA DGX H200 data sheet: a ConnectX-7 of 400 Gb/s for each GPU"}),
      nvidia_row(
          "b200", blackwell_rates(8, 296, 9000, 18000, 36000, 36000, 72000), 7672 * kGiga,
          {900 * kGiga, 50 * kGiga, 64 * kGiga, kGen5},
          {"NVIDIA HGX B200 data sheet, an eighth of the board: dense rates, 1.8 TB/s NVLink in "
           "both directions; memory and its bandwidth as its driver reports them",
           "NVIDIA DGX B200 data sheet: a ConnectX-7 of 400 Gb/s for each GPU"}),
      nvidia_row(
          "b300", blackwell_rates(8, 10, 9000, 18000, 36000, 1000, 105000), 7936 * kGiga,
          {900 * kGiga, 100 * kGiga, 128 * kGiga,
           "NVIDIA HGX B300 data sheet: PCIe Gen6, 256 GB/s in both directions"},
          {"NVIDIA HGX B300 data sheet, an eighth of the board: dense rates, 1.8 TB/s NVLink in "
           "both directions; memory and its bandwidth as OpenXLA describes the device",
           "NVIDIA HGX B300 data sheet: 1.6 TB/s of networking in both directions, a ConnectX-8 of "
           "800 Gb/s for each GPU"}),
      nvidia_row(
          "gb200", blackwell_rates(72, 2880, 90000, 180000, 360000, 360000, 720000), 7928 * kGiga,
          grace,
          {"NVIDIA GB200 NVL72 data sheet, a 72nd of the rack: dense rates, 130 TB/s NVLink in "
           "both directions between 72 GPUs; memory and its bandwidth as OpenXLA describes the "
           "device",
           "NVIDIA DGX GB200 data sheet: 72 ConnectX-7 of 400 Gb/s"}),
      nvidia_row(
          "gb300", blackwell_rates(72, 100, 90000, 180000, 360000, 12000, 1080000), 7928 * kGiga,
          gb300,
          {"NVIDIA GB300 NVL72 data sheet, a 72nd of the rack: dense rates, 130 TB/s NVLink in "
           "both directions between 72 GPUs; memory and its bandwidth as OpenXLA describes the "
           "device",
           "NVIDIA DGX GB300 data sheet: 72 ConnectX-8 of 800 Gb/s"})};
  all[1].names.push_back("NVIDIA H200");
  all[3].names.push_back("NVIDIA B300 SXM6 AC");
  return all;
}

// Dense rates of the matrix units; f32 products have the rate of f32, since XLA does not use the
// matrix units' xf32 by default. The network between nodes has no figure here.
std::vector<KnownHardware> amd_hardware() {
  auto row = [](std::string_view name, std::vector<HardwareFigures::Rate> rates,
                double memory_bandwidth, double link, std::string source) {
    const auto kind = std::ranges::find(gpu_kinds(), name, &GpuKind::name);
    return KnownHardware{.names = {kind->description, kind->name},
                         .chip = {.matrix_rates = std::move(rates),
                                  .memory_bytes = kind->memory_bytes,
                                  .memory_bandwidth = memory_bandwidth,
                                  .link_bandwidth = 7 * link,
                                  .links = 7,
                                  .link_name = "Infinity Fabric",
                                  .network_name = "network",
                                  .sources = {std::move(source)},
                                  .host_bandwidth = 64 * kGiga,
                                  .direct_links = true}};
  };
  return {
      row("mi300x",
          {{"f64", 163.4 * kTera},
           {"f32", 163.4 * kTera},
           {"bf16", 1307.4 * kTera},
           {"f8", 2614.9 * kTera},
           {"s8", 2614.9 * kTera}},
          5325 * kGiga, 64 * kGiga,
          "AMD Instinct MI300X data sheet: dense matrix rates, 192 GB HBM3 at 5.3 TB/s, 7 links "
          "of 128 GB/s and PCIe Gen5 x16 of 128 GB/s in both directions"),
      row("mi355x",
          {{"f64", 78.6 * kTera},
           {"f32", 157.3 * kTera},
           {"bf16", 2516.6 * kTera},
           {"f8", 5033.2 * kTera},
           {"s8", 5033.2 * kTera},
           {"f4", 10066.3 * kTera}},
          8000 * kGiga, 76.8 * kGiga,
          "AMD Instinct MI355X data sheet: dense matrix rates, 288 GB HBM3E at 8 TB/s, 7 links of "
          "153.6 GB/s and PCIe Gen5 x16 of 128 GB/s in both directions")};
}

const KnownHardware* find_hardware(std::string_view kind) {
  static const std::vector<KnownHardware> all = [] {
    std::vector<KnownHardware> list = tpu_hardware();
    for (KnownHardware& gpu : nvidia_hardware()) list.push_back(std::move(gpu));
    for (KnownHardware& gpu : amd_hardware()) list.push_back(std::move(gpu));
    return list;
  }();
  for (const KnownHardware& known : all)
    if (std::ranges::find(known.names, kind) != known.names.end()) return &known;
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

Result<Target> Target::parse(std::string_view name) {
  std::string_view family = name.substr(0, name.find(':'));
  std::string_view rest = name.substr(family.size());
  std::string own(name);
  if (auto gpu = find_gpu_kind(family)) {
    auto gpus = parse_whole("GPUs", rest, read_gpu_nodes);
    if (!gpus.ok()) return bad_target(name, gpus.error().message());
    std::string shape = cat("1x", gpus->nodes, "x", gpus->devices);
    Topology topology = nodes_of(gpus->nodes, gpus->devices, gpu->description);
    if (gpu->most_in_domain > 0) {
      std::int64_t on_host = gpu->on_host, devices = gpus->devices;
      if (devices > gpu->most_in_domain)
        return bad_target(name,
                          cat("an NVLink domain has at most ", gpu->most_in_domain,
                              " GPUs; two domains are `", family, ":2x", gpu->most_in_domain, "`"));
      if (devices > on_host && devices % on_host != 0)
        return bad_target(name, cat("a domain of several hosts has a multiple of ", on_host,
                                    " GPUs, not ", devices));
      topology = domains_of(gpus->nodes, devices, *gpu);
      std::int64_t here = std::min(on_host, devices);
      shape = cat(gpus->nodes, "x", devices / here, "x", here);
    }
    return Target(own, std::string(gpu->platform()), std::move(topology), own,
                  {{"target_config", gpu->target_config()}, {"topology", shape}});
  }
  if (family == "cpu") {
    auto count = parse_whole("CPU devices", rest, read_cpus);
    if (!count.ok()) return bad_target(name, count.error().message());
    return Target(own, "cpu", nodes_of(1, *count, "cpu"), own, {{"cpu_device_count", *count}});
  }
  auto tpu = tpu_topology(name);
  if (!tpu.ok()) return bad_target(name, tpu.error().message());
  PluginTopology plugin = tpu_plugin_topology(name);
  return Target(own, "tpu", *std::move(tpu), plugin.name, plugin.options);
}

std::optional<std::string> target_name_of(std::string_view platform,
                                          std::span<const DeviceAttributes> devices) {
  if (devices.empty()) return std::nullopt;
  if (platform == "tpu") return tpu_name_of(devices);
  std::int64_t last = 0;
  for (const DeviceAttributes& device : devices) last = std::max(last, device.id);
  if (platform == "cpu") return cat("cpu:", last + 1);
  std::string described = lower_case(devices[0].kind);  // `NVIDIA H100 80GB HBM3`
  for (const GpuKind& kind : gpu_kinds()) {             // `gb200` comes before `b200`
    if (described.find(kind.name) == std::string::npos) continue;
    std::int64_t most = kind.most_in_domain;
    if (most == 0 || last < most) return cat(kind.name, ":", last + 1);
    if ((last + 1) % most != 0) return std::nullopt;
    return cat(kind.name, ":", (last + 1) / most, "x", most);
  }
  return std::nullopt;
}

// Multiprocessors, clocks, memory and caches: NVIDIA H100 Tensor Core GPU Architecture (white
// paper), table of the SXM5 form factor; NVIDIA H200 and HGX B200 data sheets; memory and cache
// bytes are the values that the CUDA driver reports for these devices. GB200, GB300 and B300:
// OpenXLA's descriptions of these devices (xla/backends/gpu/target_config/specs, 2026). AMD:
// Instinct MI300X and MI355X data sheets, with all of the memory; L2 is that of one of eight dies.
const std::vector<GpuKind>& gpu_kinds() {
  static const std::vector<GpuKind> kinds = {
      {"h100", "NVIDIA H100 80GB HBM3", 9, 0, 132, 1.98, 85028765696, 3352320000000, 52428800},
      {"h200", "NVIDIA H200 141GB HBM3e", 9, 0, 132, 1.98, 151397597184, 4800000000000, 52428800},
      {"gb200", "NVIDIA GB200", 10, 0, 152, 2.062, 197897748480, 7928064000000, 135528448, 72, 4},
      {"gb300", "NVIDIA GB300", 10, 3, 152, 2.07, 297021079552, 7928064000000, 135528448, 72, 4},
      {"b200", "NVIDIA B200", 10, 0, 148, 1.965, 191514411008, 7672320000000, 132644864},
      {"b300", "NVIDIA B300", 10, 3, 158, 1.965, 297021865984, 7936000000000, 135528448},
      {"mi300x", "AMD Instinct MI300X", 0, 0, 304, 2.1, 206158430208, 5325000000000, 4194304, 0, 0,
       "gfx942"},
      {"mi355x", "AMD Instinct MI355X", 0, 0, 256, 2.4, 309237645312, 8000000000000, 4194304, 0, 0,
       "gfx950"},
  };
  return kinds;
}

std::optional<GpuKind> find_gpu_kind(std::string_view name) {
  for (const GpuKind& kind : gpu_kinds())
    if (kind.name == name) return kind;
  return std::nullopt;
}

// Thread, block, register and shared memory limits: CUDA C++ Programming Guide, table "Technical
// Specifications per Compute Capability"; the values for 9.0, 10.0 and 10.3 are equal.
// ACCELERATED_FEATURES is the `a` of sm_90a, sm_100a and sm_103a. AMD: OpenXLA's descriptions of
// gfx942 and gfx950 (see gpu_kinds()).
std::string GpuKind::target_config() const {
  if (!amd_architecture.empty()) {
    int shared = amd_architecture == "gfx950" ? 163840 : 65536;
    return cat(
        "gpu_device_info { threads_per_block_limit: 1024 threads_per_warp: 64 "
        "shared_memory_per_block: ",
        shared, " shared_memory_per_core: ", shared,
        " threads_per_core_limit: 2048 core_count: ", core_count,
        " fpus_per_core: 128 block_dim_limit_x: 2147483647 block_dim_limit_y: 65536 "
        "block_dim_limit_z: 65536 memory_bandwidth: ",
        memory_bandwidth, " l2_cache_size: ", cache_bytes, " clock_rate_ghz: ", clock_ghz,
        " device_memory_size: ", memory_bytes, " shared_memory_per_block_optin: ", shared,
        " registers_per_core_limit: 131072 registers_per_block_limit: 131072 "
        "rocm_compute_capability { gcn_arch_name: \"",
        amd_architecture,
        ":sramecc+:xnack-\" } } platform_name: \"ROCM\" "
        "device_description_str: \"",
        description, "\"");
  }
  return cat(
      "gpu_device_info { threads_per_block_limit: 1024 threads_per_warp: 32 "
      "shared_memory_per_block: 49152 shared_memory_per_core: 233472 threads_per_core_limit: 2048 "
      "core_count: ",
      core_count,
      " fpus_per_core: 128 block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 "
      "block_dim_limit_z: 65535 memory_bandwidth: ",
      memory_bandwidth, " l2_cache_size: ", cache_bytes, " clock_rate_ghz: ", clock_ghz,
      " device_memory_size: ", memory_bytes,
      " shared_memory_per_block_optin: 232448 registers_per_core_limit: 65536 "
      "registers_per_block_limit: 65536 cuda_compute_capability { major: ",
      capability_major, " minor: ", capability_minor,
      " feature_extension: ACCELERATED_FEATURES } } platform_name: \"CUDA\" "
      "device_description_str: \"",
      description, "\"");
}

double HardwareFigures::matrix_rate(std::string_view element_type) const {
  TypeWidth wanted = width_of(element_type);
  bool has_kind = std::ranges::any_of(matrix_rates, [&](const Rate& rate) {
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
