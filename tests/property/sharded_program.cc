#include "tests/property/sharded_program.h"

#include <algorithm>
#include <cmath>

#include "tests/property/sharded_program_operation.h"

namespace meshard::property {
namespace {

// A value of the run without shardings, which is recorded and not computed.
struct Recorded {
  Tensor tensor;
  Bounds bounds;
};

Bounds bounds_of_data(DType dtype) {
  return {dtype == DType::bool_ ? 1.0 : is_floating(dtype) ? 2.0 : 8.0, 0};
}

std::vector<Recorded> record(const Program& program) {
  std::vector<Recorded> inputs, steps;
  for (const Input& input : program.inputs)
    inputs.push_back(
        {from_host(input_data(input.type, input.seed)), bounds_of_data(input.type.dtype)});
  for (const Step& step : program.steps) {
    std::vector<Tensor> operands;
    std::vector<Bounds> bounds;
    for (Ref ref : step.operands) {
      const Recorded& operand =
          (ref.is_input ? inputs : steps).at(static_cast<std::size_t>(ref.index));
      operands.push_back(operand.tensor);
      bounds.push_back(operand.bounds);
    }
    Arguments args{operands, bounds, step, nullptr};
    Tensor result = step.operation->run(args);
    steps.push_back({result, step.operation->bounds(args, result.type())});
  }
  return steps;
}

}  // namespace

Mesh MeshSpec::make() const {
  Mesh root(axes, devices);
  if (form == kFlat) return root.flatten("f");
  if (form == kRoot) return root;
  std::vector<std::string> kept;
  for (std::size_t i = 1; i < axes.size(); ++i) kept.push_back(axes[i].name);
  return root.submesh(kept, devices.at(0)).value();
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

std::vector<Ref> input_refs(const Program& program, bool floats_only) {
  std::vector<Ref> refs;
  for (std::size_t i = 0; i < program.inputs.size(); ++i)
    if (program.inputs[i].home == 0 && (!floats_only || is_floating(program.inputs[i].type.dtype)))
      refs.push_back({true, static_cast<int>(i)});
  return refs;
}

std::vector<Ref> jit_results(const Program& program) {
  std::vector<Ref> wanted = program.results, refs;
  for (std::size_t i = static_cast<std::size_t>(program.jit_steps); i < program.steps.size(); ++i)
    for (Ref ref : program.steps[i].operands) wanted.push_back(ref);
  for (int i = 0; i < program.jit_steps; ++i)
    if (std::find(wanted.begin(), wanted.end(), Ref{false, i}) != wanted.end())
      refs.push_back({false, i});
  return refs;
}

std::vector<TensorType> step_types(const Program& program) {
  std::vector<TensorType> types;
  for (const Recorded& each : record(program)) types.push_back(each.tensor.type());
  return types;
}

Tolerance tolerance_of(const Program& program) {
  std::vector<Recorded> steps = record(program);
  if (!program.gradient) {
    Tolerance tolerance;
    // Each run may be off by as much.
    for (Ref ref : program.results)
      tolerance.error.push_back(
          ref.is_input ? 0 : 2 * steps.at(static_cast<std::size_t>(ref.index)).bounds.error);
    return tolerance;
  }
  // A gradient goes back through all steps: relative to the largest, some roundings for each sum.
  double widest = 0;
  for (const Input& input : program.inputs) widest = std::max(widest, epsilon(input.type.dtype));
  for (const Recorded& step : steps) widest = std::max(widest, epsilon(step.tensor.dtype()));
  return {std::vector<double>(input_refs(program, true).size(), 0.0), widest * (1 << 12)};
}

}  // namespace meshard::property
