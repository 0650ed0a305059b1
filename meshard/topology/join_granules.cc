#include "meshard/topology/join_granules.h"

namespace meshard {

std::vector<std::int64_t> join_granules(const std::vector<std::vector<std::int64_t>>& meshes,
                                        IntView inner, IntView outer) {
  // Modes of (granule, position in granule), axis by axis.
  struct Mode {
    std::int64_t size, granule_step, position_step;
  };
  std::vector<Mode> modes(2 * inner.size());
  std::int64_t granule_step = 1, position_step = 1;
  for (std::size_t axis = inner.size(); axis-- > 0;) {
    modes[2 * axis] = {outer[axis], granule_step, 0};
    modes[2 * axis + 1] = {inner[axis], 0, position_step};
    granule_step *= outer[axis];
    position_step *= inner[axis];
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> places = {{0, 0}};
  for (const Mode& mode : modes) {
    if (mode.size == 1) continue;
    std::vector<std::pair<std::int64_t, std::int64_t>> next;
    next.reserve(places.size() * static_cast<std::size_t>(mode.size));
    for (auto [granule, position] : places)
      for (std::int64_t i = 0; i < mode.size; ++i)
        next.emplace_back(granule + i * mode.granule_step, position + i * mode.position_step);
    places = std::move(next);
  }
  std::vector<std::int64_t> ids;
  ids.reserve(places.size());
  for (auto [granule, position] : places)
    ids.push_back(meshes[static_cast<std::size_t>(granule)][static_cast<std::size_t>(position)]);
  return ids;
}

}  // namespace meshard
