// Makes a failing program small: it stays failing in the same check.
#include "tests/property/shrink.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "tests/property/sharded_program/device_sets.h"
#include "tests/property/sharded_program/evaluate.h"
#include "tests/property/sharded_program/operation.h"

namespace meshard::property {
namespace {

// Every try compiles and runs a program or two.
constexpr int kTries = 400;

// Without what nothing uses any more.
class Tidy {
 public:
  explicit Tidy(Program program) : program_(std::move(program)) {}

  Program tidied() {
    std::vector<bool> steps = used_steps(program_.steps, program_.results, 0);
    int jitted = 0;
    for (int i = 0; i < program_.jit_steps; ++i) jitted += steps[static_cast<std::size_t>(i)];
    program_.jit_steps = jitted;
    std::vector<int> places = compact(program_.steps, steps);
    for_each_ref(program_, [&](Ref& ref) {
      if (ref.level == 0 && !ref.is_input) ref.index = places[static_cast<std::size_t>(ref.index)];
    });
    for (Step& step : program_.steps) tidy_bodies(step, 1);
    std::vector<bool> inputs(program_.inputs.size());
    for_each_ref(program_, [&](Ref& ref) {
      if (ref.level == 0 && ref.is_input) inputs.at(static_cast<std::size_t>(ref.index)) = true;
    });
    places = compact(program_.inputs, inputs);
    for_each_ref(program_, [&](Ref& ref) {
      if (ref.level == 0 && ref.is_input) ref.index = places[static_cast<std::size_t>(ref.index)];
    });
    drop_meshes();
    return std::move(program_);
  }

 private:
  // A step is used by a result or a later step that is.
  static std::vector<bool> used_steps(std::vector<Step>& steps, const std::vector<Ref>& results,
                                      int level) {
    std::vector<bool> used(steps.size());
    auto use = [&](const Ref& ref) {
      if (ref.level == level && !ref.is_input) used.at(static_cast<std::size_t>(ref.index)) = true;
    };
    for (const Ref& ref : results) use(ref);
    for (std::size_t i = steps.size(); i-- > 0;)
      if (used[i]) for_each_ref(steps[i], use);
    return used;
  }

  static void tidy_bodies(Step& step, int level) {
    for (Body& body : step.bodies) {
      std::vector<int> places = compact(body.steps, used_steps(body.steps, body.results, level));
      auto renumber = [&](Ref& ref) {
        if (ref.level == level && !ref.is_input)
          ref.index = places[static_cast<std::size_t>(ref.index)];
      };
      for (Step& inner : body.steps) for_each_ref(inner, renumber);
      for (Ref& ref : body.results) renumber(ref);
      for (Step& inner : body.steps) tidy_bodies(inner, level + 1);
    }
  }

  // Drops what is not used; where the others are then.
  template <class List>
  static std::vector<int> compact(List& list, const std::vector<bool>& used) {
    std::vector<int> places(list.size());
    std::size_t left = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      places[i] = static_cast<int>(left);
      if (used[i] && left++ != i) list[left - 1] = std::move(list[i]);
    }
    list.resize(left);
    return places;
  }

  void drop_meshes() {
    for (std::size_t m = program_.meshes.size(); m-- > 0;) {
      std::vector<Placement*> all = placements(program_);
      auto names = [&](const Placement* each) { return each->mesh == static_cast<int>(m); };
      auto is_part = [&](const MeshSpec& mesh) { return mesh.parent == static_cast<int>(m); };
      if (std::any_of(all.begin(), all.end(), names)) continue;
      if (std::any_of(program_.meshes.begin(), program_.meshes.end(), is_part)) continue;
      for (MeshSpec& mesh : program_.meshes) mesh.parent -= mesh.parent > static_cast<int>(m);
      program_.meshes.erase(program_.meshes.begin() + static_cast<std::ptrdiff_t>(m));
      for (Placement* each : all)
        if (each->mesh > static_cast<int>(m)) --each->mesh;
    }
  }

  Program program_;

 public:
  static std::vector<Placement*> placements(Program& program) {
    std::vector<Placement*> all;
    for (Input& input : program.inputs)
      if (input.mark) all.push_back(&*input.mark);
    for (Step& step : program.steps) append_placements(step, all);
    return all;
  }

 private:
  static void append_placements(Step& step, std::vector<Placement*>& all) {
    if (step.operation->names_mesh()) all.push_back(&step.placement);
    for (Body& body : step.bodies)
      for (Step& inner : body.steps) append_placements(inner, all);
  }
};

// What explicit axes refuse without a failure of ours.
bool is_refused(const Program& program) {
  std::vector<Mesh> meshes = make_meshes(program.meshes, own_places());
  bool is_explicit = std::any_of(meshes.begin(), meshes.end(),
                                 [](const Mesh& mesh) { return mesh.has_explicit_axes(); });
  return is_explicit && !can_be_recorded(program, meshes);
}

class ShardedShrink {
 public:
  ShardedShrink(const Program& program, const std::string& check, const Judge& judge)
      : shrinking_(
            Tidy(program).tidied(),
            [&judge, check](const Program& candidate) {
              try {
                if (!may_run(candidate) || is_refused(candidate)) return false;
                std::optional<Failure> failure = judge(candidate);
                return failure && failure->check == check;
              } catch (const std::exception&) {
                return false;  // no program
              }
            },
            kTries) {}

  Program smallest() {
    for (bool better = true; better && !shrinking_.spent();) {
      better = drop_results();
      better |= simplify_modes();
      better |= cut_steps();
      better |= bypass_steps();
      better |= simplify_bodies();
      better |= unmark_inputs();
      better |= simplify_specs();
      better |= simplify_meshes();
      better |= shrink_sizes();
    }
    return shrinking_.best();
  }

 private:
  const Program& best() const { return shrinking_.best(); }
  template <class Change>
  bool change(Change change) {
    return shrinking_.change([&](Program& program) {
      if (!change(program)) return false;
      program = Tidy(std::move(program)).tidied();
      return true;
    });
  }

  bool drop_results() {
    bool better = false;
    for (std::size_t i = best().results.size(); i-- > 0;)
      better |= change([i](Program& p) {
        if (p.results.size() < 2) return false;
        p.results.erase(p.results.begin() + static_cast<std::ptrdiff_t>(i));
        return true;
      });
    return better;
  }

  bool simplify_modes() {
    bool better = change([](Program& p) {
      p.results.resize(1);
      return std::exchange(p.gradient, false);
    });
    better |= change([](Program& p) { return std::exchange(p.jit_steps, 0) > 0; });
    better |= change([](Program& p) {
      bool looks = false;
      for (Step& step : p.steps) looks |= std::exchange(step.look, Step::kNone) != Step::kNone;
      return looks;
    });
    better |= change([](Program& p) { return std::exchange(p.sync_results, false); });
    better |= change([](Program& p) { return !std::exchange(p.retarget, {}).empty(); });
    if (!best().retarget.empty())
      for (std::size_t i = 0; i < best().retarget.size(); ++i)
        better |= change([i](Program& p) {
          // Device i stays where it is.
          auto there =
              std::find(p.retarget.begin(), p.retarget.end(), static_cast<std::int64_t>(i));
          if (there == p.retarget.end() || p.retarget[i] == static_cast<std::int64_t>(i))
            return false;
          std::swap(*there, p.retarget[i]);
          return true;
        });
    return better;
  }

  // Host data in the place of what a step gives.
  bool cut_steps() {
    bool better = false;
    for (std::size_t i = best().steps.size(); i-- > 0;) {
      if (i >= best().steps.size()) continue;
      better |= change([&](Program& p) {
        Ref ref{false, static_cast<int>(i)}, data{true, static_cast<int>(p.inputs.size())};
        p.inputs.push_back({step_types(p)[i], 1, {}, false});
        replace(p, ref, data);
        return true;
      });
    }
    return better;
  }

  // An operand in the place of what a step gives.
  bool bypass_steps() {
    bool better = false;
    for (std::size_t i = best().steps.size(); i-- > 0;)
      for (std::size_t k = 0; i < best().steps.size() && k < best().steps[i].operands.size(); ++k)
        better |= change([&](Program& p) {
          Ref operand = p.steps[i].operands[k];
          std::vector<TensorType> types = step_types(p);
          auto at = static_cast<std::size_t>(operand.index);
          bool same_type = (operand.is_input ? p.inputs[at].type : types[at]) == types[i];
          Ref bypassed{false, static_cast<int>(i)};
          // A result may have another type.
          if (!same_type && (operand.is_input || is_operand(p, bypassed))) return false;
          replace(p, bypassed, operand);
          return true;
        });
    return better;
  }

  static bool is_operand(Program& program, Ref wanted) {
    bool found = false;
    for (Step& step : program.steps) for_each_ref(step, [&](Ref& ref) { found |= ref == wanted; });
    return found;
  }

  static void replace(Program& program, Ref old, Ref by) {
    for_each_ref(program, [&](Ref& ref) {
      if (ref == old) ref = by;
    });
  }

  // All bodies, outer ones first, with their levels.
  static std::vector<std::pair<Body*, int>> bodies_of(Program& program) {
    std::vector<std::pair<Body*, int>> all;
    std::function<void(Step&, int)> visit = [&](Step& step, int level) {
      for (Body& body : step.bodies) {
        all.emplace_back(&body, level);
        for (Step& inner : body.steps) visit(inner, level + 1);
      }
    };
    for (Step& step : program.steps) visit(step, 1);
    return all;
  }

  // In a body, a parameter or an operand in the place of what a step gives; the judge says whether
  // the types fit.
  bool simplify_bodies() {
    bool better = false;
    Program copy = best();
    for (std::size_t b = bodies_of(copy).size(); b-- > 0;)
      for (std::size_t i = 8; i-- > 0;)
        for (std::size_t k = 0; k < 5; ++k)
          better |= change([&](Program& p) {
            auto all = bodies_of(p);
            return b < all.size() && bypass(*all[b].first, all[b].second, i, k);
          });
    return better;
  }

  static bool bypass(Body& body, int level, std::size_t i, std::size_t k) {
    if (i >= body.steps.size()) return false;
    const Step& step = body.steps[i];
    Ref by;
    if (k < step.operands.size())
      by = step.operands[k];
    else if (k - step.operands.size() < body.parameters.size())
      by = {true, static_cast<int>(k - step.operands.size()), level};
    else
      return false;
    Ref old{false, static_cast<int>(i), level};
    auto replaced = [&](Ref& ref) {
      if (ref == old) ref = by;
    };
    for (std::size_t later = i + 1; later < body.steps.size(); ++later)
      for_each_ref(body.steps[later], replaced);
    for (Ref& ref : body.results) replaced(ref);
    return true;
  }

  bool unmark_inputs() {
    bool better = false;
    for (std::size_t i = 0; i < best().inputs.size(); ++i) {
      better |= change([&](Program& p) {
        return i < p.inputs.size() && std::exchange(p.inputs[i].by_callback, false);
      });
      better |= change([&](Program& p) {
        if (i >= p.inputs.size() || !p.inputs[i].mark || p.inputs[i].by_callback) return false;
        p.inputs[i].mark.reset();
        return true;
      });
    }
    return better;
  }

  // Fewer axes, whole ones, closed dimensions, the first mesh.
  bool simplify_specs() {
    bool better = false;
    Program copy = best();
    for (std::size_t i = 0; i < Tidy::placements(copy).size(); ++i) {
      auto placement = [i](Program& p) {
        std::vector<Placement*> all = Tidy::placements(p);
        return i < all.size() ? all[i] : nullptr;
      };
      for (std::size_t d = 0; d < 4; ++d)
        for (int simpler = 0; simpler < 5; ++simpler)
          better |= change([&](Program& p) {
            Placement* each = placement(p);
            return each && simplify_dimension(each->spec, d, simpler);
          });
    }
    return better;
  }

  static bool simplify_dimension(PartitionSpec& spec, std::size_t d, int simpler) {
    if (d >= spec.size()) return false;
    std::vector<DimensionSpec> dimensions = spec.dimensions();
    AxisList axes = dimensions[d].axes();
    bool open = dimensions[d].is_open();
    if (simpler == 0 && !axes.empty())
      axes = AxisList();
    else if (simpler == 1 && !axes.empty())
      axes = AxisList(axes.begin() + 1, axes.end());
    else if (simpler == 2 && axes.size() > 1)
      axes = AxisList(axes.begin(), axes.end() - 1);
    else if (simpler == 3 && !axes.empty() && !axes[0].is_whole())
      axes[0] = AxisRef(axes[0].name);
    else if (simpler == 4 && open)
      open = false;
    else
      return false;
    dimensions[d] = DimensionSpec(axes, open);
    while (!dimensions.empty() && dimensions.back() == DimensionSpec()) dimensions.pop_back();
    spec = PartitionSpec(std::move(dimensions));
    return true;
  }

  bool simplify_meshes() {
    bool better = false;
    for (std::size_t m = 0; m < best().meshes.size(); ++m) {
      auto exists = [m](const Program& p) { return m < p.meshes.size(); };
      better |= change([&](Program& p) {
        if (!exists(p)) return false;
        p.meshes[m].parent = -1;
        return std::exchange(p.meshes[m].form, MeshSpec::kRoot) != MeshSpec::kRoot;
      });
      better |= change([&](Program& p) { return exists(p) && use_counted_devices(p.meshes[m]); });
      for (std::size_t axis = 0; axis < 4; ++axis)
        for (std::int64_t size : {1, 2, 3})
          better |= change([&](Program& p) { return exists(p) && resize(p, m, axis, size); });
    }
    return better;
  }

  static bool use_counted_devices(MeshSpec& mesh) {
    std::vector<std::int64_t> counted(mesh.devices.size());
    std::iota(counted.begin(), counted.end(), std::int64_t{0});
    return std::exchange(mesh.devices, counted) != counted;
  }

  // An axis that is shorter; of size 1, it is left out, of the specs too.
  static bool resize(Program& program, std::size_t m, std::size_t axis, std::int64_t size) {
    MeshSpec& mesh = program.meshes[m];
    if (axis >= mesh.axes.size() || (mesh.axes[axis].size <= size && size > 1)) return false;
    std::string name = mesh.axes[axis].name;
    mesh.axes[axis].size = size;
    if (size == 1) mesh.axes.erase(mesh.axes.begin() + static_cast<std::ptrdiff_t>(axis));
    std::int64_t count = 1;
    for (const MeshAxis& left : mesh.axes) count *= left.size;
    mesh.devices.resize(static_cast<std::size_t>(count));
    if (size > 1) return true;
    for (Placement* each : Tidy::placements(program)) {
      if (each->mesh != static_cast<int>(m)) continue;
      std::vector<DimensionSpec> dimensions;
      for (const DimensionSpec& dimension : each->spec.dimensions()) {
        AxisList axes;
        for (const AxisRef& ref : dimension.axes())
          if (ref.name != name) axes.push_back(ref);
        dimensions.emplace_back(axes, dimension.is_open());
      }
      each->spec = PartitionSpec(std::move(dimensions));
    }
    return true;
  }

  // One size in all shapes, and where steps name it.
  bool shrink_sizes() {
    bool better = false;
    for (std::int64_t size = 9; size > 1; --size)
      for (std::int64_t smaller : {std::int64_t{1}, size / 2, size - 1}) {
        bool done = smaller > 0 && change([&](Program& p) { return resize_all(p, size, smaller); });
        better |= done;
        if (done) break;
      }
    // Of one input alone.
    for (std::size_t i = 0; i < best().inputs.size(); ++i)
      for (int d = 0; i < best().inputs.size() && d < best().inputs[i].type.rank(); ++d)
        better |= change([&](Program& p) {
          Shape& shape = p.inputs[i].type.shape;
          if (d >= shape.rank() || shape[d] < 2) return false;
          shape = shape.with(d, 1);
          return true;
        });
    return better;
  }

  static bool resize_all(Program& program, std::int64_t size, std::int64_t smaller) {
    bool found = false;
    for (Input& input : program.inputs) {
      Dimensions sizes = input.type.shape.sizes();
      for (std::int64_t& each : sizes)
        if (each == size) each = smaller, found = true;
      input.type.shape = Shape(sizes);
    }
    for (Step& step : program.steps) found |= resize_step(step, size, smaller);
    return found;
  }

  static bool resize_step(Step& step, std::int64_t size, std::int64_t smaller) {
    bool found = false;
    for (std::vector<std::int64_t>& list : step.lists)
      for (std::int64_t& each : list)
        if (list.size() > 1 && each == size) each = smaller, found = true;
    for (Body& body : step.bodies) {
      for (TensorType& type : body.parameters) {
        Dimensions sizes = type.shape.sizes();
        for (std::int64_t& each : sizes)
          if (each == size) each = smaller, found = true;
        type.shape = Shape(sizes);
      }
      for (Step& inner : body.steps) found |= resize_step(inner, size, smaller);
    }
    return found;
  }

  Shrinking<Program> shrinking_;
};

}  // namespace

Program shrink(Program program, const Failure& failure, const Judge& judge) {
  return ShardedShrink(program, failure.check, judge).smallest();
}

}  // namespace meshard::property
