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
#include "meshard/runtime/lazy_evaluator.h"

namespace meshard::conformance {

/// Fixture that skips the test, with a message, if there is no plugin.
class OnDevices : public testing::Test {
 protected:
  void SetUp() override;
};

/// One test for each op of the op table.
class EachOp : public testing::TestWithParam<const OpDef*> {
 protected:
  void SetUp() override;
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

/// The program that `body` records for parameters with the types of `inputs`. `shardings`: one for
/// each parameter, or none.
Graph trace(std::span<const HostArray> inputs, const Body& body,
            std::span<const Sharding> shardings = {});
std::shared_ptr<CompiledProgram> compile(const Graph& graph);
/// Runs the program. Returns the results in host memory.
std::vector<HostArray> run(CompiledProgram& program, std::span<const HostArray> inputs);

/// The collectives of the optimized module.
std::vector<CollectiveKind> collectives(const CompiledProgram& program);

/// Whether arrays are equal up to `ulps` rounding errors of the largest value. Infinities and NaN
/// must be at the same positions. With `ulps` 0, and for integers and bools, the arrays must be
/// equal. The two zeros are equal.
testing::AssertionResult close(const HostArray& got, const HostArray& expected, double ulps);

/// Adds to a count that is printed after all tests.
void tally(std::string_view what, int by = 1);

}  // namespace meshard::conformance
