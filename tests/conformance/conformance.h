// What the conformance suites share: the samples of an op, traced and run on the plugin.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/explain/collective.h"
#include "meshard/graph/evaluator.h"
#include "meshard/graph/op_def.h"
#include "meshard/ops/op_table.h"
#include "meshard/runtime/lazy_evaluator.h"

namespace meshard::conformance {

/// Skips, and says so, where there is no plugin.
class OnDevices : public testing::Test {
 protected:
  void SetUp() override;
};

/// One test for each op of the table.
class EachOp : public testing::TestWithParam<const OpDef*> {
 protected:
  void SetUp() override;
  const OpDef& op() const { return *GetParam(); }
  /// The op's samples; MESHARD_TEST_SEED gives other values.
  std::vector<OpSample> samples() const;
};

/// All ops, for INSTANTIATE_TEST_SUITE_P, and what a test of one is called.
std::vector<const OpDef*> every_op();
std::string op_name(const testing::TestParamInfo<const OpDef*>& info);

/// A function of tensors to record.
using Body = std::function<std::vector<Tensor>(std::span<const Tensor>)>;
Body body_of(const OpSample& sample);

/// The program that `body` records for parameters of the types of `inputs`. `shardings`: one for
/// each, or none at all.
Graph trace(std::span<const HostArray> inputs, const Body& body,
            std::span<const Sharding> shardings = {});
std::shared_ptr<CompiledProgram> compile(const Graph& graph);
/// The results, in host memory.
std::vector<HostArray> run(CompiledProgram& program, std::span<const HostArray> inputs);

/// What the optimized module does to move data between devices.
std::vector<CollectiveKind> collectives(const CompiledProgram& program);

/// As many rounding errors of the largest value as `ulps` apart at most, infinities and NaN at the
/// same places; 0, integers and bools: equal. (Both zeros count as equal.)
testing::AssertionResult close(const HostArray& got, const HostArray& expected, double ulps);

/// Adds to a count that is printed when all tests are done.
void tally(std::string_view what, int by = 1);

}  // namespace meshard::conformance
