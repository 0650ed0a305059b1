// Shared by shrinkers: candidates are offered, and the last one that still fails is the best.
#pragma once
#include <cstddef>
#include <functional>
#include <utility>

namespace meshard {

template <class Program>
class Shrinking {
 public:
  using StillFails = std::function<bool(const Program&)>;

  /// @param tries the maximum number of candidates to try
  Shrinking(Program program, StillFails still_fails, int tries)
      : best_(std::move(program)), still_fails_(std::move(still_fails)), tries_(tries) {}

  const Program& best() const { return best_; }
  bool spent() const { return tries_ <= 0; }

  /// Accepts the candidate if it still fails.
  bool offer(Program candidate) {
    if (--tries_ < 0 || !still_fails_(candidate)) return false;
    best_ = std::move(candidate);
    return true;
  }

  /// Offers the program without each element of a list, the last first.
  /// @param list returns a program's list
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

  /// Offers the program changed by `change`, which returns false if there is nothing to change.
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
