// The links between the devices of two stages.
#pragma once
#include <cstdint>
#include <optional>

#include "meshard/explain/cost/link_use.h"
#include "meshard/mesh/mesh.h"
#include "meshard/target/target.h"

namespace meshard::internal {

/// What a transfer between two submeshes loads, as a permutation in which each device of one sends
/// to its counterpart of the other. If one has more devices, each device of the other sends or
/// receives for several.
class StageLink {
 public:
  StageLink(const Target& target, const Mesh& from, const Mesh& to, const LinkOptions& options);

  /// The bytes that one device sends, for receivers of `received` bytes each.
  std::int64_t device_bytes(std::int64_t received) const;
  /// A lower bound for a device that sends so many bytes; 0 if the hardware's figures are unknown,
  /// or the submeshes are the same.
  double seconds(std::int64_t device_bytes) const;

 private:
  std::int64_t receivers_ = 1;  // of each sender
  std::optional<LinkModel> links_;
};

}  // namespace meshard::internal
