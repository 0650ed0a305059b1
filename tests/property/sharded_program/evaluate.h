// Runs the steps of a program, and bodies inside bodies, on tensors.
#pragma once
#include <functional>
#include <vector>

#include "tests/property/sharded_program/operation.h"

namespace meshard::property {

/// The values of the steps that run, of each level.
class Evaluator {
 public:
  /// What else is done with a step's result.
  using After = std::function<Tensor(Tensor, const Arguments&, int level)>;

  explicit Evaluator(After after = {}) : after_(std::move(after)) {}

  /// nullptr: the run without shardings.
  void set_meshes(const std::vector<Mesh>* meshes) { meshes_ = meshes; }
  void begin(std::vector<Tensor> inputs, std::size_t steps);
  void set_input(int index, Tensor value) { at({true, index}) = std::move(value); }
  void set_step(int index, Tensor value) { at({false, index}) = std::move(value); }
  void forget_steps();
  void end() { frames_.clear(); }

  const Tensor& value(Ref ref) const;
  std::vector<Tensor> values(const std::vector<Ref>& refs) const;
  /// Steps `from` to `to` - 1 of the innermost body, or of the program.
  void take(const std::vector<Step>& steps, int from, int to);

 private:
  struct Frame {
    std::vector<Tensor> inputs, steps;
  };
  Tensor& at(Ref ref);
  std::vector<Tensor> call(const Body& body, std::vector<Tensor> arguments);

  After after_;
  const std::vector<Mesh>* meshes_ = nullptr;
  std::vector<Frame> frames_;
};

/// @param meshes nullptr: without shardings
Tensor make_input(const Input& input, const std::vector<Mesh>* meshes);

/// Whether all steps can be recorded. Explicit axes refuse what would leave a choice.
/// @error internal errors
bool can_be_recorded(const Program& program, const std::vector<Mesh>& meshes);
/// The program with the same placements, said without axes of size 1. It must be recordable
/// whenever the program is, and the reverse.
Program without_axes_of_size_1(Program program, const std::vector<Mesh>& meshes);

}  // namespace meshard::property
