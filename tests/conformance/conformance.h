// Shared by the conformance suites: traces the samples of an op and runs them on the plugin.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/explain/collectives/collective.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/op_def.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/runtime/loaded_program.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/sharding/sharding.h"
#include "tests/support/op_samples/op_samples.h"

namespace meshard::conformance {

/// Fixture of tests that one device is enough for.
class OnDevices : public OnPlugin {
 protected:
  OnDevices() : OnPlugin(1) {}
};

/// One test for each op of the op table.
class EachOp : public OnDevices, public testing::WithParamInterface<const OpDef*> {
 protected:
  const OpDef& op() const { return *GetParam(); }
  /// The op's samples. MESHARD_TEST_SEED selects other values.
  std::vector<OpSample> samples() const;
};

/// All ops, for INSTANTIATE_TEST_SUITE_P, and the name of each op's test.
std::vector<const OpDef*> every_op();
std::string op_name(const testing::TestParamInfo<const OpDef*>& info);

/// A function of tensors to record.
using Body = std::function<std::vector<Tensor>(std::span<const Tensor>)>;
Body body_of(const OpSample& sample);
/// The cotangents of the f64 inputs. The cotangent of the result is one more input, the last.
Body gradient_of(const OpSample& sample);
/// Whether the sample has floating-point or complex operands, and all of them are f64.
bool all_f64(const OpSample& sample);

/// The inputs, of which those of f64 are moved by `step` along `directions`, one for each of them.
std::vector<HostArray> moved(std::span<const HostArray> inputs,
                             const std::vector<HostArray>& directions, double step);
/// The step of central differences in f64: rounding and curvature contribute about equally.
constexpr double kDifferenceStep = 1e-6;

/// The program that `body` records for parameters with the types of `inputs`. `shardings`: one for
/// each parameter, or none.
Graph trace(std::span<const HostArray> inputs, const Body& body,
            std::span<const Sharding> shardings = {});
std::shared_ptr<CompiledProgram> compile(const Graph& graph);
/// Runs the program. Returns the results in host memory.
std::vector<HostArray> run(CompiledProgram& program, std::span<const HostArray> inputs);

/// A function and what it is called with.
struct Part {
  std::string name;  // for messages
  std::vector<HostArray> inputs;
  Body body;
  std::vector<Sharding> shardings = {};  // of the inputs, or none
};

/// Functions that are compiled as one program for each set of devices, because most of the time
/// that the compiler needs for a small program does not depend on its size.
class Together {
 public:
  /// @error the compiler's, with the name of the part, if it does not compile alone either
  explicit Together(std::vector<Part> parts);

  using Inputs = std::vector<HostArray>;
  using Results = std::vector<HostArray>;
  /// The results of each part, for its own inputs or others of the same types.
  std::vector<Results> run() const;
  std::vector<Results> run(std::span<const Inputs> inputs) const;

  /// A program and the parts that it consists of, in the order of its parameters and results.
  struct Group {
    std::vector<std::size_t> parts;
    std::shared_ptr<CompiledProgram> program;
  };
  std::span<const Group> groups() const { return groups_; }
  const Graph& graph(std::size_t part) const { return graphs_[part]; }

 private:
  std::vector<Part> parts_;
  std::vector<Graph> graphs_;
  std::vector<Group> groups_;
};

/// The collectives of the optimized module.
std::vector<CollectiveKind> collectives(const CompiledProgram& program);

/// Whether arrays are equal up to `ulps` rounding errors of the largest value. Infinities and NaN
/// must be at the same positions. With `ulps` 0, and for integers and bools, the arrays must be
/// equal. The two zeros are equal.
testing::AssertionResult close(const HostArray& got, const HostArray& expected, double ulps);

/// Adds to a count that is printed after all tests.
void tally(std::string_view what, int by = 1);

}  // namespace meshard::conformance
