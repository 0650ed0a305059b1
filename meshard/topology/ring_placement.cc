#include "meshard/topology/ring_placement.h"

#include <algorithm>
#include <map>

#include "meshard/topology/hybrid_mesh.h"

namespace meshard {
namespace {

// 0, 2, 4, ..., 5, 3, 1: no step is longer than two places.
std::int64_t folded_place(std::int64_t i, std::int64_t size) {
  return 2 * i < size ? 2 * i : 2 * (size - i) - 1;
}

double natural_length(const TourDirection& line) {
  return static_cast<double>(line.size - 1) * line.step + line.closing;
}
double folded_length(const TourDirection& line) {
  return 2 * static_cast<double>(line.size - 1) * line.step;
}
bool is_folded(const TourDirection& line) {
  return line.closing > 2 * line.step && folded_length(line) <= natural_length(line);
}

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
    std::ranges::stable_sort(ways, [](const IntVector& a, const IntVector& b) {
      return std::ranges::count(a, 1) > std::ranges::count(b, 1);
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
    std::ranges::sort(parts, by_axis);
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

RingTour::RingTour(TourBox box, TourEnd end) : end_(end) {
  for (const TourDirection& direction : box)
    if (direction.size > 1) box_.push_back(direction);
  size_ = size_of(all());
  if (end == TourEnd::kAnywhere) {
    length_ = snake_length(all()).length;
    return;
  }
  for (Mask mask = 0; mask <= all(); ++mask) plans_.push_back(plan(mask));
  length_ = plans_.back().length;
}

std::int64_t RingTour::size_of(Mask mask) const {
  std::int64_t size = 1;
  for (std::size_t k = 0; k < box_.size(); ++k)
    if (mask >> k & 1) size *= box_[k].size;
  return size;
}

void RingTour::offer(Plan& best, Plan plan) const {
  if (best.way == Way::kPoint || plan.length < best.length) best = plan;
}

RingTour::Plan RingTour::plan(Mask mask) const {
  Plan best;
  for (std::size_t k = 0; k < box_.size(); ++k) {
    if (!(mask >> k & 1)) continue;
    Mask rest = mask & ~(Mask{1} << k);
    if (rest == 0) return alone(k);
    offer(best, comb(k, rest));
    if (box_[k].closing == box_[k].step) offer(best, onwards(k, rest));
    offer(best, to_and_fro(k, rest));
  }
  return best;
}

RingTour::Plan RingTour::alone(std::size_t k) const {
  const TourDirection& line = box_[k];
  return {is_folded(line) ? folded_length(line) : natural_length(line), Way::kAlone, k};
}

RingTour::Plan RingTour::to_and_fro(std::size_t k, Mask rest) const {
  std::int64_t places = size_of(rest);
  double length = static_cast<double>(places * (box_[k].size - 1)) * box_[k].step;
  if (places % 2 == 1) length += box_[k].closing;
  return {length + plans_[rest].length, Way::kToAndFro, k};
}

RingTour::Plan RingTour::onwards(std::size_t k, Mask rest) const {
  std::int64_t places = size_of(rest), drift = places % box_[k].size;
  std::int64_t steps = places * (box_[k].size - 1) + std::min(drift, box_[k].size - drift);
  return {static_cast<double>(steps) * box_[k].step + plans_[rest].length, Way::kOnwards, k};
}

// Rows are snakes through the rest. All but the first and the last row leave out column 0.
RingTour::Plan RingTour::comb(std::size_t k, Mask rest) const {
  Snake row = snake_length(rest);
  std::int64_t rows = box_[k].size / 2 * 2, by_two = box_[k].size % 2 * ((row.size + 1) / 2);
  double length = static_cast<double>(rows) * row.length -
                  static_cast<double>(rows - 2) * row.first_step +
                  2 * static_cast<double>(rows - 1 + by_two) * box_[k].step;
  return {length, Way::kComb, k};
}

RingTour::Snake RingTour::snake_length(Mask mask) const {
  Snake snake;
  for (std::size_t k : snake_order(mask)) {
    snake.length += static_cast<double>((box_[k].size - 1) * snake.size) * box_[k].step;
    snake.size *= box_[k].size;
    snake.first_step = box_[k].step;
  }
  return snake;
}

// Directions with long steps are outermost, where steps are fewest.
InlineVector<std::size_t, 4> RingTour::snake_order(Mask mask) const {
  InlineVector<std::size_t, 4> order;
  for (std::size_t k = 0; k < box_.size(); ++k)
    if (mask >> k & 1) order.push_back(k);
  std::ranges::stable_sort(
      order, [this](std::size_t a, std::size_t b) { return box_[a].step > box_[b].step; });
  return order;
}

std::vector<std::int64_t> RingTour::places() const {
  return end_ == TourEnd::kReturns ? tour(all()) : snake(all());
}

std::vector<std::int64_t> RingTour::tour(Mask mask) const {
  const Plan& plan = plans_[mask];
  if (plan.way == Way::kPoint) return {0};
  const TourDirection& line = box_[plan.direction];
  Mask rest = mask & ~(Mask{1} << plan.direction);
  if (plan.way == Way::kAlone) return tour_alone(line);
  if (plan.way == Way::kComb) return tour_comb(line, rest);
  std::vector<std::int64_t> places;
  std::int64_t turn = 0;
  for (std::int64_t place : tour(rest)) {
    for (std::int64_t i = 0; i < line.size; ++i) {
      std::int64_t fro = turn % 2 == 0 ? i : line.size - 1 - i;
      std::int64_t on = (i + line.size - turn % line.size) % line.size;
      places.push_back(place + line.stride * (plan.way == Way::kOnwards ? on : fro));
    }
    ++turn;
  }
  return places;
}

std::vector<std::int64_t> RingTour::tour_alone(const TourDirection& line) const {
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < line.size; ++i)
    places.push_back(line.stride * (is_folded(line) ? folded_place(i, line.size) : i));
  return places;
}

std::vector<std::int64_t> RingTour::snake(Mask mask) const {
  std::vector<std::int64_t> places = {0};
  for (std::size_t k : snake_order(mask)) {
    std::vector<std::int64_t> next;
    for (std::size_t turn = 0; turn < places.size(); ++turn)
      for (std::int64_t i = 0; i < box_[k].size; ++i)
        next.push_back(places[turn] + box_[k].stride * (turn % 2 == 0 ? i : box_[k].size - 1 - i));
    places = std::move(next);
  }
  return places;
}

std::vector<std::int64_t> RingTour::tour_comb(const TourDirection& column, Mask rest) const {
  std::vector<std::int64_t> row = snake(rest), places = {0};
  std::int64_t width = std::ssize(row), rows = column.size / 2 * 2;
  auto at = [&](std::int64_t r, std::int64_t c) {
    return r * column.stride + row[static_cast<std::size_t>(c)];
  };
  for (std::int64_t r = 0; r < rows - 1; ++r)
    for (std::int64_t c = 1; c < width; ++c) places.push_back(at(r, r % 2 == 0 ? c : width - c));
  bool one_more_row = column.size % 2 == 1;
  for (std::int64_t c = width - 1; c >= 0; --c) {
    places.push_back(at(rows - 1, c));
    // The extra row is visited between the places of this row, two of its places at a time; if the
    // width is odd, its place at the far end is visited alone.
    bool odd_one = c == width - 1 && width % 2 == 1;
    if (!one_more_row || (c % 2 == 0 && !odd_one)) continue;
    places.push_back(at(rows, c));
    if (!odd_one) places.push_back(at(rows, c - 1));
  }
  for (std::int64_t r = rows - 2; r > 0; --r) places.push_back(at(r, 0));
  return places;
}

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
