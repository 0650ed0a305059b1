// Shardings and device groups as they stand in a compiled module. Plain data: what they mean for a
// mesh is for the layers above.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"

namespace meshard::pjrt {

/// Numbers 0..n-1 in the order given by reshaping to `dimensions` and transposing by `permutation`.
/// Empty dimensions: no such form was given.
struct IotaOrder {
  std::vector<std::int64_t> dimensions;
  std::vector<std::int64_t> permutation;

  bool given() const { return !dimensions.empty(); }
  /// All numbers in order. An empty permutation means the identity.
  /// @error data loss if the permutation is none, or there are more than 2^30 numbers
  Result<std::vector<std::int64_t>> expand() const;
  friend bool operator==(const IotaOrder&, const IotaOrder&) = default;
};

/// A mesh as the module names it.
struct HloMesh {
  struct Axis {
    std::string name;
    std::int64_t size = 1;
    friend bool operator==(const Axis&, const Axis&) = default;
  };
  std::vector<Axis> axes;
  /// The order of the devices; empty: 0, 1, 2, ...
  std::vector<std::int64_t> device_ids;
  /// True if the order of the devices has a form that this reader does not know.
  bool unknown_order = false;
  friend bool operator==(const HloMesh&, const HloMesh&) = default;
};

/// One axis of a mesh, or the part `(pre_size)size` of it.
struct HloAxisRef {
  std::int64_t axis = 0;
  struct Part {
    std::int64_t pre_size = 1;
    std::int64_t size = 1;
    friend bool operator==(const Part&, const Part&) = default;
  };
  std::optional<Part> part;
  friend bool operator==(const HloAxisRef&, const HloAxisRef&) = default;
};

/// A sharding by names of axes; newer plugins write it.
struct HloNamedSharding {
  struct DimensionSharding {
    std::vector<HloAxisRef> axes;
    bool is_closed = false;
    friend bool operator==(const DimensionSharding&, const DimensionSharding&) = default;
  };
  std::vector<HloNamedSharding> tuple;
  HloMesh mesh;
  std::vector<DimensionSharding> dimensions;
  std::vector<HloAxisRef> replicated;
  std::vector<HloAxisRef> unreduced;
  std::vector<HloAxisRef> manual;
  friend bool operator==(const HloNamedSharding&, const HloNamedSharding&) = default;
};

/// A sharding by a tiling of the devices, with XLA's own numbers for the kinds.
struct OpSharding {
  enum class Kind : int {
    kReplicated = 0,
    kMaximal = 1,
    kTuple = 2,
    kOther = 3,
    kManual = 4,
    kUnknown = 5,
    kUnreduced = 6,
  };
  Kind kind = Kind::kReplicated;
  /// Tiles along each dimension of the tensor, then the sizes of the subgroups.
  std::vector<std::int64_t> tile_dimensions;
  /// The devices of the tiles, listed (V1) or as an order of 0..n-1 (V2).
  std::vector<std::int64_t> listed_devices;
  IotaOrder iota;
  bool replicate_on_last_tile_dimension = false;
  std::vector<Kind> last_tile_kinds;
  std::vector<OpSharding> tuple;
  /// If given, it alone counts.
  std::optional<HloNamedSharding> named;

  /// The devices of all tiles in order, from either form. @error data loss if the order is damaged
  Result<std::vector<std::int64_t>> devices() const;
  /// XLA's text: `{replicated}`, `{devices=[2,1,4]<=[8] last_tile_dim_replicate}`, `{maximal
  /// device=3}`.
  std::string to_string() const;
  /// Reads the bytes of an OpSharding message. @error data loss if they are damaged
  static Result<OpSharding> from_bytes(std::string_view bytes);
  friend bool operator==(const OpSharding&, const OpSharding&) = default;
};

/// The groups of devices that a collective works in.
struct ReplicaGroups {
  enum class Form { kNone, kListed, kIota, kMeshAxes };
  Form form = Form::kNone;
  std::vector<std::vector<std::int64_t>> listed;
  std::int64_t group_count = 0;  // kIota
  std::int64_t group_size = 0;   // kIota
  IotaOrder iota;                // kIota
  HloMesh mesh;                  // kMeshAxes
  std::vector<HloAxisRef> axes;  // kMeshAxes

  /// The groups, listed, from any form. Empty: one group of all.
  /// @error data loss or unimplemented if the form is damaged or not known
  Result<std::vector<std::vector<std::int64_t>>> expand() const;
  friend bool operator==(const ReplicaGroups&, const ReplicaGroups&) = default;
};

}  // namespace meshard::pjrt
