#include "meshard/topology/ring_placement.h"

#include <algorithm>
#include <map>

#include "meshard/topology/shares.h"
#include "meshard/topology/torus_assignment.h"

namespace meshard {
namespace {

constexpr int kMostCandidates = 20000;

IntVector sizes_of_grid(const std::vector<RingDirection>& grid) {
  IntVector sizes;
  for (const RingDirection& direction : grid) sizes.push_back(direction.size);
  return sizes;
}

// A part of a direction whose steps are `inside` places long.
TourDirection part_of(const RingDirection& direction, std::int64_t size, std::int64_t inside,
                      bool mirrored, std::int64_t stride) {
  if (!direction.has_distance) return {size, 0, 0, stride};
  // Mirrored places of a ring of n are 1, 3, ... hops apart, up to n/2 and down again: n/4 on
  // average.
  if (mirrored)
    return {size, static_cast<double>(direction.size) / 4, static_cast<double>(direction.size) / 4,
            stride};
  std::int64_t around = (size - 1) * inside;
  if (direction.closes) around = std::min(around, direction.size - around);
  return {size, static_cast<double>(inside), static_cast<double>(around), stride};
}

// The quality of a placement over all axes. Smaller is better; earlier fields count first.
struct Quality {
  double worst = 0, mean = 0;
  std::vector<double> means;  // of the axes
  double step_mean = 0;

  bool no_worse_than(const Quality& other) const {
    return worst <= other.worst && mean <= other.mean && step_mean <= other.step_mean;
  }
  // Among the means, the last axes count first: they communicate most.
  bool better_than(const Quality& other) const {
    if (worst != other.worst) return worst < other.worst;
    if (mean != other.mean) return mean < other.mean;
    return std::lexicographical_compare(means.rbegin(), means.rend(), other.means.rbegin(),
                                        other.means.rend());
  }
};

// The number of steps along an axis. Two devices have one step.
double steps_along(std::int64_t size, TourEnd end) {
  return static_cast<double>(end == TourEnd::kReturns && size > 2 ? size : size - 1);
}

Quality quality_of(const std::vector<double>& lengths, IntView shape,
                   const std::vector<TourEnd>& ends) {
  Quality quality;
  double axes = 0, steps = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) continue;
    bool there_and_back = ends[axis] == TourEnd::kReturns && shape[axis] == 2;
    double length = there_and_back ? lengths[axis] / 2 : lengths[axis];
    double along = steps_along(shape[axis], ends[axis]), mean = length / along;
    double weight = along / static_cast<double>(shape[axis]);  // steps per device
    quality.worst = std::max(quality.worst, mean);
    quality.means.push_back(mean);
    quality.mean += mean;
    quality.step_mean += weight * mean;
    axes += 1;
    steps += weight;
  }
  if (axes == 0) return quality;
  quality.mean /= axes;
  quality.step_mean /= steps;
  return quality;
}

// The length of a tour in row-major order, with the first direction outermost.
double row_major_length(const TourBox& box, TourEnd end) {
  double length = 0, carry = 0;
  std::int64_t turns = 1;
  for (const TourDirection& direction : box) turns *= direction.size;
  for (std::size_t k = box.size(); k-- > 0;) {
    turns /= box[k].size;
    length += static_cast<double>(turns * (box[k].size - 1)) * (box[k].step + carry);
    carry += box[k].closing;
  }
  return end == TourEnd::kReturns ? length + carry : length;
}

RingPlacement as_assigned(const TorusAssignment& assignment) {
  RingPlacement placement;
  for (const IntVector& taken : assignment.taken) {
    placement.parts.emplace_back();
    for (std::size_t axis = 0; axis < taken.size(); ++axis)
      if (taken[axis] > 1) placement.parts.back().push_back({axis, taken[axis]});
  }
  return placement;
}

class PlacementSearch {
 public:
  PlacementSearch(const std::vector<RingDirection>& grid, IntView shape,
                  const std::vector<TourEnd>& ends)
      : grid_(grid), shape_(shape), ends_(ends), free_(sizes_of_grid(grid)) {
    placement_.parts.resize(grid.size());
  }

  RingPlacement best() {
    best_ = as_assigned(assign_torus(free_, shape_, AxisSplit::kWhereNeeded, grid_.size()));
    limit_ = quality_of(lengths_of(best_, row_major_length), shape_, ends_);
    consider(best_);
    share_out(shape_.size());
    return best_;
  }

 private:
  // Tries all ways to give the free places to the axes before `axis`; those that use few directions
  // come first.
  void share_out(std::size_t axis) {
    if (axis == 0) return order_parts(0);
    std::vector<IntVector> ways;
    for_each_share(free_, shape_[--axis], [&](const IntVector& shares) { ways.push_back(shares); });
    std::stable_sort(ways.begin(), ways.end(), [](const IntVector& a, const IntVector& b) {
      return std::count(a.begin(), a.end(), 1) > std::count(b.begin(), b.end(), 1);
    });
    for (const IntVector& shares : ways) {
      if (looked_at_ >= kMostCandidates) return;
      for (std::size_t k = 0; k < grid_.size(); ++k) {
        free_[k] /= shares[k];
        if (shares[k] > 1) placement_.parts[k].push_back({axis, shares[k]});
      }
      share_out(axis);
      for (std::size_t k = 0; k < grid_.size(); ++k) {
        free_[k] *= shares[k];
        if (shares[k] > 1) placement_.parts[k].pop_back();
      }
    }
  }

  // Tries all orders of the parts of each direction from `direction` on.
  void order_parts(std::size_t direction) {
    if (looked_at_ >= kMostCandidates) return;
    if (direction == grid_.size()) return consider(placement_);
    std::vector<RingPlacement::Part>& parts = placement_.parts[direction];
    std::vector<RingPlacement::Part> as_they_were = parts;
    auto by_axis = [](const auto& a, const auto& b) { return a.axis < b.axis; };
    std::sort(parts.begin(), parts.end(), by_axis);
    do order_parts(direction + 1);
    while (std::next_permutation(parts.begin(), parts.end(), by_axis));
    parts = as_they_were;
  }

  void consider(const RingPlacement& placement) {
    ++looked_at_;
    auto length = [this](const TourBox& box, TourEnd end) { return tour_length(box, end); };
    Quality quality = quality_of(lengths_of(placement, length), shape_, ends_);
    if (!quality.no_worse_than(limit_) || (found_ && !quality.better_than(quality_))) return;
    found_ = true;
    quality_ = quality;
    best_ = placement;
  }

  template <class Length>
  std::vector<double> lengths_of(const RingPlacement& placement, Length&& length) const {
    std::vector<double> lengths;
    for (const TourBox& box : axis_boxes(placement, grid_, shape_.size()))
      lengths.push_back(length(box, ends_[lengths.size()]));
    return lengths;
  }

  double tour_length(const TourBox& box, TourEnd end) {
    std::vector<double> key = {end == TourEnd::kReturns ? 1.0 : 0.0};
    for (const TourDirection& direction : box)
      key.insert(key.end(),
                 {static_cast<double>(direction.size), direction.step, direction.closing});
    auto [at, is_new] = lengths_.try_emplace(std::move(key), 0);
    if (is_new) at->second = RingTour(box, end).length();
    return at->second;
  }

  const std::vector<RingDirection>& grid_;
  IntView shape_;
  const std::vector<TourEnd>& ends_;
  IntVector free_;
  RingPlacement placement_;  // the candidate being built
  RingPlacement best_;
  Quality limit_, quality_;
  bool found_ = false;
  int looked_at_ = 0;
  std::map<std::vector<double>, double> lengths_;
};

}  // namespace

bool RingPlacement::is_mirrored(std::size_t direction,
                                const std::vector<RingDirection>& grid) const {
  return grid[direction].closes && parts[direction].size() > 1 && parts[direction][0].size == 2;
}

std::vector<TourBox> axis_boxes(const RingPlacement& placement,
                                const std::vector<RingDirection>& grid, std::size_t axes) {
  std::vector<TourBox> boxes(axes);
  std::int64_t grid_stride = 1;
  std::vector<std::int64_t> strides(grid.size());
  for (std::size_t k = grid.size(); k-- > 0;) {
    strides[k] = grid_stride;
    grid_stride *= grid[k].size;
  }
  for (std::size_t k = 0; k < grid.size(); ++k) {
    std::int64_t inside = grid[k].size;
    for (std::size_t i = 0; i < placement.parts[k].size(); ++i) {
      auto [axis, size] = placement.parts[k][i];
      inside /= size;
      bool mirrored = i == 0 && placement.is_mirrored(k, grid);
      boxes[axis].push_back(part_of(grid[k], size, inside, mirrored, inside * strides[k]));
    }
  }
  return boxes;
}

RingPlacement best_placement(const std::vector<RingDirection>& grid, IntView shape,
                             const std::vector<TourEnd>& ends) {
  return PlacementSearch(grid, shape, ends).best();
}

}  // namespace meshard
