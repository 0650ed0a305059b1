#include "meshard/mesh/rank_map.h"

#include <algorithm>

#include "meshard/base/cat.h"
#include "meshard/base/fingerprint.h"
#include "meshard/layout/text_scanner.h"

namespace meshard {
namespace {

constexpr std::int64_t kPrintedWhole = 16;  // longer affine maps print as a progression

[[noreturn]] void repeated(std::int64_t id, std::int64_t first, std::int64_t second) {
  throw_invalid({}, "[mesh] device ", id, " is listed twice: at positions ",
                std::min(first, second), " and ", std::max(first, second));
}

}  // namespace

RankMap RankMap::affine(std::int64_t first, std::int64_t step, std::int64_t size) {
  RankMap map;
  map.first_ = first;
  map.step_ = size == 1 ? 1 : step;
  map.size_ = size;
  std::int64_t reach, last;
  if (size < 1 || map.step_ == 0 || first < 0 ||
      __builtin_mul_overflow(map.step_, size - 1, &reach) ||
      __builtin_add_overflow(first, reach, &last) || last < 0)
    throw_invalid({}, "[mesh] device ids ", first, " + ", step, " * position for ", size,
                  " positions are not distinct non-negative numbers");
  return map;
}

RankMap RankMap::listed(std::vector<std::int64_t> ids) {
  if (ids.empty()) throw_invalid({}, "[mesh] the list of device ids is empty");
  std::int64_t size = static_cast<std::int64_t>(ids.size());
  std::int64_t step = size == 1 ? 1 : ids[1] - ids[0];
  std::int64_t largest = 0;
  bool regular = step != 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0) throw_invalid({}, "[mesh] negative device id ", ids[i], " at position ", i);
    largest = std::max(largest, ids[i]);
    regular = regular && (i == 0 || ids[i] - ids[i - 1] == step);
  }
  if (regular) return affine(ids[0], step, size);

  auto list = std::make_shared<List>();
  list->ids = std::move(ids);
  invert(*list, largest);
  list->hash = list->ids.size();
  for (std::int64_t id : list->ids)
    list->hash = hash_combine(list->hash, static_cast<std::size_t>(id));
  RankMap map;
  map.size_ = size;
  map.list_ = std::move(list);
  return map;
}

void RankMap::invert(List& list, std::int64_t largest) {
  std::size_t count = list.ids.size();
  if (static_cast<std::size_t>(largest) / 4 <= count) {  // dense enough for a table
    list.position_of.assign(static_cast<std::size_t>(largest) + 1, -1);
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t& position = list.position_of[static_cast<std::size_t>(list.ids[i])];
      if (position >= 0) repeated(list.ids[i], position, static_cast<std::int64_t>(i));
      position = static_cast<std::int64_t>(i);
    }
    return;
  }
  list.sorted.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    list.sorted.emplace_back(list.ids[i], static_cast<std::int64_t>(i));
  std::sort(list.sorted.begin(), list.sorted.end());
  for (std::size_t i = 1; i < count; ++i)
    if (list.sorted[i].first == list.sorted[i - 1].first)
      repeated(list.sorted[i].first, list.sorted[i - 1].second, list.sorted[i].second);
}

std::optional<std::int64_t> RankMap::find(std::int64_t id) const {
  if (!list_) {
    // first and id are non-negative: the difference does not overflow.
    if (id < 0 || (id - first_) % step_ != 0) return std::nullopt;
    std::int64_t position = (id - first_) / step_;
    if (position < 0 || position >= size_) return std::nullopt;
    return position;
  }
  if (id < 0) return std::nullopt;
  if (!list_->position_of.empty()) {
    if (id >= static_cast<std::int64_t>(list_->position_of.size())) return std::nullopt;
    std::int64_t position = list_->position_of[static_cast<std::size_t>(id)];
    return position < 0 ? std::nullopt : std::optional(position);
  }
  auto found = std::lower_bound(list_->sorted.begin(), list_->sorted.end(),
                                std::pair<std::int64_t, std::int64_t>(id, 0));
  if (found == list_->sorted.end() || found->first != id) return std::nullopt;
  return found->second;
}

bool RankMap::same_devices(const RankMap& other) const {
  if (size_ != other.size_) return false;
  if (!list_ && !other.list_)
    return std::min(first_, last()) == std::min(other.first_, other.last()) &&
           std::max(first_, last()) == std::max(other.first_, other.last());
  if (list_ == other.list_) return true;
  const RankMap& listed_one = list_ ? *this : other;
  const RankMap& other_one = list_ ? other : *this;
  return std::all_of(listed_one.list_->ids.begin(), listed_one.list_->ids.end(),
                     [&](std::int64_t id) { return other_one.find(id).has_value(); });
}

std::string RankMap::to_string() const {
  if (!list_ && size_ > kPrintedWhole)
    return cat('[', first_, ',', first_ + step_, ",...,", last(), ']');
  std::string out = "[";
  for (std::int64_t i = 0; i < size_; ++i) append(out, i == 0 ? "" : ","), append(out, (*this)[i]);
  return out + "]";
}

RankMap RankMap::read(TextScanner& scanner) {
  scanner.expect("[");
  std::vector<std::int64_t> ids;
  while (!scanner.accept("]")) {
    if (!ids.empty()) scanner.expect(",");
    if (ids.size() == 2 && scanner.accept("...")) {
      scanner.expect(",");
      std::int64_t step = ids[1] - ids[0], last = scanner.integer();
      scanner.expect("]");
      if (step == 0 || (last - ids[0]) % step != 0 || (last - ids[0]) / step < 1)
        scanner.fail("the last id does not continue the first two");
      return affine(ids[0], step, (last - ids[0]) / step + 1);
    }
    ids.push_back(scanner.integer());
  }
  return listed(std::move(ids));
}

std::size_t RankMap::hash() const {
  if (list_) return list_->hash;
  return hash_combine(
      hash_combine(static_cast<std::size_t>(first_), static_cast<std::size_t>(step_)),
      static_cast<std::size_t>(size_));
}

}  // namespace meshard
