// What follows from a scenario's steps alone about the sharding of its tensors.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tools/conformance/txla/scenario/scope.h"

namespace meshard::conformance {

/// How a tensor's state is determined.
enum class Standing {
  kHost,       ///< it is on the host and was never used
  kMarked,     ///< it has the sharding that the user marked
  kCleared,    ///< the same, without the annotation
  kResharded,  ///< it has the sharding of the last mark, which the reference rejected
  kChosen,     ///< the compiler, or the first program that used it, chose its sharding
};

/// What is known about one tensor; a value type.
struct Known {
  Standing standing = Standing::kChosen;
  /// The sharding of the last mark, as HLO text; empty without a mark.
  std::string asked = {};
  /// Its elements, if they came from the host without changes; otherwise empty.
  std::vector<double> data = {};
};

/// Tracks the steps of a scenario.
class Standings {
 public:
  /// Updates the state after a step that succeeded.
  /// @param rank of the tensor that it marks
  /// @param refused by the reference
  void after(const Json& step, std::size_t rank, bool refused);
  /// The sharding with a step's `mesh` and `spec`, as HLO text, for a tensor with `rank`
  /// dimensions.
  std::string asked_by(const Json& step, std::size_t rank) const;
  Known of(const std::string& name) const;
  bool any_on_host() const;
  /// From here on nothing is known: the reference lost values.
  void forget() { known_.clear(); }

 private:
  void after_mark(const Json& step, std::size_t rank, bool refused);
  void after_compute(const Json& step);
  void after_change(const Json& step);
  void after_clear(const std::string& name);
  void use(const Json& name);

  std::map<std::string, Mesh> meshes_;
  std::map<std::string, Known> known_;
};

}  // namespace meshard::conformance
