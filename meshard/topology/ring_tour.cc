#include "meshard/topology/ring_tour.h"

#include <algorithm>

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
  std::stable_sort(order.begin(), order.end(),
                   [this](std::size_t a, std::size_t b) { return box_[a].step > box_[b].step; });
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

}  // namespace meshard
