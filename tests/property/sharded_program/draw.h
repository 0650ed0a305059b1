// What operations are drawn with.
#pragma once
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "meshard/graph/tensor.h"
#include "tests/property/sharded_program/device_sets.h"
#include "tests/property/sharded_program/host_value.h"
#include "tests/property/sharded_program/operation.h"
#include "tests/property/sharded_program/record.h"

namespace meshard::property {

/// Draws one program. Every value that is drawn is recorded at once, without a mesh, so that its
/// type and bounds are known to the steps after it.
class Draw {
 public:
  Draw(std::mt19937_64& random, Kind kind) : random_(random), kind_(kind) {}
  Program program();

  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool one_in(int n) { return between(1, n) == 1; }
  template <class List>
  const auto& one_of(const List& list) {
    return list[static_cast<std::size_t>(between(0, static_cast<int>(std::size(list)) - 1))];
  }

  /// A value that is known while the program is drawn.
  struct Known {
    TensorType shown;
    Bounds bounds;
    Home home;
    const TensorType& type() const { return shown; }
  };
  using Wanted = std::function<bool(const Known&)>;

  /// Appends an operand: a value that is wanted, or new host data.
  /// @return false if there is none, and no more data are allowed
  bool take(Step& step, const Wanted& wanted);
  bool take_type(Step& step, const TensorType& type);
  /// A value of other devices, for a transfer.
  bool take_from_elsewhere(Step& step);
  const Known& operand(const Step& step, int i) const {
    return known(step.operands[static_cast<std::size_t>(i)]);
  }

  DType number_dtype();
  std::int64_t extent();
  Shape shape(int min_rank, int max_rank);
  /// A shape that broadcasts to `shape`.
  Shape partner_shape(const Shape& shape);
  /// Some dimensions of a tensor of this rank, at least one, ascending. @pre rank > 0
  std::vector<std::int64_t> some_dimensions(int rank);
  std::vector<std::int64_t> permutation(int rank);

  /// A mesh of the devices where the step is and a spec for a tensor of this rank; none if there is
  /// no mesh.
  std::optional<Placement> placement(int rank);
  /// The same, and counts as a value that the step meets there.
  std::optional<Placement> mark(int rank);

  /// Whether a mark on the devices of the step is not a transfer.
  bool may_mark(const Known& value) const {
    return value.home.is_free() || value.home.set == target_;
  }

  /// What is known inside a manual function, of values that have the parameter's dimensions.
  struct Region {
    int mesh = 0;                    ///< of the program
    std::vector<std::int64_t> left;  ///< axes that are not manual yet, by number
    std::vector<std::int64_t> manual;
    /// The manual axes that split each dimension, the most significant first.
    std::vector<std::vector<std::int64_t>> splits;
    bool collectives = true;  ///< false in a function that is differentiated inside of it: the
                              ///< derivative of a part of the loss is that of the part
  };
  /// Fills in where a manual function of x splits, and which axes are manual in it: lists[0], none
  /// for all. Inside of another one they are some of those that are left.
  /// @return what is known inside of it; none if it cannot be
  std::optional<Region> manual_region(Step& step, const Known& x);

  /// Fills in some axes of a mesh, as placement and lists[0], whose other axes have several
  /// devices: a manual function over these, in which a mark names only the others.
  /// @return how many devices are along these axes, and what is known inside; none if there is none
  std::optional<std::pair<std::int64_t, Region>> stage_region(Step& step);

  bool in_stage() const { return stage_depth_ > 0; }
  bool in_region() const { return element_wise_ && region_.collectives; }
  /// Fills in an axis of the region and where it splits a value of this shape (see
  /// collective_tools.inc), as lists[0] and lists[1], and the mesh. @pre in_region()
  /// @return false if it splits none and must, or splits it unevenly
  bool along_axis(Step& step, const Shape& shape, bool must_split);
  /// The same for all axes that split a value: lists[0] are the axes, lists[1] the number of
  /// elements. @pre in_region()
  bool along_all_axes(Step& step, const Shape& shape);
  /// Another dimension than that of along_axis, of which `count` divides the local size.
  std::optional<int> other_dimension(const Step& step, const Shape& shape, std::int64_t count);

  /// What a body is drawn for.
  struct BodyOptions {
    bool smooth = false;           ///< it is differentiated
    std::optional<Region> manual;  ///< it sees parts of its parameters
    std::optional<Region> stage;   ///< it is a stage: it sees whole values, but none from outside
  };
  /// Appends a body: a function of these parameters, with a result for each type that is wanted;
  /// one without dimensions or dtype of its own may have any float type.
  /// @return false if none was found
  bool body(Step& step, const std::vector<TensorType>& parameters,
            const std::vector<Bounds>& bounds,
            const std::vector<std::optional<TensorType>>& results, BodyOptions options);
  bool body(Step& step, const std::vector<TensorType>& parameters,
            const std::vector<Bounds>& bounds,
            const std::vector<std::optional<TensorType>>& results) {
    return body(step, parameters, bounds, results, BodyOptions());
  }

  /// Inside a jitted or differentiated function, or a body: everything runs on one set of devices.
  bool in_trace() const { return in_trace_ || depth() > 0; }
  int depth() const { return recorder_.level(); }
  Kind kind() const { return kind_; }

 private:
  struct Frame {
    std::vector<Known> inputs, steps;
  };
  struct Saved;
  const Known& known(Ref ref) const {
    const Frame& frame = frames_[static_cast<std::size_t>(ref.level)];
    return (ref.is_input ? frame.inputs : frame.steps)[static_cast<std::size_t>(ref.index)];
  }
  void draw_meshes();
  void add_mesh(MeshSpec spec);
  void draw_apart();
  void draw_other_orders();
  std::vector<std::int64_t> shuffled_devices(int count);
  MeshSpec root_mesh(std::vector<std::int64_t> devices);
  MeshSpec stage_mesh();
  std::vector<Ref> fitting(const Wanted& wanted, int times_for_steps) const;
  bool may_see(Ref ref, const Known& value) const;
  void use(Step& step, Ref ref);
  bool new_input(Step& step, const TensorType& type);
  void mark_input(Input& input);
  const MeshAxis& region_axis(std::int64_t axis) const;
  std::int64_t parts_of(const Shape& shape, std::size_t d) const;
  Home home_of(const Placement& placement, int rank) const;
  void choose_target();
  bool try_step();
  bool try_outer_step();
  bool add_step(Step step);
  bool is_smooth(const Step& step);
  bool is_unambiguous(const Step& step) const;
  std::optional<Known> settled_value(const Step& step, const TensorType& type, Bounds bounds);
  void drop_unused(Body& body, std::size_t met);
  std::optional<Ref> body_result(const std::optional<TensorType>& wanted);
  bool draw_steps(int steps, int jit_steps);
  bool leave_trace();
  void choose_results();
  void choose_gradient();

  std::mt19937_64& random_;
  Kind kind_;
  Program program_;
  Recorder recorder_;
  HostEvaluator host_;  // of Kind::kTransforms
  std::vector<Frame> frames_{1};
  std::vector<std::vector<Step>*> steps_of_bodies_;  // where new steps go, innermost last
  std::vector<Mesh> meshes_;
  std::vector<int> set_of_mesh_;
  DeviceSets sets_;
  int target_ = -1;            // the set for which steps are drawn
  std::vector<Home> meeting_;  // what the step, or the traced function, has met so far
  bool in_trace_ = false, smooth_ = false;
  bool element_wise_ = false;  // inside a manual function
  Region region_;              // there, or inside a stage
  int stage_depth_ = 0;        // of the body that is a stage; 0: none
};

}  // namespace meshard::property
