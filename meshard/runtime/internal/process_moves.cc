#include "meshard/runtime/internal/process_moves.h"

#include <algorithm>
#include <map>
#include <optional>

#include "meshard/array/box_overlap.h"

namespace meshard {

std::vector<ProcessMove> plan_moves(std::span<const HeldTile> tiles,
                                    std::span<const PartOfProcess> parts) {
  std::vector<ProcessMove> moves;
  std::map<int, std::int64_t> sent;  // elements, by process
  for (std::size_t i = 0; i < parts.size(); ++i)
    for (std::size_t t = 0; t < tiles.size(); ++t) {
      const auto& holders = tiles[t].holders;
      std::optional<Box> piece = overlap(parts[i].box, tiles[t].box);
      if (!piece) continue;
      auto chosen = std::ranges::find(holders, parts[i].process,
                                      [](const auto& holder) { return holder.first; });
      if (chosen == holders.end()) {
        const auto first = static_cast<std::size_t>(parts[i].process) % holders.size();
        for (std::size_t k = 0; k < holders.size(); ++k) {
          auto holder = holders.begin() + static_cast<std::ptrdiff_t>((first + k) % holders.size());
          if (k == 0 || sent[holder->first] < sent[chosen->first]) chosen = holder;
        }
        sent[chosen->first] += box_shape(*piece).size();
      }
      moves.push_back({chosen->first, chosen->second, t, i, *piece});
    }
  return moves;
}

}  // namespace meshard
