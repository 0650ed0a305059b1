// A program over tensors, as data: it can be drawn, run with and without its shardings, shrunk and
// printed as C++.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/array/host_array.h"
#include "meshard/mesh/mesh.h"
#include "meshard/sharding/partition_spec.h"

namespace meshard::property {

struct Operation;
/// @pre there is one of this name
const Operation* find_operation(std::string_view name);

/// A mesh of a program, as it is made.
struct MeshSpec {
  enum Form {
    kRoot,    ///< Mesh(axes, devices)
    kFlat,    ///< all axes of that as one, "f"
    kSubmesh  ///< the first device's submesh along all axes but the first
  } form = kRoot;
  std::vector<MeshAxis> axes;
  std::vector<std::int64_t> devices;
  /// Meshes of one home have the same devices; values of one program run have one home.
  int home = 0;

  Mesh make() const;
};

/// Where a value is put: a mesh of the program, and a spec for it.
struct Placement {
  int mesh = 0;
  PartitionSpec spec;
};

/// Host data that the program begins with.
struct Input {
  TensorType type;
  int seed = 0;  ///< of the elements, see input_data
  std::optional<Placement> mark;
  bool by_callback = false;  ///< made part by part, each on its devices; @pre marked, closed
  int home = 0;
};

/// A value of the program: an input, or what a step gives.
struct Ref {
  bool is_input = false;
  int index = 0;
  friend bool operator==(const Ref&, const Ref&) = default;
};

struct Step {
  const Operation* operation = nullptr;
  std::vector<Ref> operands;
  std::vector<std::vector<std::int64_t>> lists;    ///< what else the operation takes
  Placement placement;                             ///< of a mark or a transfer
  enum Look { kNone, kSync, kRead } look = kNone;  ///< what is done with the result at once
  int home = 0;
};

struct Program {
  std::vector<MeshSpec> meshes;
  std::vector<Input> inputs;
  std::vector<Step> steps;
  std::vector<Ref> results;
  /// So many of the first steps are a jitted function of the inputs; the others are lazy.
  int jit_steps = 0;
  /// The results are the gradients of the sum of their squares with respect to the float inputs.
  /// All steps are jitted, or none.
  bool gradient = false;
};

/// What is known of a value's elements before it is computed.
struct Bounds {
  double size = 0;   ///< none is larger
  double error = 0;  ///< how far two correct runs may be apart; 0: not at all
};

/// The elements of an input: quarters in [-2, 2], whole numbers in [-4, 4] or [0, 8], both bools.
HostArray input_data(const TensorType& type, int seed);

/// The inputs of home 0, where the jitted steps run: all, or those that a gradient is taken of.
std::vector<Ref> input_refs(const Program& program, bool floats_only);
/// What the jitted steps return: values that are results or that a later step uses.
std::vector<Ref> jit_results(const Program& program);

/// How far the two runs may be apart: result i by error[i], and by a fraction of the largest
/// result.
struct Tolerance {
  std::vector<double> error;
  double relative = 0;
};
/// @error if the program is impossible without a mesh
Tolerance tolerance_of(const Program& program);
/// Type of what each step gives. @error as above
std::vector<TensorType> step_types(const Program& program);

/// A random program. @post the unsharded run is possible, and its values are finite
Program draw_program(std::mt19937_64& random);

/// The program as C++ that needs only <meshard/meshard.h>: it compares the two runs, says where
/// they differ, and returns 1 if they do.
std::string to_code(const Program& program);

/// Where the two runs part.
struct Failure {
  std::string check;   ///< which property, in a few words
  std::string detail;  ///< expected and got
};

/// A runtime that is wrong on purpose, to test the test.
enum class Wrong { kNothing, kSumOfUnevenCountsOneMore, kTransposedMarkInJit };

/// Runs the program without a mesh and with its shardings, and compares.
/// @error if the program is impossible without a mesh
std::optional<Failure> run(const Program& program, Wrong wrong = Wrong::kNothing);

/// Whether and how a program fails; throws if it is no program.
using Judge = std::function<std::optional<Failure>(const Program&)>;
/// The smallest program found that fails in the same check.
Program shrink(Program program, const Failure& failure, const Judge& judge);

}  // namespace meshard::property
