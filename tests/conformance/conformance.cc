#include "tests/conformance/conformance.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

#include "meshard/autodiff/backward.h"
#include "meshard/explain/hlo_testutil.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/meshard.h"
#include "meshard/runtime/internal/stages.h"
#include "tests/support/random.h"

namespace meshard::conformance {
namespace {

// Prints the counts after the last test.
class Tallies : public testing::Environment {
 public:
  static Tallies& get() {
    // GoogleTest owns it.
    static auto* tallies = static_cast<Tallies*>(testing::AddGlobalTestEnvironment(new Tallies));
    return *tallies;
  }
  void TearDown() override {
    for (const auto& [what, count] : counts)
      std::printf("[ conform  ] %6d  %s\n", count, what.c_str());
  }
  std::map<std::string, int, std::less<>> counts;
};
[[maybe_unused]] const Tallies& kRegistered = Tallies::get();

double epsilon(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x1p-52;
    case DType::f32: return 0x1p-23;
    case DType::f16: return 0x1p-10;
    case DType::bf16: return 0x1p-7;
    default: return 0x1p-2;  // 8-bit floats have two or three bits of mantissa
  }
}

}  // namespace

std::vector<OpSample> EachOp::samples() const {
  SampleSource source(test_seed());
  return samples_of(op(), source);
}

std::vector<const OpDef*> every_op() { return {all_ops().begin(), all_ops().end()}; }

std::string op_name(const testing::TestParamInfo<const OpDef*>& info) {
  return std::string(info.param->name);
}

bool all_f64(const OpSample& sample) {
  bool any = false;
  for (const HostArray& input : sample.inputs) {
    if (is_inexact(input.dtype()) && input.dtype() != DType::f64) return false;
    any |= input.dtype() == DType::f64;
  }
  return any;
}

Body body_of(const OpSample& sample) {
  return [&sample](std::span<const Tensor> inputs) {
    return std::vector<Tensor>{sample.call(inputs)};
  };
}

Body gradient_of(const OpSample& sample) {
  return [&sample](std::span<const Tensor> parameters) {
    std::span<const Tensor> inputs = parameters.first(parameters.size() - 1);
    Tensor result = sample.call(inputs);
    std::vector<Tensor> floats;
    for (const Tensor& input : inputs)
      if (input.dtype() == DType::f64) floats.push_back(input);
    return backward({&result, 1}, {&parameters.back(), 1}, floats, SourceLocation::current());
  };
}

std::vector<HostArray> moved(std::span<const HostArray> inputs,
                             const std::vector<HostArray>& directions, double step) {
  std::vector<HostArray> out(inputs.begin(), inputs.end());
  std::size_t next = 0;
  for (HostArray& input : out) {
    if (input.dtype() != DType::f64) continue;
    std::vector<double> values = input.to_vector<double>();
    std::span<const double> direction = directions[next++].data<double>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += step * direction[i];
    input = HostArray::from_vector(std::move(values), input.shape());
  }
  return out;
}

Graph trace(std::span<const HostArray> inputs, const Body& body,
            std::span<const Sharding> shardings) {
  internal::TraceScope scope;
  std::vector<Tensor> parameters;
  std::vector<Value> arguments, results;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::optional<Sharding> sharding;
    if (!shardings.empty()) sharding = shardings[i];
    parameters.push_back(make_parameter(inputs[i].type(), sharding, SourceLocation::current()));
    arguments.push_back(parameters.back().value());
  }
  for (const Tensor& result : body(parameters)) results.push_back(result.value());
  return Graph::build(arguments, results, scope.trace());
}

std::shared_ptr<CompiledProgram> compile(const Graph& graph) {
  return evaluator().compile({.name = "main", .graph = graph, .donated = {}},
                             SourceLocation::current());
}

std::vector<HostArray> run(CompiledProgram& program, std::span<const HostArray> inputs) {
  std::vector<Tensor> tensors, results(view_of(program).graph.results().size());
  std::vector<const Tensor*> arguments;
  for (const HostArray& input : inputs) tensors.push_back(from_host(input));
  for (const Tensor& tensor : tensors) arguments.push_back(&tensor);
  program.run(arguments, results, SourceLocation::current());
  std::vector<HostArray> out;
  for (const Tensor& result : results) out.push_back(result.to_host());
  return out;
}

namespace {

// Whether both run on the same devices, or both on any.
bool same_place(const std::optional<Mesh>& a, const std::optional<Mesh>& b) {
  return a && b ? a->same_devices(*b) : a.has_value() == b.has_value();
}

std::shared_ptr<CompiledProgram> compile_joined(std::span<const Part> parts,
                                                std::span<const std::size_t> chosen) {
  std::vector<HostArray> inputs;
  std::vector<Sharding> shardings;
  for (std::size_t p : chosen) {
    inputs.insert(inputs.end(), parts[p].inputs.begin(), parts[p].inputs.end());
    shardings.insert(shardings.end(), parts[p].shardings.begin(), parts[p].shardings.end());
  }
  return compile(trace(
      inputs,
      [&](std::span<const Tensor> all) {
        std::vector<Tensor> results;
        for (std::size_t p : chosen) {
          std::vector<Tensor> own = parts[p].body(all.first(parts[p].inputs.size()));
          results.insert(results.end(), own.begin(), own.end());
          all = all.subspan(parts[p].inputs.size());
        }
        return results;
      },
      shardings));
}

}  // namespace

Together::Together(std::vector<Part> parts) : parts_(std::move(parts)) {
  std::vector<std::optional<Mesh>> places;
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    graphs_.push_back(trace(parts_[p].inputs, parts_[p].body, parts_[p].shardings));
    std::optional<Mesh> place = devices_of_program(graphs_.back());
    auto found = std::find_if(places.begin(), places.end(),
                              [&](const auto& each) { return same_place(each, place); });
    if (found == places.end()) {
      found = places.insert(places.end(), place);
      groups_.emplace_back();
    }
    groups_[static_cast<std::size_t>(found - places.begin())].parts.push_back(p);
  }
  for (Group& group : groups_) try {
      group.program = compile_joined(parts_, group.parts);
    } catch (const Error& error) {
      for (std::size_t p : group.parts) try {
          compile(graphs_[p]);
        } catch (const Error& own) {
          throw Error(own).with_note(cat("in ", parts_[p].name));
        }
      throw;
    }
}

std::vector<Together::Results> Together::run() const {
  std::vector<Inputs> inputs;
  for (const Part& part : parts_) inputs.push_back(part.inputs);
  return run(inputs);
}

std::vector<Together::Results> Together::run(std::span<const Inputs> inputs) const {
  std::vector<Results> results(parts_.size());
  for (const Group& group : groups_) {
    std::vector<HostArray> joined;
    for (std::size_t p : group.parts)
      joined.insert(joined.end(), inputs[p].begin(), inputs[p].end());
    std::vector<HostArray> all = conformance::run(*group.program, joined);
    auto next = all.begin();
    for (std::size_t p : group.parts) {
      auto count = static_cast<std::ptrdiff_t>(graphs_[p].results().size());
      results[p].assign(next, next + count);
      next += count;
    }
  }
  return results;
}

std::vector<CollectiveKind> collectives(const CompiledProgram& program) {
  const LoadedProgram& loaded = view_of(program).program;
  std::string bytes = loaded.executable().executable().optimized_program().value();
  HloModule module = HloModule::from_bytes(bytes).value();
  std::vector<CollectiveKind> kinds;
  for (const Collective& each : find_collectives(module, loaded.lowered().mesh, nullptr).value())
    kinds.push_back(each.kind);
  EXPECT_EQ(loaded.executable().signature().has_collectives, !kinds.empty());
  return kinds;
}

testing::AssertionResult close(const HostArray& got, const HostArray& expected, double ulps) {
  if (got.type() != expected.type())
    return testing::AssertionFailure() << cat(got.type(), " instead of ", expected.type());
  if (is_complex(got.dtype())) {  // as pairs of real numbers
    auto parts = [](const HostArray& array) {
      Dimensions sizes = array.shape().sizes();
      sizes.push_back(2);
      return HostArray::copy_of({real_dtype(array.dtype()), Shape(std::move(sizes))},
                                array.bytes());
    };
    return close(parts(got), parts(expected), ulps);
  }
  if (!is_floating(got.dtype())) {
    if (got == expected) return testing::AssertionSuccess();
    return testing::AssertionFailure() << got.to_string() << "\ninstead of\n"
                                       << expected.to_string();
  }
  std::vector<double> a = got.astype(DType::f64).to_vector<double>();
  std::vector<double> b = expected.astype(DType::f64).to_vector<double>();
  double largest = 0, worst = 0;
  for (double value : b)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  double unit = std::max(largest * epsilon(got.dtype()), std::numeric_limits<double>::min());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    double apart = std::abs(a[i] - b[i]) / unit;
    if (!(apart <= ulps))  // also fails if one of them is NaN
      return testing::AssertionFailure()
             << "element " << i << " is " << a[i] << " instead of " << b[i] << ": " << apart
             << " rounding errors of the largest value";
    worst = std::max(worst, apart);
  }
  return testing::AssertionSuccess() << "at most " << worst << " apart";
}

void tally(std::string_view what, int by) { Tallies::get().counts[std::string(what)] += by; }

}  // namespace meshard::conformance
