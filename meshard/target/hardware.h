// Published figures of devices: what a roofline needs.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/topology/topology.h"

namespace meshard {

/// A value: one device's published figures. All are peaks of dense products.
struct HardwareFigures {
  /// A type that the matrix units take, and multiplications and additions per second (a
  /// multiply-add is two).
  struct Rate {
    std::string element_type;  // `bf16`
    double flops = 0;
  };
  std::vector<Rate> matrix_rates;
  /// Bytes of main memory that a program may use, as the vendor's driver or plugin reports them,
  /// and bytes per second to and from it.
  std::int64_t memory_bytes = 0;
  double memory_bandwidth = 0;
  /// Bytes per second that one device can send to its neighbours within a slice or node, all links
  /// together, one direction; how many links; its name.
  double link_bandwidth = 0;
  int links = 0;
  std::string link_name;
  /// The same to other slices or nodes. 0: not published.
  double network_bandwidth = 0;
  std::string network_name;
  /// Where each figure was published.
  std::vector<std::string> sources;

  /// The rate for a type by its HLO or MLIR name (`bf16`, `f8e4m3fn`, `s8`). Types without one of
  /// their own have that of the next wider of their kind (whole numbers or floating point), else of
  /// the widest. 0 without any rate.
  double matrix_rate(std::string_view element_type) const;
};

/// The figures of a device kind as plugins name it (`TPU v5 lite`) or as Target does (`v5e`,
/// `h100`). Of chips that plugins list as two devices (v4, tpu7x) they are one device's share.
/// None: not known; the CPU has none.
std::optional<HardwareFigures> hardware_figures(std::string_view device_kind);

/// The same of a topology's devices, which also tells a v4's form: one device of a chip with two
/// cores (`/megacore`) has all of the chip.
std::optional<HardwareFigures> hardware_figures(const Topology& topology);

}  // namespace meshard
