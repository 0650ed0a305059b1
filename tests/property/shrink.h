// What shrinkers share: candidates are offered, and the last that still failed is the best.
#pragma once
#include <cstddef>
#include <functional>
#include <utility>

namespace meshard {

template <class Program>
class Shrinking {
 public:
  using StillFails = std::function<bool(const Program&)>;

  /// @param tries candidates that are looked at, at most
  Shrinking(Program program, StillFails still_fails, int tries)
      : best_(std::move(program)), still_fails_(std::move(still_fails)), tries_(tries) {}

  const Program& best() const { return best_; }
  bool spent() const { return tries_ <= 0; }

  /// Takes the candidate if it still fails.
  bool offer(Program candidate) {
    if (--tries_ < 0 || !still_fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  /// Offers the program with each element of a list left out, the last first.
  /// @param list gives a program's list
  template <class GetList>
  bool drop_each(GetList list) {
    bool better = false;
    for (std::size_t i = list(best_).size(); i-- > 0;) {
      Program candidate = best_;
      auto& elements = list(candidate);
      elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(i));
      better |= offer(std::move(candidate));
    }
    return better;
  }

  /// Offers the program changed by `change`, which returns false where there is nothing to change.
  template <class Change>
  bool change(Change change) {
    Program candidate = best_;
    return change(candidate) && offer(std::move(candidate));
  }

 private:
  Program best_;
  StillFails still_fails_;
  int tries_;
};

}  // namespace meshard
