#include "meshard/runtime/internal/process_moves.h"

#include <gmock/gmock.h>

#include <map>
#include <random>
#include <set>

namespace meshard {
namespace {

using testing::ElementsAre;

Box rows(std::int64_t begin, std::int64_t end) { return {{begin, end}, {0, 4}}; }

TEST(ProcessMoves, AProcessTakesFromItselfWhatItHas) {
  std::vector<HeldTile> tiles{{rows(0, 4), {{0, 0}, {2, 5}}}, {rows(4, 8), {{1, 1}}}};
  EXPECT_THAT(
      plan_moves(tiles, std::vector<PartOfProcess>{{2, rows(2, 6)}}),
      ElementsAre(ProcessMove{2, 5, 0, 0, rows(2, 4)}, ProcessMove{1, 1, 1, 0, rows(4, 6)}));
}

TEST(ProcessMoves, ReplicasShareTheWork) {
  std::vector<HeldTile> tiles{{rows(0, 8), {{0, 0}, {1, 1}, {2, 2}, {3, 3}}}};
  std::vector<PartOfProcess> parts;
  for (int p = 4; p < 12; ++p) parts.push_back({p, rows(0, 8)});
  std::map<int, int> sends;
  for (const ProcessMove& move : plan_moves(tiles, parts)) ++sends[move.from];
  for (int p = 0; p < 4; ++p) EXPECT_EQ(sends[p], 2) << "process " << p;
  // One receiver alone: its number says who sends.
  EXPECT_EQ(plan_moves(tiles, std::vector<PartOfProcess>{{6, rows(0, 8)}})[0].from, 2);
  EXPECT_EQ(plan_moves(tiles, std::vector<PartOfProcess>{{7, rows(0, 8)}})[0].from, 3);
}

TEST(ProcessMoves, EachElementOfAPartComesOnce) {
  std::mt19937 random(1);
  const auto draw = [&](int most) {
    return static_cast<int>(random() % static_cast<unsigned>(most));
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<HeldTile> tiles;
    for (std::int64_t begin = 0; begin < 24;) {
      std::int64_t end = std::min<std::int64_t>(24, begin + 1 + draw(9));
      std::set<int> holders{draw(4)};
      if (draw(2)) holders.insert(draw(4));
      tiles.push_back({rows(begin, end), {}});
      for (int p : holders) tiles.back().holders.push_back({p, 10 * p + begin});
      begin = end;
    }
    std::vector<PartOfProcess> parts;
    for (int i = 0; i < 4; ++i) {
      std::int64_t begin = draw(23);
      parts.push_back({draw(6), rows(begin, begin + 1 + draw(static_cast<int>(24 - begin)))});
    }
    std::map<std::size_t, std::vector<int>> covered;
    for (const ProcessMove& move : plan_moves(tiles, parts)) {
      const HeldTile& tile = tiles[move.tile];
      EXPECT_THAT(tile.holders, testing::Contains(std::pair(move.from, move.position)));
      bool has_own = std::ranges::any_of(
          tile.holders, [&](const auto& h) { return h.first == parts[move.part].process; });
      EXPECT_EQ(has_own, move.from == parts[move.part].process);
      auto& rows_of_part = covered[move.part];
      rows_of_part.resize(24);
      for (std::int64_t r = move.piece[0].start; r < move.piece[0].stop; ++r) {
        EXPECT_TRUE(tile.box[0].start <= r && r < tile.box[0].stop);
        ++rows_of_part[static_cast<std::size_t>(r)];
      }
    }
    for (std::size_t i = 0; i < parts.size(); ++i)
      for (std::int64_t r = 0; r < 24; ++r)
        EXPECT_EQ(covered[i][static_cast<std::size_t>(r)],
                  parts[i].box[0].start <= r && r < parts[i].box[0].stop);
  }
}

}  // namespace
}  // namespace meshard
