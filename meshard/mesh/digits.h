// Invertible flat layouts: each mode is a digit of the index.
#pragma once
#include <cstdint>
#include <span>

#include "meshard/layout/layout.h"

namespace meshard {

/// A value: one mode of a flat layout.
struct Digit {
  std::int64_t size = 1;
  std::int64_t stride = 1;
  friend bool operator==(const Digit&, const Digit&) = default;
};

/// A value: a coalesced, orthogonal flat layout together with its inverse. Orthogonal means: sorted
/// by stride, each stride is a multiple of the next one's stride * size. operator() maps index to
/// number, offset() maps number to index. Equal functions compare equal. Takes a few integers,
/// whatever the size.
///
/// Example: in `(2,4):(8,1)`, number 5 = (1, 1) has index 9; index 9, and every other index with
/// these two digits, has number 5.
class Digits {
 public:
  /// No digits: the only number is 0, at index 0.
  Digits() = default;
  /// The identity on 0..size-1.
  static Digits whole(std::int64_t size);

  /// Appends a less significant digit, merging it with the last one if they are contiguous.
  /// @pre stride >= 1; the sizes multiplied fit 64 bits
  void push_back(Digit mode);
  void append(std::span<const Digit> modes);

  std::span<const Digit> modes() const { return {modes_.data(), modes_.size()}; }
  /// How many numbers there are: the product of the sizes.
  std::int64_t size() const { return size_; }

  /// The number of an index. The other digits of the index are ignored. @pre index >= 0
  std::int64_t operator()(std::int64_t index) const {
    std::int64_t number = 0;
    for (const Digit& mode : modes_) number = number * mode.size + index / mode.stride % mode.size;
    return number;
  }
  /// The index that has this number and is 0 in all other digits. @pre 0 <= number < size()
  /// @post operator()(offset(number)) = number
  std::int64_t offset(std::int64_t number) const {
    std::int64_t index = 0;
    for (std::size_t i = modes_.size(); i-- > 0;) {
      index += number % modes_[i].size * modes_[i].stride;
      number /= modes_[i].size;
    }
    return index;
  }
  /// The index with these digits of `index`, and 0 in all others: offset(operator()(index)).
  /// @pre index >= 0
  std::int64_t part_of(std::int64_t index) const {
    std::int64_t part = 0;
    for (const Digit& mode : modes_) part += index / mode.stride % mode.size * mode.stride;
    return part;
  }
  /// True if the index is 0 in all other digits. @pre index >= 0
  bool covers(std::int64_t index) const { return part_of(index) == index; }
  /// Fills in the number of each index 0..n-1, with 2 or 3 operations per index.
  void fill(std::span<std::int64_t> number_by_index) const;

  /// True if no two digits overlap, whatever their order. Stricter than injective: `(3,2):(2,3)` is
  /// injective but not orthogonal.
  bool is_orthogonal() const;
  /// True if these are digits of the indices 0..size-1: the largest size * stride divides `size`.
  /// @pre is_orthogonal()
  bool lies_within(std::int64_t size) const;
  /// The same digits, the most significant first.
  Digits sorted() const;
  /// The digits that remain without those of `part`, in the order of this.
  /// @pre the digits of `part` are orthogonal and lie within this
  Digits without(const Digits& part) const;
  /// How steps along this change the digits of `other`: never (kNone), from every start (kChanges),
  /// or, if the cuts of the two interlock, only where they carry (kMayCarry).
  enum class Effect { kNone, kMayCarry, kChanges };
  Effect effect_on(const Digits& other) const;
  /// These digits in terms of `frame`: maps a number of this to a number of `frame`.
  /// @pre the digits of this lie within `frame`
  /// @error a digit of this does not consist of whole digits of `frame`.
  Result<Digits> within(const Digits& frame) const;

  /// The layout that maps numbers to indices: flat, `s:d` for one digit, `():()` for none.
  Layout layout() const;
  std::size_t hash() const;
  friend bool operator==(const Digits&, const Digits&) = default;

 private:
  struct Piece {
    Digit digit;
    std::int64_t number_step;  // what one step of the digit adds to the frame's number
  };
  static bool cut(const Digit& digit, const Digits& frame, InlineVector<Piece, 4>& pieces);
  Digits ordered_as(const Digits& frame) const;

  InlineVector<Digit, 3> modes_;  // the most significant first; no size 1
  std::int64_t size_ = 1;
};

}  // namespace meshard
