// Printing and parsing a program gives the same program, for every sample of every op.
#include "meshard/graph/graph_text.h"
#include "meshard/lowering/lower.h"
#include "tests/conformance/conformance.h"

namespace meshard::conformance {
namespace {

using RoundTrip = EachOp;

std::string module_text(const Graph& graph) {
  Program program;
  program.graph = graph;
  return lower(program).text;
}

TEST_P(RoundTrip, PrintedAndRead) {
  for (const OpSample& sample : samples()) {
    SCOPED_TRACE("sample " + sample.name);
    Graph graph = trace(sample.inputs, body_of(sample));
    std::string text = to_string(graph);
    Result<Graph> read = parse_graph(text, find_op);
    ASSERT_TRUE(read.ok()) << read.error().what() << "\n" << text;
    EXPECT_EQ(to_string(*read), text);
    EXPECT_EQ(read->fingerprint(), graph.fingerprint()) << text;
    EXPECT_EQ(module_text(*read), module_text(graph));
    tally("programs printed and read");
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, RoundTrip, testing::ValuesIn(every_op()), op_name);

}  // namespace
}  // namespace meshard::conformance
