#include "tests/property/sharded_program/device_sets.h"

#include <algorithm>
#include <string_view>

#include "tests/property/sharded_program/operation.h"

namespace meshard::property {

int DeviceSets::number_of(std::vector<std::int64_t> devices) {
  std::sort(devices.begin(), devices.end());
  auto found = std::find(sets_.begin(), sets_.end(), devices);
  if (found == sets_.end()) found = sets_.insert(found, std::move(devices));
  return static_cast<int>(found - sets_.begin());
}

bool DeviceSets::contains(int outer, int inner) const {
  const auto& all = sets_[static_cast<std::size_t>(outer)];
  const auto& some = sets_[static_cast<std::size_t>(inner)];
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

bool DeviceSets::may_come(const Home& home, int set) const {
  return home.is_free() || home.set == set || home.scalar ||
         (home.replicated && set >= 0 && contains(home.set, set));
}

std::optional<Home> DeviceSets::meet(const std::vector<Home>& values, bool scalar_result) const {
  // Those that hold on to their devices, then replicated ones, then scalars say where.
  auto sets_of = [&](auto wanted) {
    std::vector<int> sets;
    for (const Home& each : values)
      if (!each.is_free() && wanted(each) &&
          std::find(sets.begin(), sets.end(), each.set) == sets.end())
        sets.push_back(each.set);
    return sets;
  };
  std::vector<int> fixed = sets_of([](const Home& h) { return !h.scalar && !h.replicated; });
  std::vector<int> wide = sets_of([](const Home& h) { return !h.scalar && h.replicated; });
  std::vector<int> scalars = sets_of([](const Home& h) { return h.scalar; });
  int set = -1;
  if (fixed.size() > 1) return std::nullopt;
  if (!fixed.empty())
    set = fixed[0];
  else if (!wide.empty())  // the smallest, which all others must contain
    set = *std::max_element(wide.begin(), wide.end(),
                            [&](int a, int b) { return contains(a, b) && !contains(b, a); });
  else if (scalars.size() == 1 || (scalar_result && !scalars.empty()))
    set = scalars[0];
  else if (!scalars.empty())
    return std::nullopt;
  for (const Home& each : values)
    if (!may_come(each, set)) return std::nullopt;
  return Home{set, false, scalar_result};
}

namespace {

bool is_update(const Step& step) {
  std::string_view name = step.operation->name;
  return name.find("in place") != std::string_view::npos || name == "assign";
}

// The operand that is the carry of a loop; none if the result is not the last carry.
std::optional<std::size_t> carry_of(const Step& step) {
  constexpr std::pair<std::string_view, std::size_t> kLoops[] = {
      {"scan", 0}, {"fori_loop", 0}, {"repeat some times", 0}, {"repeat", 1}, {"while_loop", 1}};
  for (auto [name, position] : kLoops)
    if (name == step.operation->name) return position;
  return std::nullopt;
}

// Updates and carries keep the place of a marked value, so it does not narrow.
bool keeps_places(const Step& step) {
  return is_update(step) || carry_of(step) ||
         std::string_view(step.operation->name) == "results of scan";
}

// Whether a body at any depth of the step does not use one of its parameters. The operand
// then decides about devices or not, depending on whether the operation keeps its body or replaces
// it by what it records.
// @param level of the step's own bodies
bool ignores_parameters(const Step& step, int level = 1) {
  for (const Body& body : step.bodies) {
    std::vector<bool> used(body.parameters.size(), false);
    auto use = [&](Ref& ref) {
      if (ref.is_input && ref.level == level) used[static_cast<std::size_t>(ref.index)] = true;
    };
    for (Step inner : body.steps) {
      for_each_ref(inner, use);
      if (ignores_parameters(inner, level + 1)) return true;
    }
    for (Ref ref : body.results) use(ref);
    if (std::find(used.begin(), used.end(), false) != used.end()) return true;
  }
  return false;
}

bool are_on_one_set(const std::vector<Home>& values) {
  return std::all_of(values.begin(), values.end(),
                     [&](const Home& each) { return each.set == values[0].set; });
}

}  // namespace

std::size_t kept_operand(const Step& step) { return carry_of(step).value_or(0); }

Home home_of_placement(const Placement& placement, int set, int rank) {
  const std::vector<DimensionSpec>& dimensions = placement.spec.dimensions();
  bool whole = std::all_of(dimensions.begin(), dimensions.end(),
                           [](const DimensionSpec& d) { return d.axes().empty() && !d.is_open(); });
  return {set, whole, rank == 0, true};
}

std::optional<Home> home_of_result(const DeviceSets& sets, const Step& step,
                                   const std::vector<Home>& met, const Home& first,
                                   const Home& marked, bool scalar_result) {
  std::string_view name = step.operation->name;
  if (name == "transfer") return marked;
  if (name == "mark_sharding" || name == "mark_unreduced") {
    if (!first.is_free() && first.set != marked.set) return std::nullopt;
    return marked;
  }
  if (name == "clear_sharding") return Home{-1, false, scalar_result, false};
  if (ignores_parameters(step) && !are_on_one_set(met)) return std::nullopt;
  std::optional<Home> home = sets.meet(met, scalar_result);
  if (home && carry_of(step) && first.marked) home->marked = true;
  if (!home || !is_update(step) || first.is_free()) return home;
  // The new value is marked as the old one was.
  if (first.set != home->set || !first.marked) return std::nullopt;
  home->marked = true;
  return home;
}

namespace {

// Follows a program, step by step.
class Homes {
 public:
  explicit Homes(const Program& program) : program_(program), types_(step_types(program)) {
    for (const Mesh& mesh : make_meshes(program.meshes, own_places()))
      set_of_mesh_.push_back(sets_.number_of(devices_of(mesh)));
    for (const Input& input : program.inputs)
      inputs_.push_back(input.mark ? placed(*input.mark, input.type.rank()) : Home());
  }

  bool may_run() {
    auto traced =
        program_.gradient ? program_.steps.size() : static_cast<std::size_t>(program_.jit_steps);
    std::vector<Home> met;
    for (std::size_t i = 0; i < traced; ++i) {
      steps_.emplace_back();
      if (!meet(program_.steps[i], met)) return false;
    }
    std::optional<Home> all = sets_.meet(met, false);
    if (!all) return false;
    for (std::size_t i = 0; i < traced; ++i)
      steps_[i] = {all->set, false, types_[i].rank() == 0, false};
    for (std::size_t i = traced; i < program_.steps.size(); ++i) {
      const Step& step = program_.steps[i];
      std::vector<Home> own;
      if (!meet(step, own)) return false;
      Home first = step.operands.empty() ? Home() : home(step.operands[kept_operand(step)]);
      bool scalar = types_[i].rank() == 0;
      Home marked;
      if (!program_.meshes.empty()) marked = placed(step.placement, types_[i].rank());
      std::optional<Home> result = home_of_result(sets_, step, own, first, marked, scalar);
      if (!result) return false;
      steps_.push_back(*result);
    }
    return true;
  }

 private:
  Home placed(const Placement& placement, int rank) const {
    return home_of_placement(placement, set_of_mesh_.at(static_cast<std::size_t>(placement.mesh)),
                             rank);
  }
  const Home& home(Ref ref) const {
    return (ref.is_input ? inputs_ : steps_).at(static_cast<std::size_t>(ref.index));
  }
  // Everything that a step and its bodies use, and where they mark.
  bool meet(Step step, std::vector<Home>& met) {
    bool possible = true, bodies_keep_places = false;
    for_each_step(step, [&](const Step& inner) {
      bodies_keep_places |=
          keeps_places(inner) && (&inner != &step || step.operation->has_bodies());
    });
    auto add = [&](Ref ref, bool keeps_place) {
      if (ref.level != 0 || home(ref).is_free()) return;
      met.push_back(home(ref));
      if (keeps_place && met.back().marked) met.back().replicated = met.back().scalar = false;
    };
    for_each_ref(step, [&](Ref& ref) { add(ref, bodies_keep_places); });
    if (is_update(step)) add(step.operands.at(0), true);
    for_each_step(step, [&](const Step& inner) {
      std::string_view name = inner.operation->name;
      if (name != "mark_sharding" && name != "mark_unreduced" && name != "manual" &&
          name != "stages")
        return;
      Home marked = placed(inner.placement, 1);
      marked.replicated = false;
      met.push_back(marked);
      Ref ref = inner.operands.at(0);
      if (ref.level == 0 && !home(ref).is_free() && home(ref).set != marked.set) possible = false;
    });
    return possible;
  }

  const Program& program_;
  std::vector<TensorType> types_;
  DeviceSets sets_;
  std::vector<int> set_of_mesh_;
  std::vector<Home> inputs_, steps_;
};

}  // namespace

bool may_run(const Program& program) { return Homes(program).may_run(); }

}  // namespace meshard::property
