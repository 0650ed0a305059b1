#include "tests/property/sharded_program/record.h"

namespace meshard::property {

// Ends a body that was entered, also where a step of it is impossible.
struct Recorder::Leave {
  std::vector<Frame>& frames;
  std::size_t depth = frames.size();
  ~Leave() { frames.resize(depth); }
};

void Recorder::add_input(const TensorType& type, int seed) {
  frames_[0].inputs.push_back({from_host(input_data(type, seed)), input_bounds(type.dtype)});
}

const Recorded& Recorder::value(Ref ref) const {
  const Frame& frame = frames_.at(static_cast<std::size_t>(ref.level));
  return (ref.is_input ? frame.inputs : frame.steps).at(static_cast<std::size_t>(ref.index));
}

std::vector<Recorded> Recorder::run(const Body& body) {
  for (const Step& step : body.steps) add(step);
  std::vector<Recorded> results;
  for (Ref ref : body.results) results.push_back(value(ref));
  return results;
}

const Recorded& Recorder::add(const Step& step) {
  internal::KeepOperandsScope only_recording;  // jit compiles nothing
  std::vector<Tensor> operands;
  std::vector<Bounds> bounds;
  for (Ref ref : step.operands) {
    operands.push_back(value(ref).tensor);
    bounds.push_back(value(ref).bounds);
  }
  Arguments args{operands, bounds, step, nullptr, {}, {}};
  args.call = [&](int body, std::vector<Tensor> arguments) {
    Leave leave{frames_};
    frames_.emplace_back();
    for (Tensor& each : arguments) frames_.back().inputs.push_back({std::move(each), {}});
    std::vector<Tensor> results;
    for (Recorded& each : run(step.bodies.at(static_cast<std::size_t>(body))))
      results.push_back(std::move(each.tensor));
    return results;
  };
  args.bounds_of_body = [&](int body, std::vector<Bounds> arguments) {
    Leave leave{frames_};
    const Body& what = step.bodies.at(static_cast<std::size_t>(body));
    enter(what.parameters, arguments);
    std::vector<Bounds> results;
    for (const Recorded& each : run(what)) results.push_back(each.bounds);
    return results;
  };
  Tensor result = step.operation->run(args);
  Bounds bound = step.operation->bounds(args, result.type());
  frames_.back().steps.push_back({std::move(result), bound});
  return frames_.back().steps.back();
}

void Recorder::enter(const std::vector<TensorType>& parameters, const std::vector<Bounds>& bounds) {
  frames_.emplace_back();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    frames_.back().inputs.push_back({from_host(input_data(parameters[i], 0)), bounds.at(i)});
}

void Recorder::cut(std::size_t inputs, std::size_t steps) {
  frames_[0].inputs.resize(inputs);
  frames_.back().steps.resize(steps);
}

}  // namespace meshard::property
