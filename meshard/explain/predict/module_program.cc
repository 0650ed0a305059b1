#include "meshard/explain/predict/module_program.h"

#include <algorithm>

#include "meshard/explain/predict/op_moves.h"
#include "meshard/explain/predict/reshard_plan.h"
#include "meshard/sharding/shardy_text.h"

namespace meshard {
namespace {

// The name of the mesh in `<@mesh, [{"x"}]>`; empty for a mesh that is written in place.
std::string_view mesh_name(std::string_view sharding) {
  std::size_t begin = sharding.find('@'), end = sharding.find(',');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return {};
  return sharding.substr(begin + 1, end - begin - 1);
}

// Sets a value's sharding; the value stays open if the spec does not fit this mesh.
void set_spec(const Mesh& mesh, const PartitionSpec& spec, PartialSharding& value) {
  try {
    value = PartialSharding::of(Sharding(mesh, spec), value.axes.size());
  } catch (const Error&) {
    // An axis has been cut into parts that this size does not have: the compiler refuses it.
  }
}

}  // namespace

Result<ModuleProgram> ModuleProgram::of(const stablehlo::Module& module,
                                        const FindPlace& find_place) {
  const stablehlo::ModuleFunction* main = module.function("main");
  if (!main)
    return Error(ErrorCode::kDataLoss, "[predict] the module has no function `func.func @main(`");
  return ModuleProgram(std::make_shared<const WalkedModule>(walk(module, *main, find_place)));
}

std::vector<PartialSharding> ModuleProgram::given_shardings(const Mesh& mesh) const {
  std::vector<PartialSharding> values;
  for (const TensorType& type : state_->rules.types)
    values.push_back(PartialSharding::open_value(static_cast<std::size_t>(type.rank())));
  for (std::size_t value : state_->replicated)
    values[value].open.assign(values[value].open.size(), false);
  const std::vector<std::string>& others = state_->other_meshes;
  for (const auto& [value, text] : state_->constraints) {
    if (std::find(others.begin(), others.end(), mesh_name(text)) != others.end()) {
      values[value] = {};
      continue;
    }
    Result<Sharding> wanted = parse_shardy_sharding(text, mesh);
    if (wanted.ok()) values[value] = PartialSharding::of(*wanted, values[value].axes.size());
  }
  for (const auto& [value, axes] : state_->local)
    for (const std::string& axis : state_->manual_axes[axes])
      values[value].forbidden.push_back(AxisRef(axis));
  return values;
}

std::vector<PartialSharding> ModuleProgram::shardings(
    const Mesh& mesh, const std::vector<std::optional<PartitionSpec>>& arguments,
    const std::vector<std::optional<PartitionSpec>>& results) const {
  std::vector<PartialSharding> values = given_shardings(mesh);
  auto set = [&](const std::vector<std::optional<std::size_t>>& numbers,
                 const std::vector<std::optional<PartitionSpec>>& specs) {
    for (std::size_t i = 0; i < numbers.size() && i < specs.size(); ++i)
      if (numbers[i] && specs[i]) set_spec(mesh, *specs[i], values[*numbers[i]]);
  };
  set(state_->arguments, arguments);
  set(state_->results, results);
  propagate_program(mesh, rules().ops, values);
  return values;
}

PredictedTime ModuleProgram::time(const Mesh& mesh, const LinkModel& links,
                                  const std::vector<std::optional<PartitionSpec>>& arguments,
                                  const std::vector<std::optional<PartitionSpec>>& results) const {
  std::vector<PartialSharding> values = shardings(mesh, arguments, results);
  ProgramMoves found = predict_moves(mesh, rules(), values);
  const HardwareFigures& figures = links.figures();
  PredictedTime time;
  double memory_bytes = 0;
  for (const PredictedMove& move : found.moves) {
    time.communication += static_cast<double>(move.total_bytes());
    if (move.in_smaller_branch) continue;
    Collective one = predicted_collective(move.kind, move.axes, move.bytes, mesh.size());
    time.link_seconds += links.seconds(one) * static_cast<double>(move.executions);
  }
  for (const ProductWork& work : found.products) {
    auto runs = static_cast<double>(rules().regions[rules().facts[work.op].region].executions);
    DType dtype = rules().types[rules().ops[work.op].operands[0]].dtype;
    double rate = figures.matrix_rate(meshard::to_string(dtype));
    if (rate > 0) time.compute_seconds += runs * work.flops / rate;
    memory_bytes += runs * work.memory_bytes;
  }
  for (const auto* numbers : {&state_->arguments, &state_->results})
    for (const std::optional<std::size_t>& number : *numbers) {
      if (!number) continue;
      std::optional<Sharding> sharding = values[*number].sharding(mesh);
      memory_bytes += static_cast<double>(rules().types[*number].bytes()) /
                      static_cast<double>(sharding ? sharding->num_tiles() : 1);
    }
  if (figures.memory_bandwidth > 0) time.memory_seconds = memory_bytes / figures.memory_bandwidth;
  return time;
}

double ModuleProgram::communication(
    const Mesh& mesh, const std::vector<std::optional<PartitionSpec>>& arguments,
    const std::vector<std::optional<PartitionSpec>>& results) const {
  double bytes = 0;
  for (const PredictedMove& move :
       predict_moves(mesh, rules(), shardings(mesh, arguments, results)).moves)
    bytes += static_cast<double>(move.total_bytes());
  return bytes;
}

}  // namespace meshard
