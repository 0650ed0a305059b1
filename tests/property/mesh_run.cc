// Runs a chain in the library and in the model.
#include <exception>

#include "meshard/base/cat.h"
#include "meshard/mesh/concatenate.h"
#include "meshard/mesh/submeshes.h"
#include "tests/property/mesh_program.h"

namespace meshard::model {
namespace {

using LibraryMesh = meshard::Mesh;

std::optional<LibraryMesh> apply_in_library(const std::vector<LibraryMesh>& meshes,
                                            const Step& step) {
  const LibraryMesh& mesh = meshes[step.target];
  switch (step.operation) {
    case Operation::kSlice:
      return step.names.size() == 1 ? mesh[step.names[0]] : mesh.slice(step.names);
    case Operation::kPermute: return mesh.permute(step.names);
    case Operation::kFlattenAll: return mesh.flatten(step.name);
    case Operation::kFlatten: return mesh.flatten(step.names, step.name);
    case Operation::kUnflatten: return mesh.unflatten(step.name, step.parts);
    case Operation::kReshape: return mesh.reshape(step.parts);
    case Operation::kRename: return mesh.rename(step.renames);
    case Operation::kSqueezeAll: return mesh.squeeze();
    case Operation::kSqueeze: return mesh.squeeze(step.names);
    case Operation::kUnsqueeze:
      return mesh.unsqueeze(step.name, static_cast<std::size_t>(step.number));
    case Operation::kConcatenate: {
      std::vector<LibraryMesh> all = {mesh};
      for (int other : step.more) all.push_back(meshes[other]);
      return concatenate(all);
    }
    case Operation::kSubmesh: return mesh.submesh(step.names, step.number);
    case Operation::kSubmeshAt: return mesh.submeshes(step.names)[step.number];
    case Operation::kAsRoot: return mesh.as_root();
    case Operation::kRoot: return mesh.root();
    case Operation::kBase: break;
  }
  return mesh.base();
}

// The library's result of a step, or the error message.
struct LibraryAnswer {
  std::optional<LibraryMesh> mesh;
  std::string refusal;
};

LibraryAnswer answer_of_library(const std::vector<LibraryMesh>& meshes, const Step& step) {
  try {
    return {apply_in_library(meshes, step), ""};
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw Failure{"an internal error", error.what(), 0};
    return {std::nullopt, error.what()};
  } catch (const std::exception& error) {
    throw Failure{"an exception that is not an Error", error.what(), 0};
  }
}

void check_answer(const LibraryAnswer& got, const Answer& expected) {
  bool refused = !got.refusal.empty();
  switch (expected.kind) {
    case Answer::kEither: return;
    case Answer::kRefused:
      if (!refused) {
        std::string text = got.mesh ? got.mesh->to_string() : "none";
        throw Failure{"refused", cat("expected an error, got ", text), 0};
      }
      return;
    case Answer::kNone:
      if (refused || got.mesh) throw Failure{"no mesh", cat("expected none, got ", got.refusal), 0};
      return;
    case Answer::kMesh:
      if (refused || !got.mesh)
        throw Failure{"answered", cat("expected a mesh, got ", refused ? got.refusal : "none"), 0};
  }
}

}  // namespace

std::optional<Failure> run(const Program& program, Wrong wrong) {
  Model model(wrong);
  std::vector<LibraryMesh> meshes;
  std::vector<MeshPtr> expected;
  auto look = [&](std::uint64_t seed) {
    std::mt19937_64 random(seed);
    compare(meshes.back(), expected.back(), model, random);
    for (std::size_t i = 0; i < meshes.size(); ++i)
      compare_pair(meshes.back(), expected.back(), meshes[i], expected[i]);
  };
  try {
    for (const RootSpec& root : program.roots) {
      meshes.push_back(root.axes.size() % 2 == 0
                           ? LibraryMesh(root.axes, root.devices)
                           : LibraryMesh(root.axes, RankMap::listed(root.devices)));
      expected.push_back(model.make_root(root.axes, root.devices));
      look(1);
    }
    for (const Step& step : program.steps) {
      Answer answer = apply(model, expected, step);
      LibraryAnswer got = answer_of_library(meshes, step);
      check_answer(got, answer);
      if (got.mesh) {
        meshes.push_back(*got.mesh);
        expected.push_back(answer.mesh);
        look(step.looks);
      } else {
        meshes.push_back(meshes[step.target]);
        expected.push_back(expected[step.target]);
        std::mt19937_64 random(step.looks);
        compare(meshes.back(), expected.back(), model, random);
      }
    }
  } catch (Failure failure) {
    failure.step = static_cast<int>(meshes.size());
    return failure;
  } catch (const std::exception& error) {
    return Failure{"an unexpected exception", error.what(), static_cast<int>(meshes.size())};
  }
  return std::nullopt;
}

}  // namespace meshard::model
