#include "meshard/mesh/digits.h"

#include <algorithm>

#include "meshard/base/fingerprint.h"

namespace meshard {
namespace {

// size * stride, the stride of a digit that continues this one; 0 if it does not fit 64 bits.
std::int64_t digit_top(const Digit& mode) {
  std::int64_t top;
  return __builtin_mul_overflow(mode.size, mode.stride, &top) ? 0 : top;
}

}  // namespace

Digits Digits::whole(std::int64_t size) {
  Digits digits;
  digits.push_back({size, 1});
  return digits;
}

void Digits::push_back(Digit mode) {
  if (mode.size == 1) return;
  std::int64_t size;
  if (__builtin_mul_overflow(size_, mode.size, &size))
    throw_invalid({}, "[mesh] ", size_, " times ", mode.size, " positions do not fit 64 bits");
  size_ = size;
  if (!modes_.empty() && modes_.back().stride == digit_top(mode))
    modes_.back() = {modes_.back().size * mode.size, mode.stride};
  else
    modes_.push_back(mode);
}

void Digits::append(std::span<const Digit> modes) {
  for (const Digit& mode : modes) push_back(mode);
}

void Digits::fill(std::span<std::int64_t> number_by_index) const {
  if (number_by_index.empty()) return;
  struct Weighted {
    Digit mode;
    std::int64_t weight;
  };
  InlineVector<Weighted, 3> by_stride;
  std::int64_t weight = 1;
  for (std::size_t i = modes_.size(); i-- > 0;) {
    by_stride.push_back({modes_[i], weight});
    weight *= modes_[i].size;
  }
  std::sort(by_stride.begin(), by_stride.end(),
            [](const Weighted& a, const Weighted& b) { return a.mode.stride < b.mode.stride; });

  // Entries below `done` are filled; each digit copies them with its weight added.
  std::int64_t* out = number_by_index.data();
  std::int64_t done = 1, count = static_cast<std::int64_t>(number_by_index.size());
  out[0] = 0;
  auto repeat_until = [&](std::int64_t wanted) {
    for (std::int64_t start = done; start < wanted; start += done)
      std::copy_n(out, std::min(done, wanted - start), out + start);
    done = wanted;
  };
  for (const Weighted& w : by_stride) {
    repeat_until(w.mode.stride);
    for (std::int64_t k = 1; k < w.mode.size; ++k)
      for (std::int64_t i = 0; i < w.mode.stride; ++i)
        out[k * w.mode.stride + i] = out[i] + k * w.weight;
    done = w.mode.stride * w.mode.size;
  }
  repeat_until(count);
}

Digits Digits::sorted() const {
  InlineVector<Digit, 3> modes = modes_;
  std::sort(modes.begin(), modes.end(), [](const Digit& a, const Digit& b) {
    return a.stride != b.stride ? a.stride > b.stride : a.size > b.size;
  });
  Digits digits;
  digits.append({modes.data(), modes.size()});
  return digits;
}

bool Digits::is_orthogonal() const {
  Digits digits = sorted();
  for (std::size_t i = 1; i < digits.modes_.size(); ++i) {
    std::int64_t top = digit_top(digits.modes_[i]);
    if (top == 0 || digits.modes_[i - 1].stride % top != 0) return false;
  }
  return true;
}

bool Digits::lies_within(std::int64_t size) const {
  Digits digits = sorted();
  if (digits.modes_.empty()) return true;
  std::int64_t top = digit_top(digits.modes_[0]);
  return top != 0 && size % top == 0;
}

Digits Digits::without(const Digits& part) const {
  Digits parts = part.sorted(), whole = sorted(), rest;
  std::size_t next = 0;
  for (const Digit& mode : whole.modes_) {
    std::int64_t top = mode.size * mode.stride;
    while (next < parts.modes_.size() && parts.modes_[next].stride >= mode.stride) {
      const Digit& inside = parts.modes_[next++];
      std::int64_t inside_top = inside.size * inside.stride;
      rest.push_back({top / inside_top, inside_top});
      top = inside.stride;
    }
    rest.push_back({top / mode.stride, mode.stride});
  }
  return whole == *this ? rest : rest.ordered_as(*this);
}

// The same digits, cut at the mode boundaries of `frame` and in its order. Unchanged if they cannot
// be cut there.
Digits Digits::ordered_as(const Digits& frame) const {
  InlineVector<Piece, 4> pieces;
  for (const Digit& mode : modes_)
    if (!cut(mode, frame, pieces)) return *this;
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.number_step > b.number_step; });
  Digits ordered;
  for (const Piece& piece : pieces) ordered.push_back(piece.digit);
  return ordered;
}

// Cuts a digit into pieces that each step along one mode of `frame`, and appends them, the most
// significant first. Returns false if a piece would not consist of whole steps of its mode.
bool Digits::cut(const Digit& digit, const Digits& frame, InlineVector<Piece, 4>& pieces) {
  std::size_t first = pieces.size();
  std::int64_t size = digit.size, stride = digit.stride;
  while (size > 1) {
    std::int64_t weight = frame.size(), place = 0;
    const Digit* home = nullptr;
    for (const Digit& candidate : frame.modes_) {
      weight /= candidate.size;
      if (candidate.stride <= stride && stride < candidate.size * candidate.stride)
        home = &candidate, place = weight;
    }
    if (!home || stride % home->stride != 0) return false;
    std::int64_t step = stride / home->stride;
    if (home->size % step != 0) return false;
    std::int64_t piece = std::min(size, home->size / step);
    if (size % piece != 0 || home->size / step % piece != 0) return false;
    pieces.push_back({{piece, stride}, place * step});
    size /= piece;
    stride *= piece;
  }
  std::reverse(pieces.begin() + first, pieces.end());
  return true;
}

Digits::Effect Digits::effect_on(const Digits& other) const {
  Effect effect = Effect::kNone;
  for (const Digit& a : modes_)
    for (const Digit& b : other.modes_) {
      bool same_place = a.stride < b.size * b.stride && b.stride < a.size * a.stride;
      bool even = a.stride >= b.stride ? a.stride % b.stride == 0 : b.stride % a.stride == 0;
      if (same_place && even) return Effect::kChanges;
      bool apart = a.stride >= b.stride ? a.stride % (b.size * b.stride) == 0
                                        : b.stride % (a.size * a.stride) == 0;
      if (!apart) effect = Effect::kMayCarry;
    }
  return effect;
}

Result<Digits> Digits::within(const Digits& frame) const {
  Digits numbers;
  for (const Digit& mode : modes_) {
    InlineVector<Piece, 4> pieces;
    if (!cut(mode, frame, pieces))
      return Error(ErrorCode::kInvalidArgument,
                   cat("[mesh] mode ", mode.size, ":", mode.stride,
                       " does not consist of whole modes of ", frame.layout()));
    for (const Piece& piece : pieces) numbers.push_back({piece.digit.size, piece.number_step});
  }
  return numbers;
}

Layout Digits::layout() const {
  if (modes_.size() == 1) return Layout(modes_[0].size, modes_[0].stride);
  IntVector sizes, strides;
  for (const Digit& mode : modes_) {
    sizes.push_back(mode.size);
    strides.push_back(mode.stride);
  }
  return Layout(IntTuple::flat(sizes), IntTuple::flat(strides));
}

std::size_t Digits::hash() const {
  std::size_t seed = modes_.size();
  for (const Digit& mode : modes_)
    seed = hash_combine(hash_combine(seed, static_cast<std::size_t>(mode.size)),
                        static_cast<std::size_t>(mode.stride));
  return seed;
}

}  // namespace meshard
