// Published performance figures of devices, for a roofline.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/fields.h"
#include "meshard/target/target.h"
#include "meshard/topology/topology.h"

namespace meshard {

/// Value type: published figures of one device. All rates are peaks of dense products.
struct HardwareFigures {
  /// The rate of the matrix units for one element type. Counts multiplications and additions per
  /// second (a multiply-add counts as two).
  struct Rate {
    std::string element_type;  // `bf16`
    double flops = 0;
  };
  std::vector<Rate> matrix_rates;
  /// Bytes of main memory that a program may use, as reported by the vendor's driver or plugin.
  std::int64_t memory_bytes = 0;
  /// Bytes per second of main memory.
  double memory_bandwidth = 0;
  /// Bytes per second to the neighbors within a slice or node, over all links together, in one
  /// direction.
  double link_bandwidth = 0;
  /// Number of links.
  int links = 0;
  std::string link_name = {};
  /// Bytes per second to other slices or nodes. 0: not published.
  double network_bandwidth = 0;
  std::string network_name = {};
  /// Where each figure was published.
  std::vector<std::string> sources;
  /// Bytes per second between a device and the memory of its host, in one direction. 0: unknown.
  double host_bandwidth = 0;
  /// True if the switch between the devices can add what it forwards, so that each device sends the
  /// bytes of an all-reduce only once.
  bool switch_adds = false;

  MESHARD_FIELDS(matrix_rates, memory_bytes, memory_bandwidth, link_bandwidth, links, link_name,
                 network_bandwidth, network_name, sources, host_bandwidth, switch_adds)
  /// The rate for an element type by its HLO or MLIR name (`bf16`, `f8e4m3fn`, `s8`). A type that
  /// is not listed uses the next wider type of its kind (integer or floating point), else the
  /// widest. If its kind has no rates, all rates are considered. 0 if there are no rates.
  double matrix_rate(std::string_view element_type) const;
};

/// The figures of a device kind; none if unknown. Takes the plugin's name (`TPU v5 lite`) or that
/// of a Target (`v5e`, `h100`). For chips that plugins list as two devices (v4, tpu7x), returns one
/// device's share. The CPU has no figures.
std::optional<HardwareFigures> hardware_figures(std::string_view device_kind);

/// The figures of a topology's devices; none if unknown. Also distinguishes the two configurations
/// of v4: with `/megacore`, one device has all of the chip.
std::optional<HardwareFigures> hardware_figures(const Topology& topology);

/// Main memory of one device in bytes, from published figures; none if unknown.
std::optional<std::int64_t> device_memory(const Target& target);

}  // namespace meshard
