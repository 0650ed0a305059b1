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
