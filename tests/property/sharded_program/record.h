// The run without shardings, recorded and not computed: the types and bounds of all values.
#pragma once
#include <vector>

#include "tests/property/sharded_program/operation.h"

namespace meshard::property {

struct Recorded {
  Tensor tensor;
  Bounds bounds;
};

class Recorder {
 public:
  Recorder() { frames_.emplace_back(); }
  void add_input(const TensorType& type, int seed);
  /// Records a step of the innermost body, or of the program. @error it is impossible
  const Recorded& add(const Step& step);
  const Recorded& value(Ref ref) const;
  int level() const { return static_cast<int>(frames_.size()) - 1; }

  /// From now on, steps are those of a body of a step of the innermost body.
  void enter(const std::vector<TensorType>& parameters, const std::vector<Bounds>& bounds);
  void leave() { frames_.pop_back(); }
  /// So many inputs of the program, and steps of the innermost body, stay.
  void cut(std::size_t inputs, std::size_t steps);
  std::size_t num_inputs() const { return frames_[0].inputs.size(); }
  std::size_t num_steps() const { return frames_.back().steps.size(); }

 private:
  struct Frame {
    std::vector<Recorded> inputs, steps;
  };
  struct Leave;
  std::vector<Recorded> run(const Body& body);

  std::vector<Frame> frames_;
};

}  // namespace meshard::property
