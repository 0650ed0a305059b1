// Published figures of devices: what a roofline needs.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace meshard {

/// A value: one device's published figures. All are peaks.
struct HardwareFigures {
  /// A type that the matrix units take, and multiplications and additions per second.
  struct Rate {
    std::string element_type;  // `bf16`
    double flops = 0;
  };
  std::vector<Rate> matrix_rates;
  /// Bytes of main memory, and bytes per second to and from it.
  std::int64_t memory_bytes = 0;
  double memory_bandwidth = 0;
  /// Bytes per second that one device can send to its neighbours within a slice or node, all links
  /// together, one direction; how many links; its name.
  double link_bandwidth = 0;
  int links = 0;
  std::string link_name;
  /// The same to other slices or nodes.
  double network_bandwidth = 0;
  std::string network_name;
  /// Where each figure was published.
  std::vector<std::string> sources;

  /// The rate for a type; types without one of their own have that of the next wider.
  double matrix_rate(std::string_view element_type) const;
};

/// The figures of a device kind as plugins name it (`TPU v5 lite`) or as Target does (`v5e`,
/// `h100`). None: not known.
std::optional<HardwareFigures> hardware_figures(std::string_view device_kind);

}  // namespace meshard
