// Flat layouts that can be undone: each mode is a digit of the index.
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

/// A value: an orthogonal flat layout (sorted by stride, each stride is a multiple of the next
/// one's stride * size), coalesced, together with its inverse: index -> number and number -> index.
/// Equal functions compare equal. A few integers, whatever the size.
///
/// `(2,4):(8,1)`: number 5 = (1, 1) has index 9; index 9, and every other one with these two
/// digits, has number 5.
class Digits {
 public:
  /// No digit: one number, 0, at index 0.
  Digits() = default;
  /// 0..size-1, each its own index.
  static Digits whole(std::int64_t size);

  /// Appends a less significant digit, merged with the last one if it continues it.
  /// @pre stride >= 1; the sizes multiplied fit 64 bits
  void push_back(Digit mode);
  void append(std::span<const Digit> modes);

  std::span<const Digit> modes() const { return {modes_.data(), modes_.size()}; }
  /// Number of numbers: the product of the sizes.
  std::int64_t size() const { return size_; }

  /// The number of an index; what other digits the index has does not matter. @pre index >= 0
  std::int64_t operator()(std::int64_t index) const {
    std::int64_t number = 0;
    for (const Digit& mode : modes_) number = number * mode.size + index / mode.stride % mode.size;
    return number;
  }
  /// The index with this number that is 0 in all other digits. @pre 0 <= number < size()
  /// @post operator()(offset(number)) = number
  std::int64_t offset(std::int64_t number) const {
    std::int64_t index = 0;
    for (std::size_t i = modes_.size(); i-- > 0;) {
      index += number % modes_[i].size * modes_[i].stride;
      number /= modes_[i].size;
    }
    return index;
  }
  /// True if the index is 0 in all other digits: offset(operator()(index)) = index.
  bool covers(std::int64_t index) const { return offset((*this)(index)) == index; }
  /// The number of every index 0..n-1; 2 or 3 operations each.
  void fill(std::span<std::int64_t> number_by_index) const;

  /// True if the digits are distinct ones: the order does not matter. Stricter than being
  /// injective: `(3,2):(2,3)` is not.
  bool is_orthogonal() const;
  /// True if these are some of the digits of 0..size-1. @pre is_orthogonal()
  bool lies_within(std::int64_t size) const;
  /// The same digits, the most significant first.
  Digits sorted() const;
  /// The digits of this that `part` leaves over, in the order of this.
  /// @pre the digits of `part` are orthogonal and lie within this
  Digits without(const Digits& part) const;
  /// What steps along this do to the digits of `other`: nothing, a change from wherever they begin,
  /// or (cuts of the two interlock) a change where they carry.
  enum class Effect { kNone, kMayCarry, kChanges };
  Effect effect_on(const Digits& other) const;
  /// The modes that number of this -> number of `frame`: how this steps through frame's numbers.
  /// @pre the digits of this lie within `frame`
  /// @error a digit of this does not fall on whole digits of `frame`.
  Result<Digits> within(const Digits& frame) const;

  /// number -> index; flat, `s:d` for one digit, `():()` for none.
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
