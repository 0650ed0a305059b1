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
    kSubmesh  ///< the submesh of `parent` along `axes` that has devices[0]
  } form = kRoot;
  std::vector<MeshAxis> axes;
  std::vector<std::int64_t> devices;  ///< of this mesh, in its order
  int parent = -1;                    ///< of a submesh: an earlier mesh of the program
};

/// The meshes of a program, where device i of their description is devices[i]; a root is of its
/// device type, if there are any.
std::vector<Mesh> make_meshes(const std::vector<MeshSpec>& specs,
                              const std::vector<std::int64_t>& devices,
                              const std::vector<std::string>& device_types = {});
/// The devices of a mesh in its order.
std::vector<std::int64_t> devices_of(const Mesh& mesh);
/// As many devices as programs use (MESHARD_PROGRAM_DEVICES, at least 4; default 8), each in its
/// own place.
const std::vector<std::int64_t>& own_places();

/// Where a value is put: a mesh of the program, and a spec for it.
struct Placement {
  int mesh = 0;
  PartitionSpec spec;
};

/// Whether no dimension may be split further.
bool is_closed(const PartitionSpec& spec);

/// Host data that the program begins with.
struct Input {
  TensorType type;
  int seed = 0;  ///< of the elements, see input_data
  std::optional<Placement> mark;
  bool by_callback = false;  ///< made part by part, each on its devices; @pre marked, closed
};

/// A value of the program: at level 0 an input, or the result of a step; at level n a parameter, or
/// the result of a step, of the n-th body around the reader, counted from outside.
struct Ref {
  bool is_input = false;
  int index = 0;
  int level = 0;
  friend bool operator==(const Ref&, const Ref&) = default;
};

struct Step;

/// A function inside a program: the body of a loop, what is differentiated.
struct Body {
  std::vector<TensorType> parameters;
  std::vector<Step> steps;
  std::vector<Ref> results;
};

struct Step {
  const Operation* operation = nullptr;
  std::vector<Ref> operands;
  std::vector<std::vector<std::int64_t>> lists;    ///< what else the operation takes
  Placement placement;                             ///< of a mark or a transfer
  enum Look { kNone, kSync, kRead } look = kNone;  ///< what is done with the result at once
  std::vector<Body> bodies;
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
  /// sync() is given all results together.
  bool sync_results = false;
  /// If not empty: the program runs again with devices[i] in the place of device i, and calls the
  /// same jitted function.
  std::vector<std::int64_t> retarget;
};

/// Which programs are drawn.
enum class Kind {
  kOneSet,      ///< one set of devices, in one or several orders
  kMeshes,      ///< several sets and orders, submeshes, transfers, other devices
  kTransforms,  ///< loops, branches and derivatives in any order, inside bodies
  kExplicit,    ///< a mesh with explicit axes
  kStages       ///< manual functions over some of the axes, whose values are split over the others
};

/// What is known of a value's elements before it is computed.
struct Bounds {
  double size = 0;   ///< none is larger
  double error = 0;  ///< how far two correct runs may be apart; 0: not at all
};

/// The elements of an input: quarters in [-2, 2], whole numbers in [-4, 4] or [0, 8], both bools.
HostArray input_data(const TensorType& type, int seed);
Bounds input_bounds(DType dtype);

/// The arguments of the jitted function, or of the one that a gradient is taken of: the inputs that
/// the jitted steps use, the float inputs.
std::vector<Ref> input_refs(const Program& program);
/// What the jitted steps return: values that are results or that a later step uses.
std::vector<Ref> jit_results(const Program& program);
/// True if another run may call the same jitted function: an argument says which devices.
bool can_call_again(const Program& program);
/// Every operand and result at any depth. The function gets the bodies around it, outermost first.
using RefVisitor = std::function<void(Ref&)>;
void for_each_ref(Program& program, const RefVisitor& visit);
void for_each_ref(Step& step, const RefVisitor& visit);
/// The step and those of its bodies.
void for_each_step(const Step& step, const std::function<void(const Step&)>& visit);
/// True if one of them, at any depth, is a derivative.
bool takes_derivatives(const std::vector<Step>& steps);

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
Program draw_program(std::mt19937_64& random, Kind kind);

/// The program as C++ that needs only <meshard/meshard.h>: it compares the runs, says where they
/// differ, and returns 1 if they do.
std::string to_code(const Program& program);

/// Where the runs part.
struct Failure {
  std::string check;   ///< which property, in a few words
  std::string detail;  ///< expected and got
};

/// A runtime that is wrong on purpose, to test the test.
enum class Wrong {
  kNothing,
  kSumOfUnevenCountsOneMore,
  kTransposedMarkInJit,
  kOtherDevicesAreOff  ///< tanh, where the program runs again
};

/// Whether a program is compared with its values on the host.
bool is_on_host(const Program& program);
/// The results computed on the host, with differences for derivatives: of programs of
/// Kind::kTransforms. None where an operation has no such form.
/// @error the program has no derivative there, or no finite values
std::optional<std::vector<HostArray>> values_on_host(const Program& program);

/// MESHARD_PROGRAM_PLATFORMS=2: run() puts meshes without a common device on two platforms, the
/// default one and `second`.
bool on_two_platforms();

/// Runs the program without a mesh and with its shardings, and compares.
/// @error if the program is impossible without a mesh
std::optional<Failure> run(const Program& program, Wrong wrong = Wrong::kNothing);

/// Whether and how a program fails; throws if it is not a program.
using Judge = std::function<std::optional<Failure>(const Program&)>;
/// The smallest program found that fails in the same check.
Program shrink(Program program, const Failure& failure, const Judge& judge);

}  // namespace meshard::property
