#include "meshard/explain/collectives/origin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/explain/hlo_testutil.h"
#include "meshard/graph/leaf.h"
#include "meshard/ops/exponential.h"
#include "meshard/ops/identity.h"
#include "meshard/ops/trigonometric.h"

namespace meshard {
namespace {

using testing::ElementsAre;

TEST(NodeInOpName, TheLastPartCounts) {
  EXPECT_EQ(node_in_op_name("n17"), 17u);
  EXPECT_EQ(node_in_op_name("jit_main/n17"), 17u);
  EXPECT_EQ(node_in_op_name("call.1/while/n0"), 0u);
  EXPECT_EQ(node_in_op_name("jit_main/while/n17.0.3"), 17u);
  EXPECT_EQ(node_path_in_op_name("jit_main/while/n17.0.3"), "17.0.3");
}

TEST(NodeInOpName, OtherNamesAreNone) {
  for (const char* name :
       {"", "n", "add.1", "n17x", "n1.x", "n17/add", "m17", "n-1", "n 1", "n99999999999"})
    EXPECT_EQ(node_in_op_name(name), std::nullopt) << name;
}

TEST(NamesInOpName, JoinedNamesAreSeparated) {
  EXPECT_THAT(names_in_op_name("jit(f)/(n3:n4)"), ElementsAre("jit(f)/n3", "jit(f)/n4"));
  EXPECT_THAT(names_in_op_name("(n3:a/n4:n5.0.1)"), ElementsAre("n3", "a/n4", "n5.0.1"));
  EXPECT_THAT(names_in_op_name("f/(jvp(a:b)/x:y)"), ElementsAre("f/jvp(a:b)/x", "f/y"));
  for (const char* one : {"n3", "jit(f)/n3", "jit(f)", "a/jvp(f:g)", "n3)", ")"})
    EXPECT_THAT(names_in_op_name(one), ElementsAre(one));
  EXPECT_TRUE(names_in_op_name("").empty());
}

// %0 = x, %1 = exp(x), %2 = tanh(%1), %3 = mark(%2), each recorded on its own line.
struct Recorded {
  std::uint32_t first_line;
  Graph graph;

  Recorded() {
    Mesh mesh({{"data", 2}, {"model", 4}});
    Tensor x = from_host(std::vector<float>(8, 1.0f), Shape{8});
    first_line = SourceLocation::current().line + 1;
    Tensor a = exp(x);
    Tensor b = tanh(a);
    Tensor c = sharding_constraint(b, Sharding(mesh, P("model")));
    Value results[] = {c.value()};
    graph = Graph::build({}, results, 0);
  }
  // The source line of node `number`.
  std::string line(std::uint32_t number) const {
    return "origin_test.cc:" + std::to_string(first_line + number - 1);
  }
};

struct Found {
  CollectiveOrigin origin;
  CollectiveCause cause;
  std::vector<std::string> places;
};

// The origin and cause of the entry's instruction with this id.
Found find(const Graph* graph, const HloModule& module, std::int64_t id,
           CollectiveKind kind = CollectiveKind::kAllReduce) {
  InstructionIndex index(module.entry());
  OriginFinder finder(graph);
  Found found{finder.find(index, *index.find(id), kind), {}, {}};
  found.cause = finder.cause(found.origin, kind);
  for (const OriginPlace& place : found.origin.places) found.places.push_back(place.place);
  return found;
}

HloModule entry(std::vector<HloInstruction> instructions) {
  return make_module({std::move(instructions)});
}

TEST(Origin, TheInstructionNamesItsOp) {
  Recorded recorded;
  HloModule module = entry({make_instruction(1, "parameter", f32_shape({8}), {}, "n0"),
                            make_instruction(2, "all-reduce", f32_shape({8}), {1}, "main/n1")});
  Found found = find(&recorded.graph, module, 2);
  EXPECT_EQ(found.origin.certainty, OriginCertainty::kExact);
  EXPECT_THAT(found.places, ElementsAre(recorded.line(1)));
  EXPECT_EQ(found.origin.places[0].op, "exp");
  EXPECT_EQ(found.origin.places[0].node, 1u);
  EXPECT_EQ(found.cause, CollectiveCause::kInserted);
}

TEST(Origin, JoinedNamesAreThoseOfAllOps) {
  Recorded recorded;
  HloModule module =
      entry({make_instruction(1, "parameter", f32_shape({8}), {}, "n0"),
             make_instruction(2, "all-reduce", f32_shape({8}), {1}, "main/(n1:n2)")});
  Found found = find(&recorded.graph, module, 2);
  EXPECT_EQ(found.origin.certainty, OriginCertainty::kMerged);
  EXPECT_THAT(found.places, ElementsAre(recorded.line(1), recorded.line(2)));
  Found without = find(nullptr, module, 2);
  ASSERT_EQ(without.origin.places.size(), 2u);
  EXPECT_EQ(without.origin.places[1].op, "main/n2");
}

TEST(Origin, TheNearestProducerThenTheNearestUser) {
  Recorded recorded;
  HloModule both = entry({make_instruction(1, "exponential", f32_shape({8}), {}, "n1"),
                          make_instruction(2, "copy", f32_shape({8}), {1}),
                          make_instruction(3, "all-gather", f32_shape({8}), {2}),
                          make_instruction(4, "tanh", f32_shape({8}), {3}, "n2")});
  Found up = find(&recorded.graph, both, 3, CollectiveKind::kAllGather);
  EXPECT_EQ(up.origin.certainty, OriginCertainty::kInferred);
  EXPECT_THAT(up.places, ElementsAre(recorded.line(1)));
  EXPECT_EQ(up.cause, CollectiveCause::kUnknown);

  HloModule user = entry({make_instruction(1, "parameter", f32_shape({8}), {}, "Arg_0.1"),
                          make_instruction(3, "all-gather", f32_shape({8}), {1}),
                          make_instruction(4, "bitcast", f32_shape({8}), {3}),
                          make_instruction(5, "tanh", f32_shape({8}), {4}, "n2")});
  Found down = find(&recorded.graph, user, 3, CollectiveKind::kAllGather);
  EXPECT_EQ(down.origin.certainty, OriginCertainty::kInferred);
  EXPECT_THAT(down.places, ElementsAre(recorded.line(2)));
}

TEST(Origin, AnOpSaysMoreThanAnArgument) {
  Recorded recorded;
  HloModule used = entry({make_instruction(1, "parameter", f32_shape({8}), {}, "n0"),
                          make_instruction(2, "all-gather", f32_shape({8}), {1}, "n0"),
                          make_instruction(3, "tanh", f32_shape({8}), {2}, "n2")});
  EXPECT_THAT(find(&recorded.graph, used, 2, CollectiveKind::kAllGather).places,
              ElementsAre(recorded.line(2)));
  HloModule alone = entry({make_instruction(1, "parameter", f32_shape({8}), {}, "n0"),
                           make_instruction(2, "all-gather", f32_shape({8}), {1}, "n0")});
  Found found = find(&recorded.graph, alone, 2, CollectiveKind::kAllGather);
  EXPECT_EQ(found.origin.certainty, OriginCertainty::kExact);
  EXPECT_EQ(found.origin.places[0].op, "argument 0");
}

TEST(Origin, NothingLeadsAnywhere) {
  Recorded recorded;
  HloModule module = entry({make_instruction(1, "parameter", f32_shape({8})),
                            make_instruction(2, "all-reduce", f32_shape({8}), {1}, "n77")});
  Found found = find(&recorded.graph, module, 2);
  EXPECT_EQ(found.origin.certainty, OriginCertainty::kUnknown);
  EXPECT_TRUE(found.places.empty());
  EXPECT_EQ(found.cause, CollectiveCause::kUnknown);
  EXPECT_EQ(found.origin.to_string(), "an unknown place");
}

HloInstruction combined(std::vector<std::int64_t> operands) {
  return make_instruction(5, "all-reduce", tuple_shape({f32_shape({8}), f32_shape({8})}),
                          std::move(operands), "n1");
}

TEST(Origin, PartsOfACombinedCollectiveNameTheOthers) {
  Recorded recorded;
  // Both operands come from op 2, but the parts belong to ops 1 and 3.
  HloModule module = entry({make_instruction(1, "tanh", f32_shape({8}), {}, "n2"), combined({1, 1}),
                            make_instruction(6, "get-tuple-element", f32_shape({8}), {5}, "n1"),
                            make_instruction(7, "get-tuple-element", f32_shape({8}), {5}, "n3")});
  Found found = find(&recorded.graph, module, 5);
  EXPECT_EQ(found.origin.certainty, OriginCertainty::kMerged);
  EXPECT_THAT(found.places, ElementsAre(recorded.line(1), recorded.line(3)));
  EXPECT_EQ(found.cause, CollectiveCause::kUnknown);  // one inserted, one requested
}

TEST(Origin, ElseTheProducersOfItsOperandsDo) {
  Recorded recorded;
  HloModule module = entry({make_instruction(1, "exponential", f32_shape({8}), {}, "n1"),
                            make_instruction(2, "tanh", f32_shape({8}), {}, "n2"),
                            make_instruction(3, "copy", f32_shape({8}), {2}), combined({1, 3})});
  Found found = find(&recorded.graph, module, 5);
  EXPECT_EQ(found.origin.certainty, OriginCertainty::kMerged);
  EXPECT_THAT(found.places, ElementsAre(recorded.line(1), recorded.line(2)));
  EXPECT_EQ(found.cause, CollectiveCause::kInserted);
}

TEST(Origin, AnAllToAllOfSeveralPiecesIsOneOp) {
  Recorded recorded;
  HloModule module =
      entry({make_instruction(1, "exponential", f32_shape({8}), {}, "n2"), combined({1, 1})});
  Found found = find(&recorded.graph, module, 5, CollectiveKind::kAllToAll);
  EXPECT_EQ(found.origin.certainty, OriginCertainty::kExact);
  EXPECT_THAT(found.places, ElementsAre(recorded.line(1)));
}

TEST(Origin, AMarkIsAskedForAndWhatLeadsToOneIsDoubtful) {
  Recorded recorded;
  HloModule mark = entry({make_instruction(1, "all-to-all", f32_shape({8}), {}, "n3")});
  EXPECT_EQ(find(&recorded.graph, mark, 1, CollectiveKind::kAllToAll).cause,
            CollectiveCause::kAsked);
  HloModule before = entry({make_instruction(1, "all-gather", f32_shape({8}), {}, "n2")});
  EXPECT_EQ(find(&recorded.graph, before, 1, CollectiveKind::kAllGather).cause,
            CollectiveCause::kUnknown);
  // An all-reduce sums partial results of the op itself, with or without a mark.
  EXPECT_EQ(find(&recorded.graph, before, 1, CollectiveKind::kAllReduce).cause,
            CollectiveCause::kInserted);
}

TEST(Origin, AModuleFromElsewhereTellsItsOwnLines) {
  HloModule module = entry({make_instruction(1, "all-reduce", f32_shape({8}), {}, "jit(f)/dot")});
  module.computations[0].instructions[0].metadata.source_file = "/home/me/train.py";
  module.computations[0].instructions[0].metadata.source_line = 12;
  Found found = find(nullptr, module, 1);
  EXPECT_EQ(found.origin.to_string(), "train.py:12 (exact)");
  EXPECT_EQ(found.origin.places[0].op, "jit(f)/dot");
  EXPECT_EQ(found.cause, CollectiveCause::kUnknown);
}

TEST(InstructionIndex, OperandsAndUsers) {
  HloModule module = entry({make_instruction(10, "parameter", f32_shape({})),
                            make_instruction(20, "add", f32_shape({}), {10, 10}),
                            make_instruction(30, "negate", f32_shape({}), {10, 99})});
  InstructionIndex index(module.entry());
  EXPECT_EQ(index.find(99), nullptr);
  ASSERT_EQ(index.operands(*index.find(30)).size(), 1u);
  EXPECT_EQ(index.operands(*index.find(30))[0]->id, 10);
  EXPECT_EQ(index.users(*index.find(10)).size(), 3u);  // the add uses it twice
  EXPECT_TRUE(index.users(*index.find(30)).empty());
}

TEST(ForeignCause, ThePartitionersMarkDecides) {
  auto cause_of = [](const char* attribute, const char* op, OriginCertainty certainty,
                     bool calls_collectives) {
    HloInstruction one;
    if (*attribute) one.frontend_attributes = {{attribute, "true"}};
    CollectiveOrigin origin{.certainty = certainty,
                            .places = {{.node = std::nullopt, .op = op, .place = "a.py:1"}}};
    return OriginFinder::foreign_cause(one, origin, calls_collectives);
  };
  constexpr auto kExact = OriginCertainty::kExact, kMerged = OriginCertainty::kMerged,
                 kInferred = OriginCertainty::kInferred;
  constexpr auto kInserted = CollectiveCause::kInserted, kAsked = CollectiveCause::kAsked;
  EXPECT_EQ(cause_of("is_spmd_generated", "jit(f)/dot_general", kExact, true), kInserted);
  EXPECT_EQ(cause_of("from-cross-replica-sharding", "jit(f)/psum", kExact, true), kInserted);
  EXPECT_EQ(cause_of("", "jit(f)/shard_map/psum_invariant", kExact, true), kAsked);
  EXPECT_EQ(cause_of("", "jit(f)/shard_map/ppermute", kMerged, true), kAsked);
  EXPECT_EQ(cause_of("", "jit(f)/dot_general", kMerged, true), kInserted);
  EXPECT_EQ(cause_of("", "jit(f)/shard_map/psum", kInferred, true), CollectiveCause::kUnknown);
  EXPECT_EQ(cause_of("", "jit(f)/dot_general", kInferred, false), kInserted);
}

}  // namespace
}  // namespace meshard
