#include <gtest/gtest.h>

#include "meshard/graph/graph_text.h"
#include "meshard/graph/ops_testutil.h"

namespace meshard {
namespace {

using test::find_test_op;

constexpr std::string_view kProgram =
    "graph(%0: f32[2], %1: f32[2] @ Sharding(mesh<x=2>, P(\"x\"))) {\n"
    "  %2 = plus(%0, %1) : f32[2]\n"
    "  %3 = scale(%2) {factor=0.5, marks=[1, -2]} : f32[2]\n"
    "  %4 = pair(%3) : f32[2], bool[]\n"
    "  %5 = plus(%4#0, %3) : f32[2]\n"
    "  return %5, %4#1, %0\n"
    "}\n";

TEST(Parse, PrintParsePrintIsStable) {
  Graph graph = parse_graph(kProgram, find_test_op).value();
  EXPECT_EQ(to_string(graph), kProgram);
  EXPECT_EQ(graph.parameters().size(), 2u);
  EXPECT_EQ(graph.results().size(), 3u);
}

TEST(Parse, ReadsOverSourceLines) {
  std::string text(kProgram);
  text.insert(text.find(" : f32[2]\n") + 9, "  // train.cc:42");
  EXPECT_EQ(to_string(parse_graph(text, find_test_op).value()), kProgram);
}

struct Malformed {
  const char* before;
  const char* after;
  const char* message;
};

TEST(Parse, SaysWhichLineIsWrong) {
  for (const Malformed& each : {
           Malformed{"plus(%0, %1)", "minus(%0, %1)", "line 2: unknown op 'minus'"},
           Malformed{"plus(%0, %1)", "plus(%0, %9)", "line 2: unknown value %9"},
           Malformed{"factor=0.5", "factor=half", "'half' is not a number"},
           Malformed{"factor=0.5, ", "", "attribute factor is missing"},
           Malformed{"factor=0.5", "factor=0.5, size=3", "unknown attribute size"},
           Malformed{" {factor=0.5, marks=[1, -2]}", "", "needs attributes"},
           Malformed{"plus(%0, %1) : f32[2]", "plus(%0, %1) : f32[3]",
                     "the inferred type is f32[2]"},
           Malformed{"%4#1", "%4#2", "no such result"},
           Malformed{"  return %5, %4#1, %0\n", "", "missing return"},
           Malformed{"graph(", "grph(", "line 1"},
       }) {
    std::string text(kProgram);
    text.replace(text.find(each.before), std::string_view(each.before).size(), each.after);
    Result<Graph> graph = parse_graph(text, find_test_op);
    ASSERT_FALSE(graph.ok()) << text;
    EXPECT_NE(graph.error().to_string().find(each.message), std::string::npos)
        << graph.error().to_string();
  }
}

TEST(Parse, TruncatedTextIsAnErrorAndNoCrash) {
  for (std::size_t length = 0; length + 3 < kProgram.size(); ++length) {
    Result<Graph> graph = parse_graph(kProgram.substr(0, length), find_test_op);
    if (graph.ok()) {
      EXPECT_GT(length, kProgram.find("return")) << "length " << length;
    }
  }
}

}  // namespace
}  // namespace meshard
