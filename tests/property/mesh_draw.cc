// Draws random chains of operations. Most steps are valid; some must be rejected.
#include <algorithm>
#include <numeric>

#include "tests/property/mesh_program.h"

namespace meshard::model {
namespace {

class Draw {
 public:
  explicit Draw(std::mt19937_64& random) : random_(random) {}

  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool one_in(int n) { return between(1, n) == 1; }
  template <class List>
  const auto& one_of(const List& list) {
    return list[static_cast<std::size_t>(between(0, static_cast<int>(list.size()) - 1))];
  }

  RootSpec root() {
    static const Ints kSizes = {1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6, 8, 12, 16};
    RootSpec root;
    int limit = one_in(8) ? 200 : one_in(2) ? 64 : 24, size = 1;
    for (int i = between(0, 4); i > 0; --i) {
      int axis = one_of(kSizes);
      if (size * axis > limit) continue;
      size *= axis;
      root.axes.push_back({std::string(1, static_cast<char>('a' + root.axes.size())), axis});
    }
    root.devices = devices(size);
    return root;
  }

  std::vector<std::int64_t> devices(int size) {
    std::vector<std::int64_t> ids(static_cast<std::size_t>(size));
    std::iota(ids.begin(), ids.end(), std::int64_t{0});
    switch (between(0, 6)) {
      case 0: break;
      case 1: {  // an arithmetic progression, up or down
        std::int64_t step = between(1, 9), first = between(0, 40);
        for (std::int64_t& id : ids) id = first + step * id;
        if (one_in(2)) std::reverse(ids.begin(), ids.end());
        break;
      }
      case 2:  // permuted
        std::shuffle(ids.begin(), ids.end(), random_);
        break;
      case 3:    // sparse, ascending
      case 4: {  // sparse, in any order
        std::int64_t id = between(0, 3);
        for (std::int64_t& out : ids) {
          out = id;
          id += one_in(4) ? between(2, 1000) : 1;
        }
        if (one_in(2)) std::shuffle(ids.begin(), ids.end(), random_);
        break;
      }
      default: {  // two strides, major or minor first
        int rows = between(1, size);
        while (size % rows != 0) --rows;
        std::int64_t columns = size / rows, step = columns + between(0, 5), first = between(0, 9);
        bool turned = one_in(2), down = one_in(3);
        for (std::int64_t i = 0; i < size; ++i) {
          std::int64_t row = turned ? i % rows : i / columns,
                       column = turned ? i / rows : i % columns;
          if (down) row = rows - 1 - row;
          ids[static_cast<std::size_t>(i)] = first + row * step + column;
        }
      }
    }
    return ids;
  }

  std::string fresh_name(const Mesh& mesh) {
    static const Names kNames = {"x", "y", "z", "u", "v", "w", "p", "q", "r", "s", "t"};
    if (one_in(12) && !mesh.axes.empty()) return one_of(mesh.axes).name;
    if (one_in(12) && !mesh.root->axes.empty()) return one_of(mesh.root->axes).name;
    if (one_in(12) && !mesh.root->flat_names.empty()) return one_of(mesh.root->flat_names).name;
    if (one_in(60)) return one_in(2) ? "" : "2x";
    return one_of(kNames) + (one_in(2) ? std::to_string(between(0, 9)) : "");
  }

  // Some axes of the mesh, in any order; sometimes registered, unknown or repeated names.
  Names some_names(const Mesh& mesh) {
    Names names;
    for (const MeshAxis& axis : mesh.axes)
      if (!one_in(3)) names.push_back(axis.name);
    if (!mesh.root->flat_names.empty() && one_in(3)) {
      if (one_in(2)) names.clear();
      names.push_back(one_of(mesh.root->flat_names).name);
    }
    if (one_in(25)) names.push_back(fresh_name(mesh));
    if (!names.empty() && one_in(25)) names.push_back(one_of(names));
    if (one_in(3)) std::shuffle(names.begin(), names.end(), random_);
    return names;
  }

  Axes parts_of(const Mesh& mesh, std::int64_t size) {
    Axes parts;
    if (one_in(25)) size += 1;
    while (size > 1 || (parts.empty() && !one_in(4)) || one_in(6)) {
      std::int64_t part = between(1, static_cast<int>(size));
      while (size % part != 0) --part;
      if (part == size && one_in(2) && size > 1) continue;
      size /= part;
      parts.push_back({fresh_name(mesh), part});
      if (parts.size() == 5) break;
    }
    if (size > 1) parts.push_back({fresh_name(mesh), size});
    std::shuffle(parts.begin(), parts.end(), random_);
    return parts;
  }

  Step step(const std::vector<MeshPtr>& meshes) {
    Step step;
    int last = static_cast<int>(meshes.size()) - 1;
    step.target = one_in(2) ? last : between(0, last);
    const Mesh& mesh = *meshes[step.target];
    step.operation = static_cast<Operation>(between(0, kOperations - 1));
    step.looks = random_();
    switch (step.operation) {
      case Operation::kSlice: step.names = some_names(mesh); break;
      case Operation::kPermute:
        for (const MeshAxis& axis : mesh.axes) step.names.push_back(axis.name);
        std::shuffle(step.names.begin(), step.names.end(), random_);
        if (one_in(20)) step.names = some_names(mesh);
        break;
      case Operation::kFlattenAll: step.name = one_in(2) ? "" : fresh_name(mesh); break;
      case Operation::kFlatten:
        step.names = some_names(mesh);
        step.name = fresh_name(mesh);
        break;
      case Operation::kUnflatten: {
        std::int64_t size = between(1, 6);
        step.name = fresh_name(mesh);
        if (!mesh.axes.empty() && !one_in(20)) {
          const MeshAxis& axis = one_of(mesh.axes);
          step.name = axis.name;
          size = axis.size;
        }
        step.parts = parts_of(mesh, size);
        break;
      }
      case Operation::kReshape: step.parts = parts_of(mesh, mesh.size()); break;
      case Operation::kRename:
        for (const MeshAxis& axis : mesh.axes)
          if (one_in(2)) step.renames.emplace_back(axis.name, fresh_name(mesh));
        if (step.renames.size() > 1 && one_in(3))  // swapped names
          for (std::size_t i = 0; i < step.renames.size(); ++i)
            step.renames[i].second = step.renames[(i + 1) % step.renames.size()].first;
        if (one_in(20)) step.renames.emplace_back(fresh_name(mesh), fresh_name(mesh));
        break;
      case Operation::kSqueeze:
        for (const MeshAxis& axis : mesh.axes)
          if (axis.size == 1 ? one_in(2) : one_in(25)) step.names.push_back(axis.name);
        break;
      case Operation::kUnsqueeze:
        step.name = fresh_name(mesh);
        step.number = between(0, static_cast<int>(mesh.axes.size()) + (one_in(20) ? 1 : 0));
        break;
      case Operation::kConcatenate:
        for (int i = between(0, 2); i >= 0; --i) {
          step.more.push_back(between(0, last));
          // Mostly meshes of the same devices; others are rejected.
          for (int turns = 0; turns < 6 && meshes[step.more.back()]->root != mesh.root; ++turns)
            step.more.back() = between(0, last);
        }
        break;
      case Operation::kSubmesh:
        step.names = some_names(mesh);
        step.number = one_in(20) ? between(0, 60) : mesh.root->devices[one_of(one_of(mesh.rows))];
        break;
      case Operation::kSubmeshAt:
        step.names = some_names(mesh);
        step.number =
            one_in(3) ? between(0, 5) : between(0, std::max(0, mesh.base_mesh().size() / 4));
        break;
      default: break;
    }
    return step;
  }

 private:
  std::mt19937_64& random_;
};

}  // namespace

Program draw_program(std::mt19937_64& random, int steps) {
  Draw draw(random);
  Program program;
  Model model;
  std::vector<MeshPtr> meshes;
  for (int i = draw.one_in(3) ? 2 : 1; i > 0; --i) {
    program.roots.push_back(draw.root());
    if (program.roots.size() == 2 && draw.one_in(2)) program.roots[1] = program.roots[0];
    const RootSpec& root = program.roots.back();
    meshes.push_back(model.make_root(root.axes, root.devices));
  }
  for (int i = 0; i < steps; ++i) {
    program.steps.push_back(draw.step(meshes));
    Answer answer = apply(model, meshes, program.steps.back());
    meshes.push_back(answer.mesh ? answer.mesh : meshes[program.steps.back().target]);
  }
  return program;
}

}  // namespace meshard::model
