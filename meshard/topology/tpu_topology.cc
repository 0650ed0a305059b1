#include "meshard/topology/tpu_topology.h"

#include <algorithm>

#include "meshard/layout/text_scanner.h"

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

constexpr std::int64_t kFirstIdStep = 100000;  // between slices
constexpr std::int64_t kMostDevices = std::int64_t{1} << 24;
constexpr std::int64_t kBoardSide = 2;  // chips of a process in x and y

struct TpuSlices {
  const TpuGeneration* generation = nullptr;
  std::int64_t size[3] = {1, 1, 1};
  std::int64_t cores = 1;
  std::int64_t slices = 1;

  std::int64_t devices() const { return size[0] * size[1] * size[2] * cores; }
};

const TpuGeneration& read_generation(TextScanner& scanner) {
  std::string name = scanner.identifier();
  if (const TpuGeneration* found = tpu_generation_named(name)) return *found;
  std::string known;
  for (const TpuGeneration& each : tpu_generations())
    append(known, known.empty() ? "" : ", ", each.name);
  scanner.fail(cat("unknown TPU type `", name, "`; expected one of ", known));
}

std::int64_t read_size(TextScanner& scanner, std::int64_t most) {
  std::int64_t size = scanner.integer();
  if (size < 1 || size > most) scanner.fail(cat("a size must be 1 to ", most, ", not ", size));
  return size;
}

std::string megacore_names() {
  std::string names;
  for (const TpuGeneration& each : tpu_generations())
    if (each.megacore) append(names, names.empty() ? "" : ", ", each.name);
  return names;
}

TpuSlices read_slices(TextScanner& scanner) {
  TpuSlices tpu;
  tpu.generation = &read_generation(scanner);
  tpu.cores = tpu.generation->devices_per_chip;
  scanner.expect(":");
  std::int64_t room = kMostDevices / tpu.cores;
  for (std::size_t k = 0; k < tpu.generation->directions; ++k) {
    if (k > 0) scanner.expect("x");
    tpu.size[k] = read_size(scanner, room);
    room /= tpu.size[k];
    if (k < 2 && tpu.size[k] != 1 && tpu.size[k] % kBoardSide != 0)
      scanner.fail(cat("each process drives 2 x 2 chips, so a side cannot be ", tpu.size[k]));
  }
  if (scanner.accept("*")) tpu.slices = read_size(scanner, room);
  if (scanner.accept("/megacore")) {
    if (!tpu.generation->megacore)
      scanner.fail(cat("only ", megacore_names(), " supports /megacore"));
    tpu.cores = 1;
  }
  if (tpu.slices > 1 && tpu.devices() > kFirstIdStep)
    scanner.fail(cat(tpu.devices(),
                     " devices per slice are too many for several slices; the limit is ",
                     kFirstIdStep));
  return tpu;
}

// Appends the devices of one process, whose chips start at `corner`.
void list_board(const TpuSlices& tpu, std::int64_t slice, const std::int64_t (&corner)[3],
                std::int64_t process, std::vector<DeviceAttributes>& devices) {
  std::int64_t first = tpu.slices > 1 ? (slice + 1) * kFirstIdStep : 0;
  for (std::int64_t y = corner[1]; y < std::min(corner[1] + kBoardSide, tpu.size[1]); ++y)
    for (std::int64_t x = corner[0]; x < std::min(corner[0] + kBoardSide, tpu.size[0]); ++x)
      for (std::int64_t core = 0; core < tpu.cores; ++core) {
        std::int64_t chip = x + tpu.size[0] * (y + tpu.size[1] * corner[2]);
        devices.push_back({.id = first + chip * tpu.cores + core,
                           .process_index = process,
                           .slice_index = {},
                           .coords = {x, y, corner[2]},
                           .core_on_chip = core,
                           .kind = std::string(tpu.generation->kinds.front())});
        if (tpu.slices > 1) devices.back().slice_index = slice;
      }
}

Topology listed(const TpuSlices& tpu) {
  std::vector<DeviceAttributes> devices;
  devices.reserve(static_cast<std::size_t>(tpu.devices() * tpu.slices));
  std::int64_t process = 0;
  for (std::int64_t slice = 0; slice < tpu.slices; ++slice)
    for (std::int64_t z = 0; z < tpu.size[2]; ++z)
      for (std::int64_t y = 0; y < tpu.size[1]; y += kBoardSide)
        for (std::int64_t x = 0; x < tpu.size[0]; x += kBoardSide)
          list_board(tpu, slice, {x, y, z}, process++, devices);
  return Topology(std::move(devices));
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
    if (std::ranges::find(tpu.kinds, kind) != tpu.kinds.end()) return &tpu;
  return nullptr;
}

Result<Topology> tpu_topology(std::string_view name) {
  return parse_whole("TPU", name,
                     [](TextScanner& scanner) { return listed(read_slices(scanner)); });
}

}  // namespace meshard
