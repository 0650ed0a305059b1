#include "tests/property/sharded_program/evaluate.h"

#include <algorithm>

namespace meshard::property {

void Evaluator::begin(std::vector<Tensor> inputs, std::size_t steps) {
  frames_.assign(1, {std::move(inputs), std::vector<Tensor>(steps)});
}

void Evaluator::forget_steps() {
  std::fill(frames_[0].steps.begin(), frames_[0].steps.end(), Tensor());
}

Tensor& Evaluator::at(Ref ref) {
  Frame& frame = frames_.at(static_cast<std::size_t>(ref.level));
  return (ref.is_input ? frame.inputs : frame.steps).at(static_cast<std::size_t>(ref.index));
}
const Tensor& Evaluator::value(Ref ref) const { return const_cast<Evaluator*>(this)->at(ref); }

std::vector<Tensor> Evaluator::values(const std::vector<Ref>& refs) const {
  std::vector<Tensor> values;
  for (Ref ref : refs) values.push_back(value(ref));
  return values;
}

void Evaluator::take(const std::vector<Step>& steps, int from, int to) {
  int level = static_cast<int>(frames_.size()) - 1;
  for (int i = from; i < to; ++i) {
    const Step& step = steps[static_cast<std::size_t>(i)];
    std::vector<Tensor> operands = values(step.operands);
    Arguments args{operands, {}, step, meshes_, {}, {}};
    args.call = [&](int body, std::vector<Tensor> arguments) {
      return call(step.bodies.at(static_cast<std::size_t>(body)), std::move(arguments));
    };
    Tensor result = step.operation->run(args);
    if (after_) result = after_(std::move(result), args, level);
    frames_.back().steps.at(static_cast<std::size_t>(i)) = std::move(result);
  }
}

std::vector<Tensor> Evaluator::call(const Body& body, std::vector<Tensor> arguments) {
  struct Leave {
    std::vector<Frame>& frames;
    std::size_t depth = frames.size();
    ~Leave() { frames.resize(depth); }
  } leave{frames_};
  frames_.push_back({std::move(arguments), std::vector<Tensor>(body.steps.size())});
  take(body.steps, 0, static_cast<int>(body.steps.size()));
  return values(body.results);
}

Tensor make_input(const Input& input, const std::vector<Mesh>* meshes) {
  HostArray data = input_data(input.type, input.seed);
  if (!meshes || !input.mark) return from_host(std::move(data));
  const Mesh& mesh = meshes->at(static_cast<std::size_t>(input.mark->mesh));
  if (!input.by_callback) return mark_sharding(from_host(std::move(data)), mesh, input.mark->spec);
  Sharding sharding(mesh, input.mark->spec, static_cast<std::size_t>(data.rank()));
  return ShardedTensor::from_callback(data.type(), sharding,
                                      [&](const Box& box) { return data.slice(box); })
      .global();
}

namespace {

Placement without_units(Placement placement, const std::vector<Mesh>& meshes) {
  const Mesh& mesh = meshes.at(static_cast<std::size_t>(placement.mesh));
  std::vector<DimensionSpec> dimensions;
  for (const DimensionSpec& dimension : placement.spec.dimensions()) {
    AxisList axes;
    for (const AxisRef& axis : dimension.axes())
      if (mesh.axis_size(axis) > 1) axes.push_back(axis);
    dimensions.emplace_back(std::move(axes), dimension.is_open());
  }
  placement.spec = PartitionSpec(std::move(dimensions));
  return placement;
}

void drop_units(std::vector<Step>& steps, const std::vector<Mesh>& meshes) {
  for (Step& step : steps) {
    if (!meshes.empty()) step.placement = without_units(std::move(step.placement), meshes);
    for (Body& body : step.bodies) drop_units(body.steps, meshes);
  }
}

}  // namespace

Program without_axes_of_size_1(Program program, const std::vector<Mesh>& meshes) {
  for (Input& input : program.inputs)
    if (input.mark) input.mark = without_units(*std::move(input.mark), meshes);
  drop_units(program.steps, meshes);
  return program;
}

bool can_be_recorded(const Program& program, const std::vector<Mesh>& meshes) {
  internal::KeepOperandsScope only_recording;  // jit compiles nothing
  Evaluator evaluator;
  evaluator.set_meshes(&meshes);
  std::vector<Tensor> inputs;
  for (const Input& input : program.inputs) inputs.push_back(make_input(input, &meshes));
  evaluator.begin(std::move(inputs), program.steps.size());
  try {
    evaluator.take(program.steps, 0, static_cast<int>(program.steps.size()));
    return true;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) throw;
    return false;
  }
}

}  // namespace meshard::property
