#include "meshard/mesh/rank_map.h"

#include <algorithm>
#include <limits>

#include "meshard/base/cat.h"
#include "meshard/base/fingerprint.h"
#include "meshard/layout/text_scanner.h"
#include "meshard/layout/values.h"

namespace meshard {
namespace {

constexpr std::int64_t kPrintedWhole = 16;  // longer strided maps are printed as a formula

[[noreturn]] void repeated(std::int64_t id, std::int64_t first, std::int64_t second) {
  throw_invalid({}, "[mesh] device ", id, " is listed twice: at positions ",
                std::min(first, second), " and ", std::max(first, second));
}

std::int64_t absolute(std::int64_t value) { return value < 0 ? -value : value; }

// The mode with the largest absolute stride below `limit`; the end if there is none.
template <class Modes>
const Digit* next_smaller(const Modes& modes, std::int64_t limit) {
  const Digit* best = modes.end();
  for (const Digit& mode : modes)
    if (absolute(mode.stride) < limit &&
        (best == modes.end() || absolute(mode.stride) > absolute(best->stride)))
      best = &mode;
  return best;
}

std::vector<std::int64_t> ids_of(const RankMap& map) {
  std::vector<std::int64_t> ids(static_cast<std::size_t>(map.size()));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = map[static_cast<std::int64_t>(i)];
  return ids;
}

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

}  // namespace

RankMap RankMap::affine(std::int64_t first, std::int64_t step, std::int64_t size) {
  std::int64_t reach, last;
  if (size == 1) step = 1;
  if (size < 1 || step == 0 || first < 0 || __builtin_mul_overflow(step, size - 1, &reach) ||
      __builtin_add_overflow(first, reach, &last) || last < 0)
    throw_invalid({}, "[mesh] device ids ", first, " + ", step, " * position for ", size,
                  " positions are not distinct non-negative numbers");
  Modes modes;
  if (size > 1) modes.push_back({size, step});
  return strided(first, std::move(modes));
}

RankMap RankMap::strided(std::int64_t first, Modes modes) {
  RankMap map;
  map.first_ = first;
  for (const Digit& mode : modes) map.size_ *= mode.size;
  map.modes_ = std::move(modes);
  return map;
}

// True if an id can be decomposed greedily, largest stride first: for each mode, all smaller steps
// together stay below its stride.
bool RankMap::can_be_undone(const Modes& modes) {
  for (const Digit& mode : modes) {
    std::int64_t reach = 0, part;
    for (const Digit& other : modes) {
      if (&other == &mode || absolute(other.stride) > absolute(mode.stride)) continue;
      if (__builtin_mul_overflow(other.size - 1, absolute(other.stride), &part) ||
          __builtin_add_overflow(reach, part, &reach))
        return false;
    }
    if (reach >= absolute(mode.stride)) return false;
  }
  return true;
}

RankMap RankMap::listed(std::vector<std::int64_t> ids) {
  if (ids.empty()) throw_invalid({}, "[mesh] the list of device ids is empty");
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0) throw_invalid({}, "[mesh] negative device id ", ids[i], " at position ", i);
    largest = std::max(largest, ids[i]);
  }
  if (std::optional<Layout> layout = from_values(ids)) {
    Modes modes;
    for (std::size_t i = 0; i < layout->shape().leaves().size(); ++i)
      if (layout->shape().leaves()[i] > 1)
        modes.push_back({layout->shape().leaves()[i], layout->stride().leaves()[i]});
    if (can_be_undone(modes)) return strided(ids[0], std::move(modes));
  }
  auto list = std::make_shared<List>();
  list->ids = std::move(ids);
  invert(*list, largest);
  RankMap map;
  map.size_ = static_cast<std::int64_t>(list->ids.size());
  map.modes_.push_back({map.size_, 1});
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

// Appends a mode, merging it with the last one if they are contiguous.
void RankMap::push_mode(Modes& modes, Digit mode) {
  std::int64_t top;
  if (mode.size == 1) return;
  if (!modes.empty() && !__builtin_mul_overflow(mode.size, mode.stride, &top) &&
      modes.back().stride == top)
    modes.back() = {modes.back().size * mode.size, mode.stride};
  else
    modes.push_back(mode);
}

RankMap RankMap::view(std::int64_t offset, const Digits& digits) const {
  RankMap map;
  map.list_ = list_;
  map.first_ = along(offset);
  for (const Digit& digit : digits.modes()) {
    Modes pieces;  // least significant first: a digit may step through several modes of this
    std::int64_t size = digit.size, stride = digit.stride, weight = 1;
    for (std::size_t i = modes_.size(); i-- > 0 && size > 1; weight *= modes_[i].size) {
      if (stride >= weight * modes_[i].size) continue;
      std::int64_t step = stride / weight, steps = modes_[i].size / step;
      std::int64_t piece = std::min(size, steps), start = offset / stride % steps;
      bool carries = start + piece > steps;  // the view would step past the end of the mode
      if (carries || stride % weight != 0 || modes_[i].size % step != 0 || size % piece != 0) break;
      pieces.push_back({piece, modes_[i].stride * step});
      size /= piece;
      stride *= piece;
    }
    if (size > 1) return listed_view(offset, digits);
    for (std::size_t i = pieces.size(); i-- > 0;) push_mode(map.modes_, pieces[i]);
  }
  map.size_ = digits.size();
  return map;
}

// A view stored as a list, for digits that cut the steps of this map unevenly.
RankMap RankMap::listed_view(std::int64_t offset, const Digits& digits) const {
  std::vector<std::int64_t> ids;
  ids.reserve(static_cast<std::size_t>(digits.size()));
  for (std::int64_t i = 0; i < digits.size(); ++i)
    ids.push_back((*this)[offset + digits.offset(i)]);
  return listed(std::move(ids));
}

std::int64_t RankMap::along(std::int64_t position) const {
  std::int64_t value = first_;
  for (std::size_t i = modes_.size(); i-- > 0;) {
    value += position % modes_[i].size * modes_[i].stride;
    position /= modes_[i].size;
  }
  return value;
}

std::int64_t RankMap::smallest() const {
  std::int64_t value = first_;
  for (const Digit& mode : modes_)
    if (mode.stride < 0) value += (mode.size - 1) * mode.stride;
  return value;
}

// The position whose along() is `value`, if there is one.
std::optional<std::int64_t> RankMap::undo(std::int64_t value) const {
  if (value < 0) return std::nullopt;
  std::int64_t left = value - smallest();  // both non-negative: no overflow
  if (left < 0) return std::nullopt;
  std::int64_t position = 0, limit = kNoLimit;
  for (std::size_t taken = 0; taken < modes_.size(); ++taken) {
    const Digit* mode = modes_.size() == 1 ? modes_.begin() : next_smaller(modes_, limit);
    limit = absolute(mode->stride);
    std::int64_t steps = left / limit;
    if (steps >= mode->size) return std::nullopt;
    left -= steps * limit;
    std::int64_t weight = 1;
    for (const Digit* after = mode + 1; after != modes_.end(); ++after) weight *= after->size;
    position += weight * (mode->stride < 0 ? mode->size - 1 - steps : steps);
  }
  return left == 0 ? std::optional(position) : std::nullopt;
}

std::optional<std::int64_t> RankMap::List::find(std::int64_t id) const {
  if (id < 0) return std::nullopt;
  if (!position_of.empty()) {
    if (id >= static_cast<std::int64_t>(position_of.size())) return std::nullopt;
    std::int64_t position = position_of[static_cast<std::size_t>(id)];
    return position < 0 ? std::nullopt : std::optional(position);
  }
  auto found =
      std::lower_bound(sorted.begin(), sorted.end(), std::pair<std::int64_t, std::int64_t>(id, 0));
  if (found == sorted.end() || found->first != id) return std::nullopt;
  return found->second;
}

std::optional<std::int64_t> RankMap::find(std::int64_t id) const {
  if (!list_) return undo(id);
  std::optional<std::int64_t> place = list_->find(id);
  bool whole_list = size_ == static_cast<std::int64_t>(list_->ids.size()) && modes_.size() == 1;
  return !place || (whole_list && first_ == 0) ? place : undo(*place);
}

std::int64_t RankMap::count_below(std::int64_t id) const {
  if (!list_ && find(id)) return *sorted().find(id);
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < size_; ++i) count += (*this)[i] < id;
  return count;
}

RankMap RankMap::sorted() const {
  if (list_) {
    std::vector<std::int64_t> ids = ids_of(*this);
    std::sort(ids.begin(), ids.end());
    return listed(std::move(ids));
  }
  Modes ascending;
  std::int64_t limit = kNoLimit;
  for (std::size_t taken = 0; taken < modes_.size(); ++taken) {
    const Digit* mode = next_smaller(modes_, limit);
    limit = absolute(mode->stride);
    push_mode(ascending, {mode->size, limit});
  }
  return strided(smallest(), std::move(ascending));
}

bool RankMap::contains(const RankMap& other) const {
  if (other.size_ > size_) return false;
  if (is_affine() && !other.list_) {  // this map is a full progression
    std::int64_t step = absolute(this->step()), low = smallest(), high = low + step * (size_ - 1);
    std::int64_t other_low = other.smallest(), other_high = other_low;
    bool whole_steps = (other_low - low) % step == 0;
    for (const Digit& mode : other.modes_) {
      other_high += (mode.size - 1) * absolute(mode.stride);
      whole_steps = whole_steps && mode.stride % step == 0;
    }
    return whole_steps && low <= other_low && other_high <= high;
  }
  for (std::int64_t i = 0; i < other.size_; ++i)
    if (!find(other[i])) return false;
  return true;
}

bool RankMap::meets(const RankMap& other) const {
  const RankMap& smaller = size_ <= other.size_ ? *this : other;
  const RankMap& larger = size_ <= other.size_ ? other : *this;
  if (larger.contains(smaller)) return true;
  if (!list_ && !other.list_)
    return !are_disjoint(steps_of(sorted()), steps_of(other.sorted()),
                         other.smallest() - smallest());
  for (std::int64_t i = 0; i < smaller.size_; ++i)
    if (larger.find(smaller[i])) return true;
  return false;
}

Layout RankMap::steps_of(const RankMap& map) {
  IntVector sizes, strides;
  for (const Digit& mode : map.modes_) {
    sizes.push_back(mode.size);
    strides.push_back(mode.stride);
  }
  return Layout(IntTuple::flat(sizes), IntTuple::flat(strides));
}

bool RankMap::same_devices(const RankMap& other) const {
  if (size_ != other.size_) return false;
  if (!list_ && !other.list_) return sorted() == other.sorted();
  if (list_ == other.list_ && first_ == other.first_ && modes_ == other.modes_) return true;
  return contains(other);
}

bool operator==(const RankMap& a, const RankMap& b) {
  if (a.size_ != b.size_) return false;
  bool same_rule = a.first_ == b.first_ && a.modes_ == b.modes_;
  if (a.list_ == b.list_ && (same_rule || !a.list_)) return same_rule;
  if (a.hash() != b.hash()) return false;
  for (std::int64_t i = 0; i < a.size_; ++i)
    if (a[i] != b[i]) return false;
  return true;
}

std::size_t RankMap::hash() const {
  constexpr std::int64_t kLooks = 16;
  std::size_t seed = static_cast<std::size_t>(size_);
  std::int64_t looks = std::min(size_, kLooks);
  for (std::int64_t k = 0; k < looks; ++k) {
    std::int64_t position = looks == 1 ? 0 : k * ((size_ - 1) / (looks - 1));
    seed = hash_combine(seed, static_cast<std::size_t>((*this)[position]));
  }
  return seed;
}

RankMap RankMap::simplest() const { return list_ ? listed(ids_of(*this)) : *this; }

std::string RankMap::to_string() const {
  if (list_)  // a view of a list may be strided
    if (RankMap simple = simplest(); !simple.list_) return simple.to_string();
  if (!list_ && size_ > kPrintedWhole) {
    if (!is_affine()) return cat('[', first_, '+', steps_of(*this), ']');
    return cat('[', first_, ',', first_ + step(), ",...,", (*this)[size_ - 1], ']');
  }
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
      std::int64_t first = ids[0], last = scanner.integer(), step, reach;
      scanner.expect("]");
      if (__builtin_sub_overflow(ids[1], first, &step) || step == 0 ||
          __builtin_sub_overflow(last, first, &reach) || reach % step != 0 || reach / step < 1)
        scanner.fail("the last id does not continue the sequence of the first two");
      return affine(first, step, reach / step + 1);
    }
    ids.push_back(scanner.integer());
    if (ids.size() == 1 && scanner.accept("+")) return read_steps(ids[0], scanner);
  }
  return listed(std::move(ids));
}

// Reads the rest of a strided map, after `[4+`.
RankMap RankMap::read_steps(std::int64_t first, TextScanner& scanner) {
  IntTuple shape = IntTuple::read(scanner);
  scanner.expect(":");
  Layout layout(shape, IntTuple::read(scanner));
  scanner.expect("]");
  Modes modes;
  for (std::size_t i = 0; i < layout.shape().leaves().size(); ++i)
    push_mode(modes, {layout.shape().leaves()[i], layout.stride().leaves()[i]});
  for (const Digit& mode : modes)
    if (mode.stride == 0 || mode.stride == std::numeric_limits<std::int64_t>::min())
      scanner.fail("the strides do not produce distinct ids");
  RankMap map = strided(first, modes);
  if (first < 0 || !can_be_undone(modes) || map.smallest() < 0)
    scanner.fail("the strides do not produce distinct non-negative ids");
  return map;
}

}  // namespace meshard
