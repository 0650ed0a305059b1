#include "meshard/explain/collectives/origin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "meshard/autodiff/grad.h"
#include "meshard/explain/hlo_testutil.h"
#include "meshard/graph/body.h"
#include "meshard/graph/leaf.h"
#include "meshard/graph/record.h"
#include "meshard/ops/arithmetic.h"
#include "meshard/ops/checkpoint.h"
#include "meshard/ops/composite/control_flow.h"
#include "meshard/ops/composite/matmul.h"
#include "meshard/ops/composite/operators.h"
#include "meshard/ops/exponential.h"
#include "meshard/ops/identity.h"
#include "meshard/ops/reduction.h"
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

TEST(Origin, AnOpSaysMoreThanANameOfTheCompiler) {
  HloInstruction producer =
      make_instruction(1, "convolution", f32_shape({8}), {}, "model/conv1/dot");
  producer.metadata.source_file = "/home/me/resnet.py";
  producer.metadata.source_line = 7;
  HloModule module =
      entry({producer, make_instruction(2, "custom-call", f32_shape({8}), {1}, "custom-call.71"),
             make_instruction(3, "all-gather", f32_shape({8}), {2}, "custom-call.71")});
  Found found = find(nullptr, module, 3, CollectiveKind::kAllGather);
  EXPECT_EQ(found.origin.certainty, OriginCertainty::kInferred);
  EXPECT_THAT(found.places, ElementsAre("resnet.py:7"));
  HloModule alone = entry({make_instruction(2, "custom-call", f32_shape({8}), {}, "custom-call.71"),
                           make_instruction(3, "all-gather", f32_shape({8}), {2}, "slice.4")});
  EXPECT_EQ(find(nullptr, alone, 3, CollectiveKind::kAllGather).origin.places[0].op, "slice.4");
}

TEST(Origin, ACollectiveInACalledComputationHasTheNameOfAnOpNearTheCall) {
  HloInstruction producer =
      make_instruction(1, "convolution", f32_shape({8}), {}, "model/conv1/dot");
  producer.metadata.source_file = "/home/me/resnet.py";
  producer.metadata.source_line = 7;
  HloModule caller =
      entry({producer, make_instruction(2, "async-start", f32_shape({8}), {1}, "custom-call.71")});
  HloModule called =
      entry({make_instruction(3, "parameter", f32_shape({8})),
             make_instruction(4, "all-gather", f32_shape({8}), {3}, "custom-call.71")});
  InstructionIndex outer(caller.entry()), inner(called.entry());
  CollectiveOrigin found = OriginFinder(nullptr).find(
      inner, *inner.find(4), CollectiveKind::kAllGather, {&outer, outer.find(2)});
  ASSERT_EQ(found.places.size(), 1u);
  EXPECT_EQ(found.places[0].place, "resnet.py:7");
}

TEST(Origin, ACombinedCollectiveWithoutALineHasThoseOfItsNames) {
  HloModule module =
      entry({make_instruction(1, "add", f32_shape({8}), {}, "model/norm/add"),
             make_instruction(2, "multiply", f32_shape({8}), {}, "model/multiply"),
             make_instruction(3, "all-gather", f32_shape({8}), {2}, "model/(norm/add:multiply)")});
  for (std::int64_t i : {0, 1}) {
    HloMetadata& metadata = module.computations[0].instructions[std::size_t(i)].metadata;
    metadata.source_file = "/home/me/model.py";
    metadata.source_line = 12 + i;
  }
  InstructionIndex index(module.entry());
  CollectiveOrigin found =
      OriginFinder(nullptr, &module).find(index, *index.find(3), CollectiveKind::kAllGather);
  ASSERT_EQ(found.places.size(), 2u);
  EXPECT_EQ(found.places[0].place, "model.py:12");
  EXPECT_EQ(found.places[1].place, "model.py:13");
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

TEST(ForeignCause, InTextWithoutLocationsTheCompilersInstructionsHaveNoLine) {
  const stablehlo::ModuleOpNames names{.has_collectives = true, .by_line = {{5, "all_reduce"}}};
  CollectiveOrigin near{.certainty = OriginCertainty::kInferred,
                        .places = {{.node = std::nullopt, .op = "dot", .place = "-:7"}}};
  HloInstruction one;
  EXPECT_EQ(OriginFinder::foreign_cause(one, near, true, names), CollectiveCause::kInserted);
  EXPECT_EQ(OriginFinder::foreign_cause(one, near, true), CollectiveCause::kUnknown);
  one.metadata.op_name = "call.1/dot.2";
  EXPECT_EQ(OriginFinder::foreign_cause(one, near, true, names), CollectiveCause::kInserted);
  one.metadata.op_name = "call.1/all-reduce.2";
  EXPECT_EQ(OriginFinder::foreign_cause(one, near, true, names), CollectiveCause::kUnknown);
  one.metadata = {};
  one.metadata.source_file = "-";
  EXPECT_EQ(OriginFinder::foreign_cause(one, near, true, names), CollectiveCause::kUnknown);
  one.metadata = {};
  one.operands = {1, 2};  // combined of several, of which one may be the program's
  EXPECT_EQ(OriginFinder::foreign_cause(one, near, true, names), CollectiveCause::kUnknown);
}

const char* const kFlax = "/opt/venv/lib/python3.12/site-packages/flax/linen/linear.py";

HloMetadata metadata_of(const HloModule& module, std::int64_t frame) {
  const HloFrame& one = module.frames[static_cast<std::size_t>(frame - 1)];
  return {.op_name = "jit(step)/add",
          .source_file = one.file,
          .source_line = one.line,
          .stack_frame = frame};
}

HloModule module_with(std::vector<HloFrame> frames) {
  HloModule module;
  module.frames = std::move(frames);
  return module;
}

TEST(SourcePlaces, LibraryFiles) {
  EXPECT_TRUE(is_library_file(kFlax));
  EXPECT_TRUE(is_library_file("/usr/lib/python3/dist-packages/numpy/core.py"));
  EXPECT_TRUE(is_library_file("/usr/lib/python3.12/functools.py"));
  EXPECT_TRUE(is_library_file("/home/me/jax/jax/_src/lax/lax.py"));
  EXPECT_TRUE(is_library_file("<frozen runpy>"));
  EXPECT_FALSE(is_library_file("/home/me/train.py"));
  EXPECT_FALSE(is_library_file("train.py"));
  EXPECT_FALSE(is_library_file("/home/me/lib/model.py"));
}

TEST(SourcePlaces, TheInnermostFrameOfTheUser) {
  // main calls the model, which calls flax.
  HloModule module = module_with({{"/home/me/train.py", "main", 88, 0},
                                  {"/home/me/model.py", "Block.__call__", 15, 1},
                                  {kFlax, "Dense.__call__", 287, 2}});
  SourcePlaces places(module);
  EXPECT_EQ(places.of(metadata_of(module, 3)), (SourcePlace{"model.py:15", "linear.py:287"}));
  EXPECT_EQ(places.of(metadata_of(module, 2)), (SourcePlace{"model.py:15", ""}));
}

TEST(SourcePlaces, WithoutAFrameOfTheUserTheInnermostLine) {
  HloModule module = module_with({{kFlax, "Dense.__call__", 287, 0}});
  EXPECT_EQ(SourcePlaces(module).of(metadata_of(module, 1)), (SourcePlace{"linear.py:287", ""}));
  EXPECT_EQ(SourcePlaces().of(metadata_of(module, 1)), (SourcePlace{"linear.py:287", ""}));
  EXPECT_EQ(SourcePlaces(module).of({}), SourcePlace());
}

TEST(SourcePlaces, ACycleOfFramesEnds) {
  HloModule module = module_with({{kFlax, "a", 1, 2}, {kFlax, "b", 2, 1}});
  EXPECT_EQ(SourcePlaces(module).of(metadata_of(module, 1)), (SourcePlace{"linear.py:1", ""}));
}

TEST(SourcePlaces, FilesWithOneNameAreToldApart) {
  HloModule module = module_with({{"/p/a/layers.py", "", 1, 0},
                                  {"/p/b/layers.py", "", 2, 0},
                                  {"/q/b/layers.py", "", 3, 0},
                                  {"/p/train.py", "", 4, 0}});
  SourcePlaces places(module);
  EXPECT_EQ(places.of(metadata_of(module, 1)).place, "p/a/layers.py:1");
  EXPECT_EQ(places.of(metadata_of(module, 2)).place, "p/b/layers.py:2");
  EXPECT_EQ(places.of(metadata_of(module, 3)).place, "q/b/layers.py:3");
  EXPECT_EQ(places.of(metadata_of(module, 4)).place, "train.py:4");
}

using Tensors = std::vector<Tensor>;

// `op phase` for each node, with the nodes of bodies after their node, indented by `.`.
void list(const Graph& graph, const ProgramPhases& phases, const std::string& before,
          std::vector<std::string>& out) {
  for (const Node* node : graph.nodes()) {
    std::string path = before + std::to_string(graph.number(node));
    std::string dots(static_cast<std::size_t>(std::count(path.begin(), path.end(), '.')) / 2, '.');
    out.push_back(dots + std::string(node->op().name) + " " +
                  std::string(to_string(phases.of_op("jit_main/n" + path))));
    std::span<const Body> bodies = bodies_of(*node);
    for (std::size_t b = 0; b < bodies.size(); ++b)
      list(bodies[b].graph(), phases, path + "." + std::to_string(b) + ".", out);
  }
}

// The phases of the ops of `step`, a function of four matrices.
template <class Function>
std::vector<std::string> phases_of(const Function& step) {
  internal::TraceScope scope;
  Tensors parameters;
  std::vector<Value> leaves, results;
  for (int i = 0; i < 4; ++i) {
    parameters.push_back(make_parameter({DType::f32, {4, 4}}, std::nullopt, {"step.cc", "f", 1}));
    leaves.push_back(parameters.back().value());
  }
  for (const Tensor& result : step(parameters)) results.push_back(result.value());
  Graph graph = Graph::build(leaves, results, scope.trace());
  std::vector<std::string> out;
  list(graph, ProgramPhases(graph), "", out);
  return out;
}

int count(const std::vector<std::string>& all, std::string_view what) {
  return static_cast<int>(std::count(all.begin(), all.end(), what));
}
int count_ending(const std::vector<std::string>& all, std::string_view what) {
  return static_cast<int>(std::count_if(all.begin(), all.end(), [&](const std::string& each) {
    return std::string_view(each).ends_with(what);
  }));
}

TEST(ProgramPhases, OfATrainingStep) {
  std::vector<std::string> found = phases_of([](const Tensors& p) {
    auto loss = [&](const Tensor& w) { return sum(tanh(matmul(p[1], w))); };
    auto [value, gradient] = value_and_grad(loss)(p[0]);
    return Tensors{p[0] - gradient * 0.5f, value, exp(p[2])};
  });
  EXPECT_EQ(count(found, "tanh forward"), 1);
  EXPECT_EQ(count(found, "sum forward"), 1) << "nothing of the derivative needs the loss";
  EXPECT_EQ(count(found, "dot_general forward"), 1);
  EXPECT_EQ(count(found, "dot_general backward"), 1);
  EXPECT_EQ(count(found, "subtract optimizer"), 1);
  EXPECT_EQ(count(found, "exp "), 1) << "of no phase";
}

TEST(ProgramPhases, AreUnknownWithoutDerivatives) {
  std::vector<std::string> found =
      phases_of([](const Tensors& p) { return Tensors{tanh(matmul(p[0], p[1]))}; });
  EXPECT_EQ(count(found, "tanh "), 1);
  EXPECT_EQ(count(found, "dot_general "), 1);
  EXPECT_EQ(found.size(), 2);
}

// The loop of the forward pass is recorded again with what the backward pass needs.
TEST(ProgramPhases, OfTheBodiesOfLoops) {
  std::vector<std::string> found = phases_of([](const Tensors& p) {
    auto loss = [&](const Tensor& w) {
      return sum(fori_loop(
          0, 3, [&](const Tensor&, const Tensor& x) { return sin(matmul(x, w)); }, p[1]));
    };
    return Tensors{p[0] - grad(loss)(p[0])};
  });
  EXPECT_EQ(count(found, "scan forward"), 1);
  EXPECT_EQ(count(found, "scan backward"), 1);
  EXPECT_EQ(count(found, ".sin forward"), 1);
  EXPECT_EQ(count(found, ".dot_general forward"), 1);
  EXPECT_EQ(count(found, ".dot_general backward"), 2) << "the gradients of x and w";
  EXPECT_EQ(count(found, "subtract optimizer"), 1);
}

// What is computed again for the backward pass belongs to it.
TEST(ProgramPhases, OfCheckpoints) {
  std::vector<std::string> found = phases_of([](const Tensors& p) {
    auto block = checkpoint([](const Tensor& w, const Tensor& x) { return sin(matmul(x, w)); });
    auto loss = [&](const Tensor& w) { return sum(block(w, p[1])); };
    auto [value, gradient] = value_and_grad(loss)(p[0]);
    return Tensors{p[0] - gradient, value};
  });
  EXPECT_EQ(count_ending(found, "sin forward"), 1);
  EXPECT_EQ(count_ending(found, "dot_general forward"), 1);
  EXPECT_EQ(count_ending(found, "dot_general backward"), 2) << "once again, and the gradient";
}

// Accumulated gradients: the loop is in no phase, its ops are.
TEST(ProgramPhases, OfALoopThatTakesDerivatives) {
  std::vector<std::string> found = phases_of([](const Tensors& p) {
    auto loss = [&](const Tensor& w) { return sum(tanh(matmul(p[1], w))); };
    Tensor total = fori_loop(
        0, 3, [&](const Tensor&, const Tensor& sum) { return sum + grad(loss)(p[0]); }, p[2]);
    return Tensors{p[0] - total};
  });
  EXPECT_EQ(count(found, "scan "), 1);
  EXPECT_EQ(count(found, ".tanh forward"), 1);
  EXPECT_EQ(count(found, ".dot_general forward"), 1);
  EXPECT_EQ(count(found, ".dot_general backward"), 1);
  EXPECT_EQ(count(found, ".add optimizer"), 1);
  EXPECT_EQ(count(found, "subtract optimizer"), 1);
}

TEST(ProgramPhases, OfModulesOfJaxAreInTheNames) {
  ProgramPhases phases;
  EXPECT_EQ(phases.of_op("jit(step)/transpose(jvp(net))/dot_general"), ProgramPhase::kBackward);
  EXPECT_EQ(phases.of_op("jit(step)/jvp(net)/dot_general"), ProgramPhase::kForward);
  EXPECT_EQ(phases.of_op("jit(step)/sub"), ProgramPhase::kUnknown);
}

}  // namespace

}  // namespace meshard
