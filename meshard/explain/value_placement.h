// Shardings of a program's arguments, results and named intermediates.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "meshard/array/shape.h"
#include "meshard/base/field_notes.h"
#include "meshard/base/fields.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// Value type: how one argument, result or intermediate is sharded.
struct ValuePlacement {
  /// The name in the program: `params.w1`, `p['wq']`; for an intermediate, its op. Empty: no name.
  std::string name = {};
  /// The source line; empty if unknown.
  std::string place = {};
  TensorType type;
  /// The type in the compiled program: larger than `type` if the value is padded for its sharding.
  TensorType padded;
  /// The sharding in the compiled program; none on a single device without a mesh.
  std::optional<Sharding> sharding;
  /// True if the compiler chose the sharding, false if the program requested it.
  bool chosen_by_compiler = false;
  /// True if the argument's memory is reused for a result.
  bool donated = false;
  /// `pinned_host` if it is in the memory of the host. Empty: in the device's memory.
  std::string memory_kind = {};

  MESHARD_WRITTEN_FIELDS(name, place, type, padded, sharding, chosen_by_compiler, donated, shard(),
                         shard_bytes(), padding_bytes(), memory_kind)
  static constexpr FieldNotes kFieldNotes{.later = "memory_kind"};
  /// The type of one device's shard, including padding.
  TensorType shard() const;
  /// Bytes of one device's shard.
  std::int64_t shard_bytes() const { return shard().bytes(); }
  /// Bytes of padding over all devices, including replicas.
  std::int64_t padding_bytes() const;
  /// `f32[16,32] P("data", none), shard f32[8,32], 1 KiB`, `..., 1 KiB, in pinned_host memory`
  std::string to_string() const;
  friend bool operator==(const ValuePlacement&, const ValuePlacement&) = default;
};

}  // namespace meshard
