#include "meshard/explain/predict/reshard_plan.h"

#include <algorithm>
#include <numeric>

namespace meshard {
namespace {

using Lists = std::vector<AxisList>;  // axes by dimension

bool is_prefix(const AxisList& shorter, const AxisList& longer) {
  return shorter.size() <= longer.size() &&
         std::equal(shorter.begin(), shorter.end(), longer.begin());
}

class Planner {
 public:
  Planner(const TensorType& type, const Sharding& from, const Sharding& to)
      : type_(type), mesh_(from.mesh()), now_(lists(from)), wanted_(lists(to)) {}

  ReshardPlan run() {
    if (now_ == wanted_) return {};
    if (tiles_divide(now_, wanted_)) {
      cut_then_permute();
    } else if (tiles_divide(wanted_, now_)) {
      permute_then_gather();
    } else if (!exchange() && !exchange_then_cut() && !cut_then_exchange() &&
               !gather_then_exchange()) {
      gather_all();
      plan_.full_rematerialization = true;
    }
    return std::move(plan_);
  }

 private:
  Lists lists(const Sharding& sharding) const {
    Lists axes(static_cast<std::size_t>(type_.rank()));
    for (std::size_t d = 0; d < sharding.rank(); ++d)
      for (const AxisRef& axis : sharding.axes(d))
        if (sharding.mesh().axis_size(axis) > 1) axes[d].push_back(axis);
    return axes;
  }
  std::int64_t tiles(const AxisList& axes) const {
    std::int64_t product = 1;
    for (const AxisRef& axis : axes) product *= mesh_.axis_size(axis);
    return product;
  }
  std::int64_t count(const Lists& all) const {
    std::int64_t product = 1;
    for (const AxisList& axes : all) product *= tiles(axes);
    return product;
  }
  bool tiles_divide(const Lists& fewer, const Lists& more) const {
    for (std::size_t d = 0; d < fewer.size(); ++d)
      if (tiles(more[d]) % tiles(fewer[d]) != 0) return false;
    return true;
  }
  // Size of one shard with these axes.
  std::int64_t bytes(const Lists& all) const {
    std::int64_t elements = 1;
    for (std::size_t d = 0; d < all.size(); ++d) {
      std::int64_t size = type_.shape[static_cast<int>(d)], parts = tiles(all[d]);
      elements *= (size + parts - 1) / parts;
    }
    return elements * static_cast<std::int64_t>(size_in_bytes(type_.dtype));
  }
  void add(CollectiveKind kind, AxisList axes, std::int64_t bytes) {
    plan_.steps.push_back({kind, std::move(axes), bytes});
  }

  void permute_if_needed() {
    if (now_ != wanted_) add(CollectiveKind::kCollectivePermute, {}, bytes(wanted_));
    now_ = wanted_;
  }

  void cut_then_permute() {
    bool in_place = true;
    for (std::size_t d = 0; d < now_.size(); ++d)
      in_place = in_place && is_prefix(now_[d], wanted_[d]);
    if (in_place) now_ = wanted_;
    permute_if_needed();
  }

  void permute_then_gather() {
    bool in_place = true;
    for (std::size_t d = 0; d < now_.size(); ++d)
      in_place = in_place && is_prefix(wanted_[d], now_[d]);
    if (!in_place) add(CollectiveKind::kCollectivePermute, {}, bytes(now_));
    for (std::size_t d = now_.size(); d-- > 0;) {
      AxisList gathered;
      if (in_place) gathered.assign(now_[d].begin() + wanted_[d].size(), now_[d].end());
      bool fewer = tiles(wanted_[d]) < tiles(now_[d]);
      now_[d] = wanted_[d];
      if (fewer) add(CollectiveKind::kAllGather, std::move(gathered), bytes(now_));
    }
  }

  void gather_all() {
    for (std::size_t d = now_.size(); d-- > 0;) {
      if (now_[d].empty()) continue;
      AxisList gathered = std::exchange(now_[d], AxisList());
      add(CollectiveKind::kAllGather, std::move(gathered), bytes(now_));
    }
  }

  // Removes the last axes of a list that make `parts` tiles; false if no axes make exactly these.
  bool take_last(AxisList& axes, std::int64_t parts, AxisList& taken) const {
    AxisList reversed;
    while (parts > 1 && !axes.empty()) {
      AxisRef axis = axes.back();
      std::int64_t size = mesh_.axis_size(axis);
      axes.pop_back();
      if (parts % size == 0) {
        reversed.push_back(axis);
        parts /= size;
      } else if (size % parts == 0) {
        std::int64_t pre = axis.is_whole() ? 1 : axis.pre_size, rest = size / parts;
        axes.push_back(AxisRef(axis.name, pre, rest));
        reversed.push_back(AxisRef(axis.name, pre * rest, parts));
        parts = 1;
      } else {
        return false;
      }
    }
    taken.assign(reversed.rbegin(), reversed.rend());
    return parts == 1;
  }

  struct Move {
    std::size_t from, to;
    std::int64_t parts;
  };

  // The transfers of tiles from dimensions with too many to those with too few. Empty if the counts
  // do not match, or if a dimension would exchange different numbers of parts with two others.
  std::vector<Move> moves() const {
    std::vector<Move> found;
    std::vector<std::int64_t> have, want;
    for (std::size_t d = 0; d < now_.size(); ++d) {
      have.push_back(tiles(now_[d]));
      want.push_back(tiles(wanted_[d]));
      if (have[d] % want[d] != 0 && want[d] % have[d] != 0) return {};
    }
    for (std::size_t from = 0; from < have.size(); ++from)
      for (std::size_t to = 0; to < have.size(); ++to) {
        if (have[from] <= want[from] || have[to] >= want[to]) continue;
        std::int64_t parts = std::gcd(have[from] / want[from], want[to] / have[to]);
        if (parts <= 1) continue;
        have[from] /= parts;
        have[to] *= parts;
        found.push_back({from, to, parts});
      }
    if (have != want) return {};
    for (const Move& a : found)
      for (const Move& b : found)
        if ((a.from == b.from || a.to == b.to) && a.parts != b.parts) return {};
    return found;
  }

  // The number of tiles stays the same: each move is an all-to-all.
  bool exchange() {
    if (count(now_) != count(wanted_)) return false;
    std::vector<Move> all = moves();
    if (all.empty()) return false;
    std::int64_t size = bytes(wanted_);
    for (const Move& move : all) {
      AxisList moved;
      bool whole = take_last(now_[move.from], move.parts, moved);
      if (whole)
        for (const AxisRef& axis : moved) push_axis(mesh_, now_[move.to], axis);
      add(CollectiveKind::kAllToAll, whole ? moved : AxisList(), size);
    }
    // With several exchanges, the partitioner chooses groups such that the tiles end in place.
    if (all.size() > 1) now_ = wanted_;
    permute_if_needed();
    return true;
  }

  bool is_used(const AxisRef& axis) const {
    for (const AxisList& axes : now_)
      for (const AxisRef& used : axes)
        if (axis.overlaps(used)) return true;
    return false;
  }

  // One all-to-all to an earlier dimension, after which devices only slice the dimension that the
  // axes came from; for a target sharding that uses all devices.
  bool exchange_then_cut() {
    Lists before = now_, target = wanted_;
    for (AxisList& axes : wanted_)
      while (!axes.empty() && !is_used(axes.back())) axes.pop_back();
    std::vector<Move> all = count(now_) == count(wanted_) ? moves() : std::vector<Move>();
    bool fits = all.size() == 1 && all[0].to < all[0].from && count(target) == mesh_.size();
    for (std::size_t d = 0; d < now_.size() && fits; ++d)
      fits = d == all[0].from || wanted_[d] == target[d];
    bool done = fits && exchange() && plan_.steps.size() == 1;
    wanted_ = target;
    if (!done) {
      plan_.steps.clear();
      now_ = before;
    }
    return done;
  }

  // Devices slice whole dimensions until the number of tiles matches; only if the target sharding
  // has one tile for each device.
  bool cut_then_exchange() {
    Lists before = now_;
    if (count(wanted_) != mesh_.size()) return false;
    for (std::size_t d = 0; d < now_.size(); ++d) {
      if (count(wanted_) % count(now_) != 0) break;
      std::int64_t parts = std::gcd(tiles(wanted_[d]), count(wanted_) / count(now_));
      if (!now_[d].empty() || parts <= 1) continue;
      now_[d] = cut_axes(wanted_[d], parts);
    }
    if (count(now_) == count(wanted_) && exchange()) return true;
    now_ = before;
    return false;
  }

  // The first wanted axes if they are unused and make this many parts, else any unused axes.
  AxisList cut_axes(const AxisList& wanted, std::int64_t parts) const {
    for (bool as_wanted : {true, false}) {
      AxisList cut;
      std::int64_t left = parts;
      auto take = [&](const AxisRef& axis) {
        std::int64_t size = mesh_.axis_size(axis);
        if (left == 1 || size == 1 || is_used(axis) || left % size != 0) return false;
        cut.push_back(axis);
        left /= size;
        return true;
      };
      if (as_wanted) {
        for (const AxisRef& axis : wanted)
          if (!take(axis)) break;
      } else {
        for (const MeshAxis& axis : mesh_.axes()) (void)take(AxisRef(axis.name));
      }
      if (left == 1) return cut;
    }
    return {};
  }

  // Gathers one dimension, so that the rest is an exchange.
  bool gather_then_exchange() {
    for (std::size_t d = 0; d < now_.size(); ++d) {
      if (now_[d].empty()) continue;
      Lists before = now_;
      AxisList gathered = std::exchange(now_[d], AxisList());
      if (count(now_) == count(wanted_)) {
        add(CollectiveKind::kAllGather, std::move(gathered), bytes(now_));
        if (exchange()) return true;
        plan_.steps.clear();
      }
      now_ = before;
    }
    return false;
  }

  TensorType type_;
  Mesh mesh_;
  Lists now_, wanted_;
  ReshardPlan plan_;
};

}  // namespace

Collective predicted_collective(CollectiveKind kind, const AxisList& axes, std::int64_t bytes,
                                std::int64_t devices) {
  Collective one;
  one.kind = kind;
  one.bytes_in = one.bytes_out = bytes;
  if (!axes.empty())
    one.axes = axes;
  else
    one.group_size = devices;
  return one;
}

std::int64_t ReshardPlan::bytes() const {
  std::int64_t sum = 0;
  for (const ReshardStep& step : steps) sum += step.bytes;
  return sum;
}

ReshardPlan plan_reshard(const TensorType& type, const Sharding& from, const Sharding& to) {
  return Planner(type, from, to).run();
}

}  // namespace meshard
