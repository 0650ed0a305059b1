// What the steps of a scenario alone say about the sharding of its tensors.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tools/conformance/txla/scenario/scope.h"

namespace meshard::conformance {

/// How much of a tensor's state is determined.
enum class Standing {
  kHost,       ///< it is on the host and was never used
  kMarked,     ///< it lies as the user said
  kCleared,    ///< the same, without the annotation
  kResharded,  ///< it lies as the user said at last, which the reference refused
  kChosen,     ///< it lies as the compiler, or the first program that used it, liked
};

/// A value: what is known about one tensor.
struct Known {
  Standing standing = Standing::kChosen;
  /// What the last mark asked for, as HLO text; empty without one.
  std::string asked = {};
  /// Its elements, if they came from the host as they are; else empty.
  std::vector<double> data = {};
};

/// Follows the steps of a scenario.
class Standings {
 public:
  /// Takes a step into account that did what it says.
  /// @param rank of the tensor that it marks
  /// @param refused by the reference
  void after(const Json& step, std::size_t rank, bool refused);
  /// What a step's `mesh` and `spec` ask for, as HLO text, of a tensor of `rank` dimensions.
  std::string asked_by(const Json& step, std::size_t rank) const;
  Known of(const std::string& name) const;
  bool any_on_host() const;
  /// From here on nothing is determined: the reference lost values.
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
