#include "tests/property/mesh_program.h"

#include <algorithm>

#include "meshard/base/cat.h"

namespace meshard::model {
namespace {

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

template <class List, class Show>
std::string braced(const List& list, Show show) {
  std::string out;
  for (const auto& element : list) out += (out.empty() ? "" : ", ") + show(element);
  return "{" + out + "}";
}

std::string code_of(const Axes& axes) {
  return braced(
      axes, [](const MeshAxis& axis) { return cat('{', quoted(axis.name), ", ", axis.size, '}'); });
}

std::string code_of(const Names& names) { return braced(names, quoted); }

std::string code_of(const Step& step) {
  std::string mesh = cat('m', step.target, '.');
  switch (step.operation) {
    case Operation::kSlice: return cat(mesh, "slice(", code_of(step.names), ")");
    case Operation::kPermute: return cat(mesh, "permute(", code_of(step.names), ")");
    case Operation::kFlattenAll: return cat(mesh, "flatten(", quoted(step.name), ")");
    case Operation::kFlatten:
      return cat(mesh, "flatten(", code_of(step.names), ", ", quoted(step.name), ")");
    case Operation::kUnflatten:
      return cat(mesh, "unflatten(", quoted(step.name), ", ", code_of(step.parts), ")");
    case Operation::kReshape: return cat(mesh, "reshape(", code_of(step.parts), ")");
    case Operation::kRename:
      return cat(mesh, "rename(",
                 braced(step.renames,
                        [](const auto& pair) {
                          return cat('{', quoted(pair.first), ", ", quoted(pair.second), '}');
                        }),
                 ")");
    case Operation::kSqueezeAll: return mesh + "squeeze()";
    case Operation::kSqueeze: return cat(mesh, "squeeze(", code_of(step.names), ")");
    case Operation::kUnsqueeze:
      return cat(mesh, "unsqueeze(", quoted(step.name), ", ", step.number, ")");
    case Operation::kConcatenate: {
      std::vector<int> meshes = step.more;
      meshes.insert(meshes.begin(), step.target);
      return cat("concatenate(", braced(meshes, [](int number) { return cat('m', number); }), ")");
    }
    case Operation::kSubmesh:
      return cat("*", mesh, "submesh(", code_of(step.names), ", ", step.number, ")");
    case Operation::kSubmeshAt:
      return cat(mesh, "submeshes(", code_of(step.names), ")[", step.number, "]");
    case Operation::kAsRoot: return mesh + "as_root()";
    case Operation::kRoot: return mesh + "root()";
    case Operation::kBase: break;
  }
  return mesh + "base()";
}

bool is_counted(const std::vector<std::int64_t>& devices) {
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (devices[i] != static_cast<std::int64_t>(i)) return false;
  return true;
}

}  // namespace

Answer apply(Model& model, const std::vector<MeshPtr>& meshes, const Step& step) {
  const MeshPtr& mesh = meshes[step.target];
  switch (step.operation) {
    case Operation::kSlice: return model.slice(mesh, step.names);
    case Operation::kPermute: return model.permute(mesh, step.names);
    case Operation::kFlattenAll: return model.flatten(mesh, step.name);
    case Operation::kFlatten: return model.flatten(mesh, step.names, step.name);
    case Operation::kUnflatten: return model.unflatten(mesh, step.name, step.parts);
    case Operation::kReshape: return model.reshape(mesh, step.parts);
    case Operation::kRename: return model.rename(mesh, step.renames);
    case Operation::kSqueezeAll: return model.squeeze(mesh);
    case Operation::kSqueeze: return model.squeeze(mesh, step.names);
    case Operation::kUnsqueeze:
      return model.unsqueeze(mesh, step.name, static_cast<int>(step.number));
    case Operation::kConcatenate: {
      std::vector<MeshPtr> all = {mesh};
      for (int other : step.more) all.push_back(meshes[other]);
      return model.concatenate(all);
    }
    case Operation::kSubmesh: return model.submesh(mesh, step.names, step.number);
    case Operation::kSubmeshAt:
      return model.submesh_at(mesh, step.names, static_cast<int>(step.number));
    case Operation::kAsRoot: return model.as_root(mesh);
    case Operation::kRoot: return model.root(mesh);
    case Operation::kBase: break;
  }
  return model.base(mesh);
}

std::string to_code(const Program& program) {
  std::string out;
  Model model;
  std::vector<MeshPtr> meshes;
  for (const RootSpec& root : program.roots) {
    out += cat("Mesh m", meshes.size(), "(", code_of(root.axes));
    if (!is_counted(root.devices))
      out += ", " + braced(root.devices, [](std::int64_t id) { return std::to_string(id); });
    out += ");\n";
    meshes.push_back(model.make_root(root.axes, root.devices));
  }
  for (const Step& step : program.steps) {
    Answer answer = apply(model, meshes, step);
    bool refused = answer.mesh == nullptr;
    out += cat("Mesh m", meshes.size(), " = ", refused ? cat('m', step.target) : code_of(step),
               refused ? cat(";  // ", code_of(step), " is refused or none\n") : ";\n");
    meshes.push_back(refused ? meshes[step.target] : answer.mesh);
  }
  return out;
}

}  // namespace meshard::model
