// Shardings and device groups of a compiled module. Plain data: the layers above interpret it for a
// mesh.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/base/result.h"

namespace meshard {

/// The order of 0..n-1 after a reshape to `dimensions` and a transpose by `permutation`. Empty
/// dimensions: this form is absent.
struct IotaOrder {
  std::vector<std::int64_t> dimensions;
  std::vector<std::int64_t> permutation;

  bool given() const { return !dimensions.empty(); }
  /// All numbers in order. An empty permutation means the identity.
  /// @error data loss if the permutation is invalid, or there are more than 2^30 numbers
  Result<std::vector<std::int64_t>> expand() const;
  friend bool operator==(const IotaOrder&, const IotaOrder&) = default;
};

/// A mesh as it appears in the module.
struct HloMesh {
  struct Axis {
    std::string name;
    std::int64_t size = 1;
    friend bool operator==(const Axis&, const Axis&) = default;
  };
  std::vector<Axis> axes;
  /// The order of the devices; empty: 0, 1, 2, ...
  std::vector<std::int64_t> device_ids;
  /// True if the device order has a form that this reader does not know.
  bool unknown_order = false;
  friend bool operator==(const HloMesh&, const HloMesh&) = default;
};

/// One axis of a mesh, or its sub-axis `(pre_size)size`.
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

/// A sharding by axis names, which newer plugins write.
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

/// A sharding as a tile assignment, with XLA's numbers for the kinds.
struct HloSharding {
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
  /// Number of tiles along each dimension of the tensor, then the sizes of the subgroups.
  std::vector<std::int64_t> tile_dimensions;
  /// The devices of the tiles: listed (V1), or as an order of 0..n-1 (V2).
  std::vector<std::int64_t> listed_devices;
  IotaOrder iota;
  bool replicate_on_last_tile_dimension = false;
  std::vector<Kind> last_tile_kinds;
  std::vector<HloSharding> tuple;
  /// If present, all other fields are ignored.
  std::optional<HloNamedSharding> named;

  /// The devices of all tiles in order, from either form. @error data loss if the order is damaged
  Result<std::vector<std::int64_t>> devices() const;
  /// XLA's text form: `{replicated}`, `{devices=[2,1,4]<=[8] last_tile_dim_replicate}`, `{maximal
  /// device=3}`.
  std::string to_string() const;
  /// Reads the bytes of an HloSharding message. @error data loss if they are damaged
  static Result<HloSharding> from_bytes(std::string_view bytes);
  friend bool operator==(const HloSharding&, const HloSharding&) = default;
};

/// The device groups of a collective.
struct ReplicaGroups {
  enum class Form { kNone, kListed, kIota, kMeshAxes };
  Form form = Form::kNone;
  std::vector<std::vector<std::int64_t>> listed;
  std::int64_t group_count = 0;  // kIota
  std::int64_t group_size = 0;   // kIota
  IotaOrder iota;                // kIota
  HloMesh mesh;                  // kMeshAxes
  std::vector<HloAxisRef> axes;  // kMeshAxes

  /// The list of groups, from any form. Empty: one group of all devices.
  /// @error data loss if the form is damaged; unimplemented if it is unknown
  Result<std::vector<std::vector<std::int64_t>>> expand() const;
  friend bool operator==(const ReplicaGroups&, const ReplicaGroups&) = default;
};

}  // namespace meshard
