// The copies of one value on several devices, so that each set of devices receives it once.
#pragma once
#include <optional>

#include "meshard/graph/tensor.h"
#include "meshard/pjrt/device.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// True if both are absent, or both are equal.
inline bool same_sharding(const Sharding* a, const std::optional<Sharding>& b) {
  return a ? b && *a == *b : !b;
}

/// False if the storage is on a client that was replaced (restart_runtime()). True for a current
/// client of any platform, and for host storage.
bool is_on_this_client(const Storage& storage);

/// A live copy of the value with this sharding or, if there is no sharding, on this device. Null if
/// there is none.
StoragePtr find_copy(const Storage& value, const std::optional<Sharding>& sharding,
                     const pjrt::Device* device);

/// Remembers a copy of the value for the lifetime of the value. Forgets copies that are gone.
void remember_copy(const Storage& value, StoragePtr copy);

/// The storage or copy of `value` from which a value with `target`'s sharding needs the least
/// traffic. In order of preference: one that has the tiles in place; one whose tiles in place
/// contain them; one on the same devices; one on the same platform; the value itself.
/// @pre `value` is stored
StoragePtr nearest_copy(const Value& value, const Sharding& target);

/// `value` with this sharding: itself, an existing copy, or a new copy, which is remembered.
/// @pre `value` is stored
/// @error the errors of placing and moving
Tensor copy_with(const Value& value, const Sharding& sharding, SourceLocation where);

/// True if each device of `target` already holds the tile that `target` assigns to it.
bool has_tiles_in_place(const Sharding& source, const Sharding& target);

/// The sharding of a value on the devices of `target` only. It exists if each of them holds a tile
/// that contains the one `target` assigns to it. It uses the first axes of each dimension of
/// `target`. Empty: some device lacks its part.
std::optional<Sharding> part_in_place(const Sharding& source, const Sharding& target);

/// True if every device of `mesh` holds the whole value.
bool is_whole_on(const Sharding& source, const Mesh& mesh);

}  // namespace meshard
