// A chain of mesh operations as data, which can be generated, run, shrunk and printed as C++.
#pragma once
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/property/mesh_model.h"

namespace meshard::model {

enum class Operation {
  kSlice,
  kPermute,
  kFlattenAll,
  kFlatten,
  kUnflatten,
  kReshape,
  kRename,
  kSqueezeAll,
  kSqueeze,
  kUnsqueeze,
  kConcatenate,
  kSubmesh,
  kSubmeshAt,
  kAsRoot,
  kRoot,
  kBase
};
inline constexpr int kOperations = 16;

/// One operation. Meshes are numbered: the roots, then the result of each step. A step that is
/// rejected repeats its target.
struct Step {
  Operation operation = Operation::kSlice;
  int target = 0;
  std::vector<int> more;  // concatenate: the other meshes
  Names names;
  std::string name;
  Axes parts;
  std::vector<std::pair<std::string, std::string>> renames;
  std::int64_t number = 0;  // a place, an index or a device
  std::uint64_t looks = 0;  // the seed that selects the checks after the step
};

struct RootSpec {
  Axes axes;
  std::vector<std::int64_t> devices;
};

struct Program {
  std::vector<RootSpec> roots;
  std::vector<Step> steps;
};

/// The model's result of a step. @post kNone and kRefused have no mesh
Answer apply(Model& model, const std::vector<MeshPtr>& meshes, const Step& step);

/// Generates a random chain.
Program draw_program(std::mt19937_64& random, int steps);
/// The program as C++ code, with one line per step.
std::string to_code(const Program& program);

/// A difference between the library and the model.
struct Failure {
  std::string check;   // which property, in a few words
  std::string detail;  // expected and got
  int step = 0;        // the mesh that was checked: a root or the result of a step
};
/// Runs the program in the library and in the model, and compares all properties.
std::optional<Failure> run(const Program& program, Wrong wrong = Wrong::kNothing);

/// Returns the smallest program found that fails the same check.
Program shrink(Program program, const Failure& failure, Wrong wrong = Wrong::kNothing);

/// Compares a mesh with its model, by itself. Throws Failure if they differ.
void compare(const meshard::Mesh& mesh, const MeshPtr& expected, Model& model,
             std::mt19937_64& random);
/// The same for two meshes.
void compare_pair(const meshard::Mesh& a, const MeshPtr& expected_a, const meshard::Mesh& b,
                  const MeshPtr& expected_b);

}  // namespace meshard::model
