// The copies of one value on several devices, so that it goes to each set of devices once.
#pragma once
#include <optional>

#include "meshard/graph/tensor.h"
#include "meshard/pjrt/device.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// True if both are absent, or equal.
inline bool same_sharding(const Sharding* a, const std::optional<Sharding>& b) {
  return a ? b && *a == *b : !b;
}

/// False for what is on the devices of a client that was replaced (restart_runtime()). True of one
/// of any platform.
bool is_on_this_client(const Storage& storage);

/// A live copy of the value with this sharding, or without one on this device. Null: there is none.
StoragePtr find_copy(const Storage& value, const std::optional<Sharding>& sharding,
                     const pjrt::Device* device);

/// Remembers a copy of the value for as long as the value lives. Copies that are gone are
/// forgotten.
void remember_copy(const Storage& value, StoragePtr copy);

/// The storage of `value`, or the copy of it, from which a value with `target`'s sharding is made
/// with the least traffic: one that has the tiles where they are wanted, else one whose tiles there
/// contain them, else one on the same devices, else one on the same platform, else the value
/// itself.
/// @pre `value` is stored
StoragePtr nearest_copy(const Value& value, const Sharding& target);

/// `value` laid out as `sharding` says: itself, a copy that is there already, or one made now and
/// remembered.
/// @pre `value` is stored
/// @error what placing and moving answer
Tensor copy_with(const Value& value, const Sharding& sharding, SourceLocation where);

/// True if each device of `target` holds the tile that `target` wants there: nothing moves.
bool has_tiles_in_place(const Sharding& source, const Sharding& target);

/// How a value is laid out on the devices of `target` alone, if each of these holds the part of it
/// that `target` wants there: by the first axes of each of target's dimensions. Empty: some device
/// lacks it.
std::optional<Sharding> part_in_place(const Sharding& source, const Sharding& target);

/// True if the value is whole on each device of `mesh`.
bool is_whole_on(const Sharding& source, const Mesh& mesh);

}  // namespace meshard
