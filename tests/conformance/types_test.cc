// Inferred types match those of the compiled program, for every sample of every op.
#include "meshard/runtime/device_array.h"
#include "tests/conformance/conformance.h"
#include "tests/support/verify.h"

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
  std::vector<Part> parts;
  for (const OpSample& sample : all)
    parts.push_back({"sample " + sample.name, sample.inputs, body_of(sample)});
  Together together(std::move(parts));
  for (std::size_t s = 0; s < all.size(); ++s) {
    SCOPED_TRACE("sample " + all[s].name);
    Result<void> verified = verify(together.graph(s));
    EXPECT_TRUE(verified.ok()) << verified.error().what();
    for (const Node* node : together.graph(s).nodes()) recorded |= &node->op() == &op();
  }
  for (const Together::Group& group : together.groups()) {
    // A program over a mesh of several devices is compiled with the shapes of shards.
    if (view_of(*group.program).program.lowered().num_partitions() != 1) continue;
    const auto& compiled = view_of(*group.program).program.executable().signature().results;
    std::size_t next = 0;
    for (std::size_t s : group.parts)
      for (const Value& result : together.graph(s).results()) {
        ASSERT_LT(next, compiled.size());
        EXPECT_EQ(type_of(compiled[next++]), result.type()) << "sample " << all[s].name;
      }
    EXPECT_EQ(next, compiled.size());
  }
  std::vector<Together::Results> results = together.run();
  for (std::size_t s = 0; s < all.size(); ++s) {
    ASSERT_EQ(results[s].size(), together.graph(s).results().size());
    for (std::size_t i = 0; i < results[s].size(); ++i)
      EXPECT_EQ(results[s][i].type(), together.graph(s).results()[i].type())
          << "sample " << all[s].name << ", result " << i;
    tally("samples compiled, their types compared");
  }
  EXPECT_TRUE(recorded) << "no sample of " << op().name << " records it";
}

INSTANTIATE_TEST_SUITE_P(Ops, Types, testing::ValuesIn(every_op()), op_name);

}  // namespace
}  // namespace meshard::conformance
