// Published performance figures of devices, for a roofline.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  /// Bytes of main memory, and its bandwidth in bytes per second. The bytes are what a program may
  /// use, as reported by the vendor's driver or plugin.
  std::int64_t memory_bytes = 0;
  double memory_bandwidth = 0;
  /// Links within a slice or node: bandwidth, number and name. The bandwidth is the bytes per
  /// second that one device can send to its neighbors over all links together, in one direction.
  double link_bandwidth = 0;
  int links = 0;
  std::string link_name = {};
  /// Bandwidth to other slices or nodes. 0: not published.
  double network_bandwidth = 0;
  std::string network_name = {};
  /// Where each figure was published.
  std::vector<std::string> sources;
  /// Bytes per second between a device and the memory of its host, in one direction. 0: unknown.
  double host_bandwidth = 0;
  /// True if the switch between the devices can add what it forwards, so that each device sends the
  /// bytes of an all-reduce only once.
  bool switch_adds = false;

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

}  // namespace meshard
