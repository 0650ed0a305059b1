// What operations are drawn with.
#pragma once
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "meshard/graph/tensor.h"
#include "tests/property/sharded_program_operation.h"

namespace meshard::property {

/// Draws one program. Every value that is drawn is recorded at once, without a mesh, so that its
/// type and bounds are known to the steps after it.
class Draw {
 public:
  explicit Draw(std::mt19937_64& random) : random_(random) {}
  Program program();

  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool one_in(int n) { return between(1, n) == 1; }
  template <class List>
  const auto& one_of(const List& list) {
    return list[static_cast<std::size_t>(between(0, static_cast<int>(std::size(list)) - 1))];
  }

  /// A value that is known while the program is drawn.
  struct Known {
    Tensor tensor;
    Bounds bounds;
    int home = 0;
    const TensorType& type() const { return tensor.type(); }
  };
  using Wanted = std::function<bool(const Known&)>;

  /// Appends an operand: a value that is wanted, or new host data.
  /// @return false if there is none, and no more data are allowed
  bool take(Step& step, const Wanted& wanted);
  bool take_type(Step& step, const TensorType& type);
  /// A value of another home, for a transfer to `home`.
  bool take_from_elsewhere(Step& step, int home);
  const Known& operand(const Step& step, int i) const { return known(step.operands[i]); }

  DType number_dtype();
  std::int64_t extent();
  Shape shape(int min_rank, int max_rank);
  /// A shape that broadcasts to `shape`.
  Shape partner_shape(const Shape& shape);
  /// Some dimensions of a tensor of this rank, at least one, ascending. @pre rank > 0
  std::vector<std::int64_t> some_dimensions(int rank);
  std::vector<std::int64_t> permutation(int rank);

  /// A mesh of the current home and a spec for a tensor of this rank; none if there is no mesh.
  std::optional<Placement> placement(int rank);
  bool in_jit() const { return in_jit_; }
  int home() const { return home_; }
  /// From now on, steps are drawn for the devices of the next home.
  /// @return false if there is none
  bool move_on();

 private:
  const Known& known(Ref ref) const {
    return ref.is_input ? inputs_[ref.index] : steps_[ref.index];
  }
  void draw_meshes();
  MeshSpec root_mesh(int home, std::vector<std::int64_t> devices);
  bool new_input(Step& step, const TensorType& type);
  bool try_step();
  void choose_results();

  std::mt19937_64& random_;
  Program program_;
  std::vector<Known> inputs_, steps_;
  std::vector<Mesh> meshes_;
  int home_ = 0, homes_ = 1;
  bool in_jit_ = false;
};

}  // namespace meshard::property
