// Steps and bodies, and the program as a whole.
#include <algorithm>
#include <cmath>
#include <string_view>

#include "tests/property/sharded_program/draw.h"
#include "tests/property/sharded_program/evaluate.h"

namespace meshard::property {
namespace {

constexpr int kDeepest = 3;
constexpr std::int64_t kMostOfResult = 256;
// Beyond this, 16-bit floats lose their meaning.
constexpr double kLargestOfResult = 1e4;

// How often an operation is drawn at this depth of bodies.
int weight_of(const Operation& operation, Kind kind, int depth) {
  if (kind == Kind::kStages && depth == 0 && operation.only_in_stages && operation.has_bodies())
    return 150;
  if (kind == Kind::kStages && depth == 1 && operation.has_bodies()) return 3 * operation.weight;
  if (!operation.has_bodies()) return operation.weight;
  if (depth >= kDeepest) return 0;
  if (kind == Kind::kTransforms) return operation.weight * (depth == 0 ? 12 : depth == 1 ? 8 : 2);
  return depth == 0 ? operation.weight : 1;
}

std::vector<const Operation*> weighted_operations(Kind kind, int depth) {
  std::vector<const Operation*> list;
  for (const Operation* operation : operations()) {
    bool drawn =
        kind == Kind::kTransforms ? operation->on_host != nullptr : !operation->is_derivative;
    // What a jitted function leaves unsaid the compiler chooses, and then it is said.
    if (kind == Kind::kExplicit && std::string_view(operation->name).starts_with("jit"))
      drawn = false;
    if (operation->only_in_stages && kind != Kind::kStages) drawn = false;
    // In a stage, values are local already.
    if (kind == Kind::kStages && std::string_view(operation->name) == "manual") drawn = false;
    if (drawn)
      list.insert(list.end(), static_cast<std::size_t>(weight_of(*operation, kind, depth)),
                  operation);
  }
  return list;
}

}  // namespace

// What a step that was refused must not leave behind.
struct Draw::Saved {
  Draw& draw;
  std::size_t inputs = draw.program_.inputs.size(), met = draw.meeting_.size();
  void restore() const {
    draw.program_.inputs.resize(inputs);
    draw.frames_[0].inputs.resize(inputs);
    draw.recorder_.cut(inputs, draw.frames_.back().steps.size());
    draw.host_.cut(inputs, draw.frames_[0].steps.size());
    draw.meeting_.resize(met);
  }
};

void Draw::choose_target() {
  bool moves = kind_ == Kind::kMeshes && one_in(3);
  if (sets_.count() > 0 && (target_ < 0 || moves)) target_ = between(0, sets_.count() - 1);
}

// ---- Steps.

bool Draw::try_step() {
  static const auto tables = [] {
    std::vector<std::vector<const Operation*>> all;
    for (Kind kind :
         {Kind::kOneSet, Kind::kMeshes, Kind::kTransforms, Kind::kExplicit, Kind::kStages})
      for (int depth = 0; depth <= kDeepest; ++depth)
        all.push_back(weighted_operations(kind, depth));
    return all;
  }();
  std::size_t table = static_cast<std::size_t>(kind_) * (kDeepest + 1) +
                      static_cast<std::size_t>(std::min(depth(), kDeepest));
  Step step;
  // Often: these are what manual functions are for.
  static const std::vector<const Operation*> collectives = [] {
    std::vector<const Operation*> list;
    for (const Operation& operation : collective_operations())
      list.insert(list.end(), static_cast<std::size_t>(operation.weight), &operation);
    return list;
  }();
  step.operation = in_region() && one_in(3) ? one_of(collectives) : one_of(tables[table]);
  if ((program_.gradient || smooth_) && !step.operation->smooth) return false;
  // Its loss would be an op of an unreduced value, which explicit axes refuse.
  if (program_.gradient && kind_ == Kind::kExplicit &&
      std::string_view(step.operation->name) == "mark_unreduced")
    return false;
  if (element_wise_ && !step.operation->element_wise) return false;
  Saved saved{*this};
  if (step.operation->draw(*this, step) && add_step(std::move(step))) return true;
  saved.restore();
  return false;
}

// Each step outside of a trace is for one set of devices, and sees what may come there.
bool Draw::try_outer_step() {
  if (!in_trace_) {
    choose_target();
    meeting_.clear();
  }
  return try_step();
}

bool Draw::add_step(Step step) {
  Recorded got;
  try {
    got = recorder_.add(step);
  } catch (const Error& error) {
    // Some operations cannot be batched, or say so of what they are given inside a body.
    if (error.code() == ErrorCode::kInternal || (depth() == 0 && !step.operation->has_bodies()))
      throw;
    return false;
  }
  const TensorType& type = got.tensor.type();
  bool tame =
      !is_floating(type.dtype) || (got.bounds.size <= kLargestOfResult &&
                                   got.bounds.error <= 0.1 * std::max(got.bounds.size, 1.0));
  if (!tame || type.size() > kMostOfResult || type.size() == 0) return false;
  std::optional<Known> settled = settled_value(step, type, got.bounds);
  if (!settled) return false;
  if (kind_ == Kind::kTransforms && depth() == 0 && !is_smooth(step)) return false;
  if (kind_ == Kind::kExplicit && depth() == 0 && !is_unambiguous(step)) return false;
  if (!in_trace() && one_in(8)) step.look = one_in(2) ? Step::kSync : Step::kRead;
  frames_.back().steps.push_back(*settled);
  steps_of_bodies_.back()->push_back(std::move(step));
  return true;
}

// Whether the step can be computed on the host, which takes differences for derivatives.
bool Draw::is_smooth(const Step& step) {
  try {
    host_.add(step);
    return true;
  } catch (const NotSmooth&) {
    return false;
  }
}

bool Draw::is_unambiguous(const Step& step) const {
  Program so_far = program_;
  so_far.steps.push_back(step);
  // A step that is ambiguous only because of axes of size 1 stays, and fails when it runs.
  return can_be_recorded(so_far, meshes_) ||
         can_be_recorded(without_axes_of_size_1(std::move(so_far), meshes_), meshes_);
}

// Where the result is; none if the step's values must not meet.
std::optional<Draw::Known> Draw::settled_value(const Step& step, const TensorType& type,
                                               Bounds bounds) {
  if (in_trace()) return Known{type, bounds, {}};
  Home first, marked;
  if (!step.operands.empty()) first = known(step.operands[kept_operand(step)]).home;
  if (!meshes_.empty()) marked = home_of(step.placement, type.rank());
  std::optional<Home> home = home_of_result(sets_, step, meeting_, first, marked, type.rank() == 0);
  if (!home) return std::nullopt;
  return Known{type, bounds, *home};
}

// ---- Bodies.

bool Draw::body(Step& step, const std::vector<TensorType>& parameters,
                const std::vector<Bounds>& bounds,
                const std::vector<std::optional<TensorType>>& results, BodyOptions options) {
  Body& body = step.bodies.emplace_back();
  body.parameters = parameters;
  recorder_.enter(parameters, bounds);
  frames_.emplace_back();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    frames_.back().inputs.push_back({parameters[i], bounds.at(i), {}});
  steps_of_bodies_.push_back(&body.steps);
  bool smooth = std::exchange(smooth_, smooth_ || options.smooth);
  bool element_wise = std::exchange(element_wise_, element_wise_ || options.manual);
  Region region = region_;
  if (options.manual) region_ = *options.manual;
  int stage_depth = std::exchange(stage_depth_, options.stage ? depth() : stage_depth_);
  if (options.stage) region_ = *options.stage;
  if (options.smooth) region_.collectives = false;
  std::size_t met = meeting_.size();
  auto steps = static_cast<std::size_t>(between(1, depth() > 1 ? 2 : options.stage ? 6 : 3));
  for (int turns = 0; body.steps.size() < steps && turns < 30; ++turns) try_step();
  bool found = true;
  for (const auto& wanted : results) {
    std::optional<Ref> ref = body_result(wanted);
    found = found && ref;
    if (found) body.results.push_back(*ref);
  }
  if (found) drop_unused(body, met);
  smooth_ = smooth;
  element_wise_ = element_wise;
  stage_depth_ = stage_depth;
  region_ = std::move(region);
  steps_of_bodies_.pop_back();
  frames_.pop_back();
  recorder_.leave();
  return found;
}

// What no result needs decides nothing, so it must not count as something that the body meets.
void Draw::drop_unused(Body& body, std::size_t met) {
  int level = depth();
  std::vector<bool> used(body.steps.size(), false);
  auto use = [&](Ref& ref) {
    if (ref.level == level && !ref.is_input) used[static_cast<std::size_t>(ref.index)] = true;
  };
  for (Ref& ref : body.results) use(ref);
  for (std::size_t i = used.size(); i-- > 0;)
    if (used[i]) for_each_ref(body.steps[i], use);
  std::vector<int> places;
  std::vector<Step> left;
  for (std::size_t i = 0; i < used.size(); ++i) {
    places.push_back(static_cast<int>(left.size()));
    if (used[i]) left.push_back(std::move(body.steps[i]));
  }
  body.steps = std::move(left);
  auto renumber = [&](Ref& ref) {
    if (ref.level == level && !ref.is_input)
      ref.index = places[static_cast<std::size_t>(ref.index)];
  };
  for (Ref& ref : body.results) renumber(ref);
  for (Step& step : body.steps) for_each_ref(step, renumber);
  meeting_.resize(met);
  for (Step& step : body.steps) {
    for_each_ref(step, [&](Ref& ref) {
      if (ref.level == 0 && !known(ref).home.is_free()) meeting_.push_back(known(ref).home);
    });
    for_each_step(step, [&](const Step& each) {
      if (each.operation->names_mesh()) meeting_.push_back({target_, false, false, true});
    });
  }
}

// The last value that fits, else one that is made of something of this type and the last float.
std::optional<Ref> Draw::body_result(const std::optional<TensorType>& wanted) {
  auto fits = [&](const Known& value) {
    return wanted ? value.type() == *wanted : is_floating(value.type().dtype);
  };
  const Frame& frame = frames_.back();
  for (std::size_t i = frame.steps.size(); i-- > 0;)
    if (fits(frame.steps[i])) return Ref{false, static_cast<int>(i), depth()};
  std::optional<Ref> base;
  for (std::size_t i = 0; i < frame.inputs.size() && !base; ++i)
    if (fits(frame.inputs[i])) base = Ref{true, static_cast<int>(i), depth()};
  if (!base && wanted && !element_wise_) {
    Step step;
    if (take_type(step, *wanted)) base = step.operands[0];
  }
  if (!base || !wanted || !is_floating(wanted->dtype)) return base;
  auto add = [&](const char* name, std::vector<Ref> operands,
                 std::vector<std::vector<std::int64_t>> lists) -> std::optional<Ref> {
    Step step;
    step.operation = find_operation(name);
    step.operands = std::move(operands);
    step.lists = std::move(lists);
    if (!add_step(std::move(step))) return std::nullopt;
    return Ref{false, static_cast<int>(frames_.back().steps.size()) - 1, depth()};
  };
  if (!element_wise_)
    for (std::size_t i = frame.steps.size(); i-- > 0;) {
      const TensorType type = frames_.back().steps[i].type();
      if (type.dtype != wanted->dtype) continue;
      std::vector<std::int64_t> all;
      for (int d = 0; d < type.rank(); ++d) all.push_back(d);
      std::optional<Ref> whole = Ref{false, static_cast<int>(i), depth()};
      if (!all.empty()) whole = add("mean", {*whole}, {all, {0}});
      if (whole) whole = add("add", {*base, *whole}, {});
      if (whole) base = whole;
      break;
    }
  return add("tanh", {*base}, {});
}

// ---- The program.

void Draw::choose_results() {
  std::vector<bool> used(program_.steps.size(), false);
  for (Step& step : program_.steps)
    for_each_ref(step, [&](Ref& ref) {
      if (!ref.is_input && ref.level == 0) used[static_cast<std::size_t>(ref.index)] = true;
    });
  program_.results.clear();
  for (std::size_t i = 0; i < used.size(); ++i)
    if (!used[i] || one_in(6)) program_.results.push_back({false, static_cast<int>(i), 0});
}

// Of the last value that is a float; the others feed it or are left out.
void Draw::choose_gradient() {
  for (std::size_t i = program_.steps.size(); i-- > 0 && program_.results.empty();)
    if (is_floating(frames_[0].steps[i].type().dtype))
      program_.results.push_back({false, static_cast<int>(i), 0});
  bool float_input = false;
  for (const Input& input : program_.inputs)
    float_input = float_input || is_floating(input.type.dtype);
  if (!program_.results.empty() && float_input) return;
  program_.gradient = false;
  choose_results();
}

// The steps of a jitted function are on one set of devices; then each is for itself.
bool Draw::draw_steps(int steps, int jit_steps) {
  choose_target();
  in_trace_ = program_.gradient || jit_steps > 0;
  for (int turns = 0; static_cast<int>(program_.steps.size()) < steps && turns < 300; ++turns) {
    if (in_trace_ && !program_.gradient && static_cast<int>(program_.steps.size()) == jit_steps &&
        !leave_trace())
      return false;
    try_outer_step();
  }
  program_.jit_steps = std::min(jit_steps, static_cast<int>(program_.steps.size()));
  return !in_trace_ || program_.gradient || leave_trace();
}

bool Draw::leave_trace() {
  in_trace_ = false;
  std::optional<Home> home = sets_.meet(meeting_, false);
  if (!home) return false;
  for (Known& value : frames_[0].steps)
    value.home = {home->set, false, value.type().rank() == 0, false};
  return true;
}

Program Draw::program() {
  steps_of_bodies_ = {&program_.steps};
  bool one_mesh = kind_ != Kind::kMeshes && kind_ != Kind::kTransforms;
  program_.gradient = one_mesh && one_in(6);
  int most = kind_ == Kind::kTransforms || kind_ == Kind::kStages ? 2 : 7;
  int steps = between(1, most), jit_steps = one_in(2) ? 0 : one_in(3) ? between(1, steps) : steps;
  bool all_or_none = program_.gradient || kind_ == Kind::kExplicit;
  if (all_or_none && jit_steps > 0) jit_steps = steps;
  draw_meshes();
  bool drawn = draw_steps(steps, jit_steps);
  if (!drawn || program_.steps.empty() || !may_run(program_)) return Draw(random_, kind_).program();
  if (program_.gradient)
    choose_gradient();
  else
    choose_results();
  program_.sync_results = one_in(2);
  return std::move(program_);
}

Program draw_program(std::mt19937_64& random, Kind kind) { return Draw(random, kind).program(); }

}  // namespace meshard::property
