// Shrinks a failing chain, as long as it fails the same check.
#include <algorithm>
#include <numeric>

#include "tests/property/mesh_program.h"
#include "tests/property/shrink.h"

namespace meshard::model {
namespace {

class Shrink {
 public:
  Shrink(Program program, const std::string& check, Wrong wrong)
      : shrinking_(
            std::move(program),
            [check, wrong](const Program& candidate) {
              std::optional<Failure> failure = run(candidate, wrong);
              return failure && failure->check == check;
            },
            kTries) {}

  Program smallest() {
    for (bool better = true; better && !shrinking_.spent();) {
      better = false;
      better |= shorten();
      better |= drop_steps();
      better |= drop_roots();
      better |= shrink_roots();
      better |= shrink_steps();
    }
    return best();
  }

 private:
  static constexpr int kTries = 3000;

  const Program& best() const { return shrinking_.best(); }

  // Removes steps after the failing one, which have no effect.
  bool shorten() {
    bool better = false;
    while (!best().steps.empty()) {
      Program candidate = best();
      candidate.steps.pop_back();
      if (!shrinking_.offer(candidate)) break;
      better = true;
    }
    return better;
  }

  // Removes one mesh; steps that used it use `instead`.
  static void remove_mesh(Program& program, int mesh, int instead) {
    auto moved = [&](int& user) {
      if (user == mesh) user = instead;
      if (user > mesh) --user;
    };
    for (Step& step : program.steps) {
      moved(step.target);
      for (int& other : step.more) moved(other);
    }
  }

  bool drop_steps() {
    bool better = false;
    for (std::size_t i = best().steps.size(); i-- > 0;) {
      Program candidate = best();
      int mesh = static_cast<int>(best().roots.size() + i), target = best().steps[i].target;
      candidate.steps.erase(candidate.steps.begin() + static_cast<std::ptrdiff_t>(i));
      remove_mesh(candidate, mesh, target);
      better |= shrinking_.offer(candidate);
    }
    return better;
  }

  bool drop_roots() {
    bool better = false;
    for (std::size_t i = best().roots.size(); best().roots.size() > 1 && i-- > 0;) {
      Program candidate = best();
      candidate.roots.erase(candidate.roots.begin() + static_cast<std::ptrdiff_t>(i));
      remove_mesh(candidate, static_cast<int>(i), i == 0 ? 1 : 0);
      better |= shrinking_.offer(candidate);
    }
    return better;
  }

  bool shrink_roots() {
    bool better = false;
    for (std::size_t r = 0; r < best().roots.size(); ++r) {
      better |= simplify_devices(r);
      for (std::size_t i = best().roots[r].axes.size(); i-- > 0;) {
        for (int divisor : {0, 2, 3, 5}) {  // 0: removes the axis
          std::int64_t size = best().roots[r].axes[i].size;
          if (divisor == 0 ? size != 1 : size % divisor != 0) continue;
          bool done = false;
          for (bool first : {true, false}) done = done || divide_axis(r, i, divisor, first);
          better |= done;
          if (done && divisor == 0) break;
        }
        if (i < best().roots[r].axes.size() && best().roots[r].axes[i].size > 2)
          better |= resize_axis(r, i, best().roots[r].axes[i].size - 1);
      }
    }
    return better;
  }

  bool simplify_devices(std::size_t r) {
    Program candidate = best();
    std::vector<std::int64_t>& ids = candidate.roots[r].devices;
    std::vector<std::int64_t> counted(ids.size()), ranked = ids;
    std::iota(counted.begin(), counted.end(), std::int64_t{0});
    if (ids == counted) return false;
    ids = counted;
    if (shrinking_.offer(candidate)) return true;
    // The same order, without gaps.
    std::vector<std::int64_t> sorted = ranked;
    std::sort(sorted.begin(), sorted.end());
    for (std::int64_t& id : ranked)
      id = std::lower_bound(sorted.begin(), sorted.end(), id) - sorted.begin();
    if (ranked == best().roots[r].devices) return false;
    candidate = best();
    candidate.roots[r].devices = ranked;
    return shrinking_.offer(candidate);
  }

  // Shrinks an axis of a root, and of equal roots, so that they stay equal.
  bool resize_axis(std::size_t r, std::size_t axis, std::int64_t size) {
    return shrinking_.offer(resized(r, axis, size));
  }

  Program resized(std::size_t r, std::size_t axis, std::int64_t size) {
    Program candidate = best();
    RootSpec old = best().roots[r];
    for (RootSpec& root : candidate.roots) {
      if (root.axes != old.axes || root.devices != old.devices) continue;
      if (size == 0)
        root.axes.erase(root.axes.begin() + static_cast<std::ptrdiff_t>(axis));
      else
        root.axes[axis].size = size;
      std::int64_t count = 1;
      for (const MeshAxis& left : root.axes) count *= left.size;
      root.devices.resize(static_cast<std::size_t>(count));
    }
    return candidate;
  }

  // Divides an axis of a root. If sizes in a later step no longer fit, divides one of these too.
  bool divide_axis(std::size_t r, std::size_t axis, int divisor, bool first) {
    Program candidate =
        resized(r, axis, divisor == 0 ? 0 : best().roots[r].axes[axis].size / divisor);
    if (divisor > 0) repair(candidate, divisor, first);
    return shrinking_.offer(candidate);
  }

  void repair(Program& program, int divisor, bool first) {
    Model model;
    std::vector<MeshPtr> meshes;
    for (const RootSpec& root : program.roots)
      meshes.push_back(model.make_root(root.axes, root.devices));
    for (Step& step : program.steps) {
      std::int64_t wanted = meshes[step.target]->size(), given = 1;
      if (step.operation == Operation::kUnflatten)
        for (const MeshAxis& axis : meshes[step.target]->axes)
          if (axis.name == step.name) wanted = axis.size;
      for (const MeshAxis& part : step.parts) given *= part.size;
      if (!step.parts.empty() && given == wanted * divisor) {
        MeshAxis* divided = nullptr;
        for (MeshAxis& part : step.parts)
          if (part.size % divisor == 0 && (divided == nullptr || !first)) divided = &part;
        if (divided != nullptr) divided->size /= divisor;
      }
      Answer answer = apply(model, meshes, step);
      meshes.push_back(answer.mesh ? answer.mesh : meshes[step.target]);
    }
  }

  // Fewer names, parts and meshes; smaller numbers; an earlier target.
  bool shrink_steps() {
    bool better = false;
    for (std::size_t i = 0; i < best().steps.size(); ++i) {
      better |= drop_elements(i, &Step::names);
      better |= drop_elements(i, &Step::parts);
      better |= drop_elements(i, &Step::renames);
      better |= drop_elements(i, &Step::more);
      for (int target = 0; target < best().steps[i].target; ++target) {
        Program candidate = best();
        candidate.steps[i].target = target;
        if (shrinking_.offer(candidate)) better = true;
      }
      for (std::int64_t number : {std::int64_t{0}, best().steps[i].number / 2}) {
        if (number >= best().steps[i].number) continue;
        Program candidate = best();
        candidate.steps[i].number = number;
        if (shrinking_.offer(candidate)) better = true;
      }
    }
    return better;
  }

  template <class List>
  bool drop_elements(std::size_t step, List Step::*list) {
    return shrinking_.drop_each([=](auto& program) -> auto& { return program.steps[step].*list; });
  }

  Shrinking<Program> shrinking_;
};

}  // namespace

Program shrink(Program program, const Failure& failure, Wrong wrong) {
  return Shrink(std::move(program), failure.check, wrong).smallest();
}

}  // namespace meshard::model
