#include "meshard/meshard.h"
#include "tools/conformance/txla/inputs.h"
#include "tools/conformance/txla/scenario/compute.h"
#include "tools/conformance/txla/scenario/scope.h"

namespace meshard::conformance {
namespace {

/// A tensor by name, or a number; integers become C++ integers.
In operand(Scope& scope, const Json& arg) {
  if (arg.is_string()) return scope.named(arg);
  if (arg.is_number_integer()) return arg.get<std::int64_t>();
  return arg.get<double>();
}

Json run_compute(Scope& scope, const Json& step) {
  std::vector<In> args;
  for (const Json& arg : step.at("args")) args.push_back(operand(scope, arg));
  std::optional<Tensor> result =
      compute(step.at("fn"), args, step.value("kw", Json(Json::object())));
  if (!result) throw UnknownStep{};
  scope.tensors[step.at("out")] = *std::move(result);
  return Json::object();
}

Json run_in_place(Scope& scope, const Json& step) {
  if (!compute_in_place(step.at("fn"), scope.tensor(step), operand(scope, step.at("arg"))))
    throw UnknownStep{};
  return Json::object();
}

Json overwrite(Scope& scope, const Json& step) {
  Tensor& tensor = scope.tensor(step);
  assign(tensor, host_array_of(step.at("data"), shape_of(step.at("shape")), tensor.dtype()));
  return Json::object();
}

/// A shard's new data: the old data times `mul`, or an invalid shape.
HostArray changed(const LocalShard& shard, const Json& step) {
  HostArray old = shard.padded_data();
  Shape shape = old.shape();
  std::vector<double> values = old.astype(DType::f64).to_vector<double>();
  for (double& value : values) value *= step.value("mul", 1.0);
  if (step.value("bad_shape", false)) {
    Dimensions doubled(shape.begin(), shape.end());
    doubled[0] *= 2;
    shape = Shape(doubled);
    values.insert(values.end(), values.begin(), values.end());
  }
  return HostArray::from_vector(std::move(values), shape).astype(old.dtype());
}

Json load_shards(Scope& scope, const Json& step) {
  ShardedTensor sharded(scope.tensor(step));
  std::vector<HostArray> shards;
  for (const LocalShard& shard : sharded.local_shards()) shards.push_back(changed(shard, step));
  shards.resize(shards.size() - step.value("drop", std::size_t{0}));
  sharded.load_local_shards(shards);
  scope.tensor(step) = sharded;
  return Json::object();
}

}  // namespace

const Steps& steps_that_change() {
  static const Steps steps = {{"compute", run_compute},
                              {"inplace", run_in_place},
                              {"copy_", overwrite},
                              {"load_shards", load_shards}};
  return steps;
}

}  // namespace meshard::conformance
