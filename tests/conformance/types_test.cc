// Inferred types match those of the compiled program, for every sample of every op.
#include "meshard/graph/verify.h"
#include "meshard/runtime/device_array.h"
#include "tests/conformance/conformance.h"

namespace meshard::conformance {
namespace {

using Types = EachOp;

TensorType type_of(const pjrt::ArrayType& array) {
  Dimensions sizes;
  for (std::int64_t size : array.dimensions) sizes.push_back(size);
  return {dtype_of_element(array.element).value(), Shape(std::move(sizes))};
}

TEST_P(Types, AreWhatTheCompilerGives) {
  std::vector<OpSample> all = samples();
  ASSERT_FALSE(all.empty());
  bool recorded = false;
  for (const OpSample& sample : all) {
    SCOPED_TRACE("sample " + sample.name);
    Graph graph = trace(sample.inputs, body_of(sample));
    Result<void> verified = verify(graph);
    EXPECT_TRUE(verified.ok()) << verified.error().what();
    for (const Node* node : graph.nodes()) recorded |= &node->op() == &op();
    std::shared_ptr<CompiledProgram> program = compile(graph);
    const pjrt::ExecutableSignature& signature = view_of(*program).program.executable().signature();
    // A sample over a mesh of several devices is compiled with the shapes of shards.
    bool whole = view_of(*program).program.lowered().num_partitions() == 1;
    ASSERT_EQ(signature.results.size(), graph.results().size());
    for (std::size_t i = 0; whole && i < graph.results().size(); ++i)
      EXPECT_EQ(type_of(signature.results[i]), graph.results()[i].type()) << "result " << i;
    std::vector<HostArray> results = run(*program, sample.inputs);
    for (std::size_t i = 0; i < results.size(); ++i)
      EXPECT_EQ(results[i].type(), graph.results()[i].type());
    tally("samples compiled, their types compared");
  }
  EXPECT_TRUE(recorded) << "no sample of " << op().name << " records it";
}

INSTANTIATE_TEST_SUITE_P(Ops, Types, testing::ValuesIn(every_op()), op_name);

}  // namespace
}  // namespace meshard::conformance
