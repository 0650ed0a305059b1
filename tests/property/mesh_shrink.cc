// Makes a failing chain small: it stays failing in the same check.
#include <algorithm>
#include <numeric>

#include "tests/property/mesh_program.h"

namespace meshard::model {
namespace {

class Shrink {
 public:
  Shrink(Program program, Failure failure, Wrong wrong)
      : best_(std::move(program)), check_(std::move(failure.check)), wrong_(wrong) {}

  Program smallest() {
    for (bool better = true; better && tries_ < kTries;) {
      better = false;
      better |= shorten();
      better |= drop_steps();
      better |= drop_roots();
      better |= shrink_roots();
      better |= shrink_steps();
    }
    return best_;
  }

 private:
  static constexpr int kTries = 3000;

  bool keeps_failing(const Program& candidate) {
    if (++tries_ > kTries) return false;
    std::optional<Failure> failure = run(candidate, wrong_);
    if (!failure || failure->check != check_) return false;
    best_ = candidate;
    return true;
  }

  // Steps after the failing one do nothing.
  bool shorten() {
    bool better = false;
    while (!best_.steps.empty()) {
      Program candidate = best_;
      candidate.steps.pop_back();
      if (!keeps_failing(candidate)) break;
      better = true;
    }
    return better;
  }

  // Without one mesh: what used it uses `instead`.
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
    for (std::size_t i = best_.steps.size(); i-- > 0;) {
      Program candidate = best_;
      int mesh = static_cast<int>(best_.roots.size() + i), target = best_.steps[i].target;
      candidate.steps.erase(candidate.steps.begin() + static_cast<std::ptrdiff_t>(i));
      remove_mesh(candidate, mesh, target);
      better |= keeps_failing(candidate);
    }
    return better;
  }

  bool drop_roots() {
    bool better = false;
    for (std::size_t i = best_.roots.size(); best_.roots.size() > 1 && i-- > 0;) {
      Program candidate = best_;
      candidate.roots.erase(candidate.roots.begin() + static_cast<std::ptrdiff_t>(i));
      remove_mesh(candidate, static_cast<int>(i), i == 0 ? 1 : 0);
      better |= keeps_failing(candidate);
    }
    return better;
  }

  bool shrink_roots() {
    bool better = false;
    for (std::size_t r = 0; r < best_.roots.size(); ++r) {
      better |= simplify_devices(r);
      for (std::size_t i = best_.roots[r].axes.size(); i-- > 0;) {
        for (int divisor : {0, 2, 3, 5}) {  // 0: without the axis
          std::int64_t size = best_.roots[r].axes[i].size;
          if (divisor == 0 ? size != 1 : size % divisor != 0) continue;
          bool done = false;
          for (bool first : {true, false}) done = done || divide_axis(r, i, divisor, first);
          better |= done;
          if (done && divisor == 0) break;
        }
        if (i < best_.roots[r].axes.size() && best_.roots[r].axes[i].size > 2)
          better |= resize_axis(r, i, best_.roots[r].axes[i].size - 1);
      }
    }
    return better;
  }

  bool simplify_devices(std::size_t r) {
    Program candidate = best_;
    std::vector<std::int64_t>& ids = candidate.roots[r].devices;
    std::vector<std::int64_t> counted(ids.size()), ranked = ids;
    std::iota(counted.begin(), counted.end(), std::int64_t{0});
    if (ids == counted) return false;
    ids = counted;
    if (keeps_failing(candidate)) return true;
    // The same order without gaps.
    std::vector<std::int64_t> sorted = ranked;
    std::sort(sorted.begin(), sorted.end());
    for (std::int64_t& id : ranked)
      id = std::lower_bound(sorted.begin(), sorted.end(), id) - sorted.begin();
    if (ranked == best_.roots[r].devices) return false;
    candidate = best_;
    candidate.roots[r].devices = ranked;
    return keeps_failing(candidate);
  }

  // Makes an axis of a root smaller, and equal roots with it, so that they stay equal.
  bool resize_axis(std::size_t r, std::size_t axis, std::int64_t size) {
    return keeps_failing(resized(r, axis, size));
  }

  Program resized(std::size_t r, std::size_t axis, std::int64_t size) {
    Program candidate = best_;
    RootSpec old = best_.roots[r];
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

  // Divides an axis of a root, and where a later step names sizes that no longer fit, one of these.
  bool divide_axis(std::size_t r, std::size_t axis, int divisor, bool first) {
    Program candidate =
        resized(r, axis, divisor == 0 ? 0 : best_.roots[r].axes[axis].size / divisor);
    if (divisor > 0) repair(candidate, divisor, first);
    return keeps_failing(candidate);
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

  // Fewer names, parts, meshes; smaller numbers; an earlier target.
  bool shrink_steps() {
    bool better = false;
    for (std::size_t i = 0; i < best_.steps.size(); ++i) {
      better |= drop_elements(i, &Step::names);
      better |= drop_elements(i, &Step::parts);
      better |= drop_elements(i, &Step::renames);
      better |= drop_elements(i, &Step::more);
      for (int target = 0; target < best_.steps[i].target; ++target) {
        Program candidate = best_;
        candidate.steps[i].target = target;
        if (keeps_failing(candidate)) better = true;
      }
      for (std::int64_t number : {std::int64_t{0}, best_.steps[i].number / 2}) {
        if (number >= best_.steps[i].number) continue;
        Program candidate = best_;
        candidate.steps[i].number = number;
        if (keeps_failing(candidate)) better = true;
      }
    }
    return better;
  }

  template <class List>
  bool drop_elements(std::size_t step, List Step::*list) {
    bool better = false;
    for (std::size_t k = (best_.steps[step].*list).size(); k-- > 0;) {
      Program candidate = best_;
      List& elements = candidate.steps[step].*list;
      elements.erase(elements.begin() + static_cast<std::ptrdiff_t>(k));
      better |= keeps_failing(candidate);
    }
    return better;
  }

  Program best_;
  std::string check_;
  Wrong wrong_;
  int tries_ = 0;
};

}  // namespace

Program shrink(Program program, const Failure& failure, Wrong wrong) {
  return Shrink(std::move(program), failure, wrong).smallest();
}

}  // namespace meshard::model
