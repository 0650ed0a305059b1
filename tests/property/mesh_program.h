// A chain of operations on meshes, as data: it can be drawn, run, shrunk and printed as C++.
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

/// One operation. Meshes have numbers: the roots, then the result of each step; a step that is
/// refused repeats its target.
struct Step {
  Operation operation = Operation::kSlice;
  int target = 0;
  std::vector<int> more;  // concatenate: the other meshes
  Names names;
  std::string name;
  Axes parts;
  std::vector<std::pair<std::string, std::string>> renames;
  std::int64_t number = 0;  // a place, an index or a device
  std::uint64_t looks = 0;  // the seed of what is looked at afterward
};

struct RootSpec {
  Axes axes;
  std::vector<std::int64_t> devices;
};

struct Program {
  std::vector<RootSpec> roots;
  std::vector<Step> steps;
};

/// What the model makes of a step. @post kNone and kRefused have no mesh
Answer apply(Model& model, const std::vector<MeshPtr>& meshes, const Step& step);

/// A random chain.
Program draw_program(std::mt19937_64& random, int steps);
/// The program as C++ code, one line a step.
std::string to_code(const Program& program);

/// Where the library and the model part.
struct Failure {
  std::string check;   // which property, in a few words
  std::string detail;  // expected and got
  int step = 0;        // the mesh looked at: a root or the result of a step
};
/// Runs the program in the library and in the model, and compares all that can be asked.
std::optional<Failure> run(const Program& program, Wrong wrong = Wrong::kNothing);

/// The smallest program found that fails in the same check.
Program shrink(Program program, const Failure& failure, Wrong wrong = Wrong::kNothing);

/// Throws Failure where a mesh and its model differ in anything that concerns this mesh alone.
void compare(const meshard::Mesh& mesh, const MeshPtr& expected, Model& model,
             std::mt19937_64& random);
/// The same for two meshes.
void compare_pair(const meshard::Mesh& a, const MeshPtr& expected_a, const meshard::Mesh& b,
                  const MeshPtr& expected_b);

}  // namespace meshard::model
