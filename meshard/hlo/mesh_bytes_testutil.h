// Meshes and references to their axes as a compiled module has them.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "meshard/pjrt/wire.h"

namespace meshard::test {

inline pjrt::WireWriter axis(std::uint64_t index, int pre = 0, int size = 0) {
  pjrt::WireWriter ref;
  if (index != 0) ref.add_varint(1, index);
  if (size == 0) return ref;
  pjrt::WireWriter part;
  part.add_varint(1, static_cast<std::uint64_t>(pre));
  part.add_varint(2, static_cast<std::uint64_t>(size));
  ref.add_message(2, part);
  return ref;
}

inline pjrt::WireWriter mesh(const std::vector<std::pair<std::string, int>>& axes,
                             const std::vector<std::int64_t>& ids = {}) {
  pjrt::WireWriter writer;
  for (const auto& [name, size] : axes) {
    pjrt::WireWriter one;
    one.add_bytes(1, name);
    one.add_varint(2, static_cast<std::uint64_t>(size));
    writer.add_message(1, one);
  }
  writer.add_packed(2, ids);
  return writer;
}

}  // namespace meshard::test
