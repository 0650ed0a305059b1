#include "meshard/explain/check_program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/explain/value_check.h"
#include "meshard/graph/from_host.h"
#include "meshard/lowering/module_boundary.h"
#include "meshard/pjrt/client.h"
#include "meshard/runtime/imported_program.h"
#include "meshard/runtime/runtime.h"
#include "meshard/stablehlo/flat_module.h"

namespace meshard {
namespace {

using stablehlo::FlatKind;
using stablehlo::FlatModule;
using stablehlo::FlatOp;

// How often ops run with perturbed operands: an even number, half of them in opposite directions.
constexpr std::uint64_t kPerturbedRuns = 4;

std::vector<Tensor> run_on(const ImportedProgram& program, std::span<const HostArray> arguments,
                           SourceLocation where) {
  std::vector<Tensor> given;
  for (const HostArray& argument : arguments) given.push_back(from_host(argument, where));
  return program.flat(given, where);
}

std::string placed(const FlatOp& op) { return cat(op.mnemonic, " at ", op.place); }

class ProgramChecker {
 public:
  ProgramChecker(FlatModule module, FlatModule partitioned, std::span<const HostArray> arguments,
                 const std::optional<Mesh>& mesh, const CheckProgramOptions& options,
                 SourceLocation where)
      : module_(std::move(module)),
        partitioned_(std::move(partitioned)),
        arguments_(arguments.begin(), arguments.end()),
        mesh_(mesh),
        options_(options),
        where_(where) {}

  ProgramCheck run() {
    for (const FlatOp& op : module_.ops())
      if (op.kind != FlatKind::kComputed && op.kind != FlatKind::kConstant && !op.results.empty() &&
          op.is_used)
        check_.not_compared.push_back(placed(op));
    check_.results = module_.results().size();
    if (results_agree() || check_.difference) return std::move(check_);
    check_ops();
    if (!check_.difference && !is_explained()) check_.difference = result_difference_;
    return std::move(check_);
  }

 private:
  // ---- Running.

  std::map<std::string, Tensor> run_partitioned(const std::vector<std::string>& more) {
    ImportedProgram program =
        load_program_from_bytes(partitioned_.with_results(more), where_).value();
    if (mesh_) program = program.on(*mesh_, where_);
    devices_ = program.num_devices();
    std::vector<Tensor> returned = run_on(program, arguments_, where_);
    results_.assign(returned.begin(), returned.begin() + std::ssize(module_.results()));
    std::map<std::string, Tensor> values;
    for (std::size_t i = 0; i < more.size(); ++i)
      values.emplace(more[i], returned[module_.results().size() + i]);
    return values;
  }

  ImportedProgram one_device(const std::string& text) const {
    ImportedProgram program = load_program_from_bytes(text, where_).value();
    if (!mesh_) return program;
    return program.on(Mesh({{"devices", 1}}, {mesh_->device_id(0)}), where_);
  }

  std::vector<HostArray> run_one_device(const ImportedProgram& program,
                                        const std::vector<HostArray>& arguments) const {
    std::vector<HostArray> arrays;
    for (const Tensor& result : run_on(program, arguments, where_))
      arrays.push_back(result.to_host(where_));
    return arrays;
  }

  // ---- The results.

  bool results_agree() {
    std::vector<std::string> given = module_.given();
    std::map<std::string, Tensor> values = run_partitioned(given);
    if (replicas_differ(values)) return false;
    std::vector<HostArray> arguments = arguments_;
    for (const std::string& name : given) arguments.push_back(values.at(name).to_host(where_));
    ImportedProgram program = one_device(module_.unsharded());
    expected_ = run_one_device(program, arguments);
    distances_ = result_distances();
    bool agree = true;
    for (std::size_t i = 0; i < distances_.size(); ++i) {
      check_.ulps = std::max(check_.ulps, distances_[i].ulps);
      if (distances_[i].ulps <= kExactUlps) continue;
      if (agree)
        result_difference_ = difference(cat("result ", i), result_place(i), module_.results()[i],
                                        results_[i], distances_[i]);
      agree = false;
    }
    return agree;
  }

  // Devices that hold the same part of a value must have the same numbers, also where one device
  // cannot say which.
  bool replicas_differ(const std::map<std::string, Tensor>& taken) {
    for (const FlatOp& op : module_.ops())
      for (const stablehlo::FlatValue& result : op.results) {
        auto value = taken.find(result.name);
        if (value == taken.end()) continue;
        ValueDistance distance =
            farthest(different_shards(value->second, where_), value->second.to_host(where_));
        if (distance.ulps <= kExactUlps) continue;
        check_.difference = difference(op.mnemonic, op.place, result.name, value->second, distance);
        return true;
      }
    return false;
  }

  std::vector<ValueDistance> result_distances() const {
    std::vector<ValueDistance> distances;
    for (std::size_t i = 0; i < results_.size(); ++i)
      distances.push_back(farthest(different_shards(results_[i], where_), expected_[i]));
    return distances;
  }

  std::string result_place(std::size_t i) const {
    for (const FlatOp& op : module_.ops())
      for (const stablehlo::FlatValue& result : op.results)
        if (result.name == module_.results()[i]) return op.place;
    return "an argument";
  }

  // True if the results are as far apart in the programs with further results, in which no op is
  // wrong.
  bool is_explained() const {
    constexpr double kAlike = 8;
    for (std::size_t i = 0; i < distances_.size(); ++i)
      if (distances_[i].ulps > kAlike * std::max(farthest_result_[i], kExactUlps)) return false;
    return true;
  }

  ProgramDifference difference(std::string op, std::string place, const std::string& name,
                               const Tensor& tensor, const ValueDistance& distance) const {
    std::optional<Sharding> sharding = tensor.stored_sharding();
    return {.op = std::move(op),
            .place = std::move(place),
            .type = module_tensor_type(module_.type_of(name)).value(),
            .sharding = sharding ? cat(*sharding) : std::string("not sharded"),
            .index = distance.index,
            .device = distance.device,
            .partitioned = distance.got,
            .expected = distance.expected,
            .ulps = distance.ulps};
  }

  // ---- The ops.

  // The bytes of a value; none if it has a type that is not a tensor's.
  std::optional<std::int64_t> bytes_of(const std::string& name) const {
    Result<TensorType> type = module_tensor_type(module_.type_of(name));
    if (!type.ok()) return std::nullopt;
    return type->shape.size() * static_cast<std::int64_t>(size_in_bytes(type->dtype));
  }

  bool can_compare(const FlatOp& op) const {
    if (op.results.empty() || !op.is_used) return false;
    if (op.kind != FlatKind::kComputed && op.kind != FlatKind::kConstant) return false;
    return std::ranges::all_of(
               op.results, [&](const auto& result) { return bytes_of(result.name).has_value(); }) &&
           std::ranges::all_of(op.operands, [&](const std::string& operand) {
             return bytes_of(operand).has_value();
           });
  }

  // The values that an op takes and returns, as far as they are not arguments of the program.
  std::set<std::string> values_of(const FlatOp& op) const {
    std::set<std::string> values(op.operands.begin(), op.operands.end());
    for (const stablehlo::FlatValue& result : op.results) values.insert(result.name);
    for (const stablehlo::FlatValue& argument : module_.arguments()) values.erase(argument.name);
    return values;
  }

  // In the order of the program, up to the first group with a wrong op. Whether values differ at
  // all says little: what follows from rounding grows and shrinks along a program, so that there is
  // nothing to bisect by.
  void check_ops() {
    farthest_result_.assign(distances_.size(), 0);
    std::vector<std::size_t> group;
    std::set<std::string> values;
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < module_.ops().size() && !check_.difference; ++i) {
      const FlatOp& op = module_.ops()[i];
      if (!can_compare(op)) continue;
      std::int64_t more = 0;
      for (const std::string& name : values_of(op))
        if (!values.contains(name)) more += *bytes_of(name);
      if (!group.empty() && bytes + more > options_.bytes_at_once) {
        check_group(group, values);
        group.clear();
        values.clear();
        bytes = 0;
        if (check_.difference) return;
      }
      group.push_back(i);
      values.merge(values_of(op));
      bytes += more;
    }
    if (!check_.difference && !group.empty()) check_group(group, values);
  }

  void check_group(const std::vector<std::size_t>& group, const std::set<std::string>& names) {
    std::map<std::string, Tensor> values =
        run_partitioned(std::vector<std::string>(names.begin(), names.end()));
    std::vector<ValueDistance> distances = result_distances();
    for (std::size_t i = 0; i < distances.size(); ++i)
      farthest_result_[i] = std::max(farthest_result_[i], distances[i].ulps);
    stablehlo::SeparateOps separate = module_.separate(group);
    std::map<std::string, HostArray> operands;
    for (std::size_t i = 0; i < arguments_.size(); ++i)
      operands.emplace(module_.arguments()[i].name, arguments_[i]);
    for (const auto& [name, tensor] : values) operands.emplace(name, tensor.to_host(where_));
    GroupRun run{one_device(separate.text), separate.arguments, operands, {}, {}};
    for (const std::string& name : separate.arguments) run.arguments.push_back(operands.at(name));
    std::vector<HostArray> expected = run_one_device(run.program, run.arguments);
    std::size_t result = 0;
    for (std::size_t number : group) {
      ++check_.ops;
      const FlatOp& op = module_.ops()[number];
      for (const stablehlo::FlatValue& each : op.results) {
        const Tensor& tensor = values.at(each.name);
        check_value(op, result, each.name, tensor, expected[result], run);
        if (check_.difference) return;
        ++result;
      }
    }
  }

  /// The ops of a group, alone.
  struct GroupRun {
    ImportedProgram program;
    const std::vector<std::string>& names;
    const std::map<std::string, HostArray>& operands;
    std::vector<HostArray> arguments;
    /// With perturbed operands: run if they are needed.
    std::vector<std::vector<HostArray>> perturbed;
  };

  void check_value(const FlatOp& op, std::size_t result, const std::string& name,
                   const Tensor& tensor, const HostArray& expected, GroupRun& run) {
    std::vector<HeldShard> shards = different_shards(tensor, where_);
    ValueDistance distance = farthest(shards, expected);
    if (distance.ulps <= kExactUlps) return;
    OpSums sums = sums_of(module_.module(), *op.op);
    std::vector<HostArray> operands;
    for (const std::string& operand : op.operands) operands.push_back(run.operands.at(operand));
    AllowedDistance allowed;
    allowed.mixes_elements = sums.terms > 1;
    if (is_inexact(expected.dtype()))
      allowed.absolute = std::max(
          kExactUlps * spacing_at_largest(float64_values(expected), real_dtype(expected.dtype())),
          explained_by_rounding(sums, operands, expected, devices_));
    if (is_near(shards, expected, allowed)) return;
    if (run.perturbed.empty()) perturb(run);
    for (const std::vector<HostArray>& each : run.perturbed)
      allowed.perturbed.push_back(each[result]);
    if (is_near(shards, expected, allowed)) return;
    check_.difference = difference(op.mnemonic, op.place, name, tensor, distance);
  }

  void perturb(GroupRun& run) const {
    for (std::uint64_t k = 0; k < kPerturbedRuns; ++k) {
      std::vector<HostArray> arguments;
      for (std::size_t i = 0; i < run.arguments.size(); ++i)
        arguments.push_back(perturbed(run.arguments[i], 1000 * i + k));
      run.perturbed.push_back(run_one_device(run.program, arguments));
    }
  }

  FlatModule module_, partitioned_;
  std::vector<HostArray> arguments_;
  const std::optional<Mesh>& mesh_;
  const CheckProgramOptions& options_;
  SourceLocation where_;
  std::int64_t devices_ = 1;
  // Of the last partitioned run; of one device.
  std::vector<Tensor> results_;
  std::vector<HostArray> expected_;
  std::vector<ValueDistance> distances_;
  // In the runs with values inside as results.
  std::vector<double> farthest_result_;
  std::optional<ProgramDifference> result_difference_;
  ProgramCheck check_;
};

void check_same_ops(const FlatModule& module, const FlatModule& partitioned, SourceLocation where) {
  bool same =
      module.ops().size() == partitioned.ops().size() && module.results() == partitioned.results();
  for (std::size_t i = 0; same && i < module.ops().size(); ++i)
    same = module.ops()[i].results.size() == partitioned.ops()[i].results.size();
  if (!same)
    throw_invalid(where, "[check_program] the partitioned program has ", partitioned.ops().size(),
                  " ops, but the module ", module.ops().size(),
                  ", or they have other numbers of results");
}

}  // namespace

ProgramCheck internal::check_program(const std::string& module, const std::string& partitioned,
                                     std::span<const HostArray> arguments,
                                     const std::optional<Mesh>& mesh,
                                     const CheckProgramOptions& options, SourceLocation where) {
  FlatModule expected = FlatModule::make(module).value(where);
  FlatModule made = FlatModule::make(partitioned).value(where);
  check_same_ops(expected, made, where);
  if (arguments.size() != expected.arguments().size())
    throw_invalid(where, "[check_program] the module takes ", expected.arguments().size(),
                  " arguments, but ", arguments.size(), " are given");
  return ProgramChecker(std::move(expected), std::move(made), arguments, mesh, options, where)
      .run();
}

ProgramCheck check_program(const ImportedProgram& program, std::span<const Tensor> tensors,
                           const CheckProgramOptions& options, SourceLocation where) {
  if (tensors.size() != program.arguments().size())
    throw_invalid(where, "[check_program] \"", program.name(), "\" takes ",
                  program.arguments().size(), " arguments, but ", tensors.size(), " are given");
  std::vector<HostArray> arguments;
  if (program.platforms().size() > 1) {
    auto platform = std::ranges::find(program.platforms(), runtime_client(where).platform());
    arguments.push_back(HostArray::scalar(
        static_cast<std::int32_t>(std::distance(program.platforms().begin(), platform))));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (program.arguments()[i].used) arguments.push_back(tensors[i].to_host(where));
  std::string text = program.module_text(where);
  return internal::check_program(text, text, arguments, program.mesh(), options, where);
}

std::string ProgramCheck::to_string() const {
  std::string text;
  if (ok()) {
    text = cat(results, results == 1 ? " result agrees" : " results agree", ", at most ", ulps,
               " ULPs apart",
               ops == 0 ? std::string()
                        : cat(": rounding explains it, since each of ", ops, " ops is right"));
  } else {
    const ProgramDifference& d = *difference;
    text =
        cat("the first value that differs: ", d.op, " ", d.type, " at ", d.place, "\n  element ",
            Shape(d.index).to_string(), " is ", d.partitioned, " on device ", d.device, " and ",
            d.expected, " on one device: ", d.ulps, " ULPs of the largest value\n  ", d.sharding);
  }
  if (not_compared.empty()) return text;
  constexpr std::size_t kMost = 4;
  std::vector<std::string> some(not_compared.begin(),
                                not_compared.begin() + std::min(kMost, not_compared.size()));
  if (not_compared.size() > kMost)
    some.push_back(cat("and ", not_compared.size() - kMost, " more"));
  return cat(text, "\nnot compared, but taken from the partitioned program: ", join(some, ", "));
}

}  // namespace meshard
