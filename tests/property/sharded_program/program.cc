#include "tests/property/sharded_program/program.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

#include "tests/property/sharded_program/record.h"

namespace meshard::property {
namespace {

constexpr int kDevices = 8;

Recorder record(const Program& program) {
  Recorder recorder;
  for (const Input& input : program.inputs) recorder.add_input(input.type, input.seed);
  for (const Step& step : program.steps) recorder.add(step);
  return recorder;
}

}  // namespace

bool takes_derivatives(const std::vector<Step>& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const Step& step) {
    return step.operation->is_derivative ||
           std::any_of(step.bodies.begin(), step.bodies.end(),
                       [](const Body& body) { return takes_derivatives(body.steps); });
  });
}

const std::vector<std::int64_t>& own_places() {
  static const std::vector<std::int64_t> places = [] {
    const char* devices = std::getenv("MESHARD_PROGRAM_DEVICES");
    std::vector<std::int64_t> ids(devices ? static_cast<std::size_t>(std::atoi(devices))
                                          : kDevices);
    std::iota(ids.begin(), ids.end(), std::int64_t{0});
    return ids;
  }();
  return places;
}

std::vector<Mesh> make_meshes(const std::vector<MeshSpec>& specs,
                              const std::vector<std::int64_t>& devices,
                              const std::vector<std::string>& device_types) {
  std::vector<Mesh> meshes;
  for (const MeshSpec& spec : specs) {
    std::vector<std::int64_t> ids;
    for (std::int64_t id : spec.devices) ids.push_back(devices.at(static_cast<std::size_t>(id)));
    if (spec.form != MeshSpec::kSubmesh) {
      Mesh root(spec.axes, ids);
      if (!device_types.empty()) root = root.with_device_type(device_types[meshes.size()]);
      meshes.push_back(spec.form == MeshSpec::kFlat ? root.flatten("f") : root);
      continue;
    }
    std::vector<std::string> kept;
    for (const MeshAxis& axis : spec.axes) kept.push_back(axis.name);
    Mesh mesh = meshes.at(static_cast<std::size_t>(spec.parent)).submesh(kept, ids.at(0)).value();
    meshes.push_back(std::move(mesh));
  }
  return meshes;
}

std::vector<std::int64_t> devices_of(const Mesh& mesh) {
  std::vector<std::int64_t> ids;
  for (std::int64_t id : mesh.device_ids()) ids.push_back(id);
  return ids;
}

HostArray input_data(const TensorType& type, int seed) {
  // The same on every standard library, unlike the distributions.
  std::mt19937 random(static_cast<std::uint32_t>(seed) + 1);
  std::vector<double> values;
  for (std::int64_t i = 0; i < type.size(); ++i) {
    auto draw = static_cast<double>(random() % 17);
    if (type.dtype == DType::bool_)
      values.push_back(draw > 8 ? 1 : 0);
    else if (is_floating(type.dtype))
      values.push_back((draw - 8) / 4);
    else
      values.push_back(is_signed(type.dtype) ? std::floor((draw - 8) / 2) : std::floor(draw / 2));
  }
  return HostArray::from_vector(std::move(values), type.shape).astype(type.dtype);
}

Bounds input_bounds(DType dtype) {
  return {dtype == DType::bool_ ? 1.0 : is_floating(dtype) ? 2.0 : 8.0, 0};
}

void for_each_ref(Step& step, const RefVisitor& visit) {
  for (Ref& ref : step.operands) visit(ref);
  for (Body& body : step.bodies) {
    for (Step& inner : body.steps) for_each_ref(inner, visit);
    for (Ref& ref : body.results) visit(ref);
  }
}
bool is_closed(const PartitionSpec& spec) {
  return std::none_of(spec.dimensions().begin(), spec.dimensions().end(),
                      [](const DimensionSpec& dimension) { return dimension.is_open(); });
}

void for_each_step(const Step& step, const std::function<void(const Step&)>& visit) {
  visit(step);
  for (const Body& body : step.bodies)
    for (const Step& inner : body.steps) for_each_step(inner, visit);
}
void for_each_ref(Program& program, const RefVisitor& visit) {
  for (Step& step : program.steps) for_each_ref(step, visit);
  for (Ref& ref : program.results) visit(ref);
}

std::vector<Ref> input_refs(const Program& program) {
  std::vector<bool> used(program.inputs.size(), false);
  for (int i = 0; i < program.jit_steps; ++i) {
    Step step = program.steps[static_cast<std::size_t>(i)];
    for_each_ref(step, [&](Ref& ref) {
      if (ref.is_input && ref.level == 0) used[static_cast<std::size_t>(ref.index)] = true;
    });
  }
  std::vector<Ref> refs;
  for (std::size_t i = 0; i < program.inputs.size(); ++i)
    if (program.gradient ? is_floating(program.inputs[i].type.dtype) : used[i])
      refs.push_back({true, static_cast<int>(i)});
  return refs;
}

std::vector<Ref> jit_results(const Program& program) {
  std::vector<Ref> wanted = program.results, refs;
  for (std::size_t i = static_cast<std::size_t>(program.jit_steps); i < program.steps.size(); ++i) {
    Step step = program.steps[i];
    for_each_ref(step, [&](Ref& ref) { wanted.push_back(ref); });
  }
  for (int i = 0; i < program.jit_steps; ++i)
    if (std::find(wanted.begin(), wanted.end(), Ref{false, i}) != wanted.end())
      refs.push_back({false, i});
  return refs;
}

bool can_call_again(const Program& program) {
  for (Ref ref : input_refs(program))
    if (program.inputs[static_cast<std::size_t>(ref.index)].mark) return true;
  return false;
}

std::vector<TensorType> step_types(const Program& program) {
  Recorder recorder = record(program);
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < program.steps.size(); ++i)
    types.push_back(recorder.value({false, static_cast<int>(i)}).tensor.type());
  return types;
}

Tolerance tolerance_of(const Program& program) {
  // Sixth order differences of differences of functions of about 1.
  if (is_on_host(program))
    return {std::vector<double>(program.results.size(), 1e-7),
            takes_derivatives(program.steps) ? 1e-5 : 1e-9};
  Recorder recorder = record(program);
  if (!program.gradient) {
    Tolerance tolerance;
    // Each run may be off by as much.
    for (Ref ref : program.results) tolerance.error.push_back(2 * recorder.value(ref).bounds.error);
    return tolerance;
  }
  // A gradient goes back through all steps: relative to the largest, some roundings for each sum.
  // It may be almost 0, because cotangents cancel or functions saturate (the slope of tanh is the
  // difference of 1 and a rounded square): some roundings of the cotangent for each step.
  double widest = 0;
  for (const Input& input : program.inputs) widest = std::max(widest, epsilon(input.type.dtype));
  for (std::size_t i = 0; i < program.steps.size(); ++i)
    widest = std::max(widest, epsilon(recorder.value({false, static_cast<int>(i)}).tensor.dtype()));
  double cotangent = 2 * recorder.value(program.results.at(0)).bounds.size;
  int steps = 0;
  for (const Step& step : program.steps) for_each_step(step, [&](const Step&) { ++steps; });
  return {std::vector<double>(input_refs(program).size(), widest * 64 * cotangent * steps),
          widest * (1 << 12)};
}

}  // namespace meshard::property
