#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "meshard/base/whole_file.h"
#include "meshard/hlo/hlo_builder_testutil.h"
#include "meshard/partitioned/chain_check_testutil.h"
#include "meshard/partitioned/partition.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using testing::HasSubstr;

RewriteOptions on(int partitions) { return {.partitions = partitions, .ranks = {}}; }

std::map<std::string, int> opcodes(const HloModule& module) {
  std::map<std::string, int> count;
  for (const auto& computation : module.computations)
    for (const auto& each : computation.instructions)
      ++count[each.opcode == "custom-call" ? each.custom_call_target : each.opcode];
  return count;
}

// Every call of a collective, in the order of the text.
std::vector<HloInstruction> calls_of(const HloModule& module) {
  std::vector<HloInstruction> calls;
  for (const auto& computation : module.computations)
    for (const auto& each : computation.instructions)
      if (each.custom_call_target == kCollectiveTarget) calls.push_back(each);
  return calls;
}

// Names and ids are unique, operands have the types that they had: what XLA demands of a module.
void check_valid(const HloModule& module) {
  std::set<std::string> names;
  std::set<std::int64_t> ids;
  for (const auto& computation : module.computations)
    for (const auto& each : computation.instructions) {
      EXPECT_TRUE(names.insert(each.name).second) << each.name;
      EXPECT_TRUE(ids.insert(each.id).second) << each.id;
      if (each.opcode != "get-tuple-element") continue;
      const auto& tuple = computation.find(each.operands.at(0))->shape.tuple;
      ASSERT_LT(static_cast<std::size_t>(each.tuple_index), tuple.size());
      EXPECT_EQ(each.shape.to_string(),
                tuple[static_cast<std::size_t>(each.tuple_index)].to_string());
    }
}

TEST(RewriteCollectives, RecordedModules) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(MESHARD_GOLDEN "/partitioned")) {
    if (entry.path().extension() != ".bin") continue;
    ++files;
    SCOPED_TRACE(entry.path().filename().string());
    int devices = std::stoi(entry.path().stem().stem().extension().string().substr(1));
    std::string bytes = read_whole_file(entry.path().string()).value();
    RewrittenModule rewritten = rewrite_collectives(bytes, on(devices)).value();
    EXPECT_TRUE(rewritten.communicates);
    HloModule before = read_module(bytes), after = read_module(rewritten.hlo);
    check_valid(after);
    EXPECT_EQ(ChainCheck(after).problem(), "");
    for (const auto& [opcode, count] : opcodes(after)) {
      EXPECT_FALSE(opcode.starts_with("all-") || opcode.starts_with("collective-") ||
                   opcode.starts_with("reduce-scatter") || opcode == "partition-id")
          << opcode;
      if (opcode == "while" || opcode == "conditional" || opcode == "dot" || opcode == "tanh") {
        EXPECT_EQ(count, opcodes(before)[opcode]) << opcode;
      }
    }
    // One more parameter and result; no trace of the mesh.
    EXPECT_EQ(after.parameters.size(), before.parameters.size() + 1);
    EXPECT_EQ(after.parameters.back().to_string(), "s32[]");
    EXPECT_EQ(after.result.tuple.back().to_string(), "s32[]");
    EXPECT_EQ(after.entry().find(after.entry().root)->shape.to_string(), after.result.to_string());
    EXPECT_TRUE(after.device_assignment.empty());
    EXPECT_FALSE(after.output_sharding);
    EXPECT_EQ(after.aliases.size(), before.aliases.size());
    for (const auto& computation : after.computations)
      for (const auto& each : computation.instructions) EXPECT_FALSE(each.sharding) << each.name;
  }
  EXPECT_GE(files, 9);
}

// Three all-reduces of one kind and group are one call with three operands.
TEST(RewriteCollectives, DataParallelSyncsOnce) {
  std::string bytes =
      read_whole_file(MESHARD_GOLDEN "/partitioned/data_parallel.4.hlo.bin").value();
  RewrittenModule rewritten = rewrite_collectives(bytes, on(4)).value();
  EXPECT_EQ(rewritten.calls, 1);
  HloModule module = read_module(rewritten.hlo);
  auto calls = calls_of(module);
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].shape.to_string(), "(f32[8,4], f32[4], f32[], s32[])");
  EXPECT_THAT(calls[0].backend_config, HasSubstr("ranks = array<i32: 0, 1, 2, 3>"));
  ASSERT_EQ(module.aliases.size(), 2u);
  EXPECT_EQ(module.aliases[1].output_index, (Ids{1}));
}

ModuleBytes with_one(InstructionBytes collective, const std::string& reduction = "add") {
  ModuleBytes module;
  module.reduction(1, reduction);
  module.add(5, {parameter_bytes(50, 0, f32_bytes()), std::move(collective)}, 51);
  return module;
}

InstructionBytes all_reduce(std::int64_t id = 51, const Ids& operands = {50}) {
  return InstructionBytes(id, "all-reduce", f32_bytes(), operands).calls({1});
}

std::string config_of(const ModuleBytes& module, int partitions = 4) {
  auto rewritten = rewrite_collectives(module.bytes(), on(partitions)).value();
  HloModule after = read_module(rewritten.hlo);
  EXPECT_EQ(ChainCheck(after).problem(), "");
  auto calls = calls_of(after);
  return calls.empty() ? "" : calls.at(0).backend_config;
}

TEST(RewriteCollectives, GroupsByModeAndForm) {
  // Groups of partitions.
  EXPECT_THAT(
      config_of(with_one(all_reduce().channel().global_ids().groups({{0, 2}, {1, 3}}))),
      HasSubstr("ranks = array<i32: 0, 2, 1, 3>, reduction = 0 : i32, sizes = array<i32: 2>"));
  EXPECT_THAT(config_of(with_one(all_reduce().channel().global_ids().groups({{0, 2, 1}, {3}}))),
              HasSubstr("sizes = array<i32: 3, 1>"));
  // No groups: all partitions. A channel without global ids: groups of replicas, all partitions.
  EXPECT_THAT(config_of(with_one(all_reduce().channel().global_ids())),
              HasSubstr("ranks = array<i32: 0, 1, 2, 3>"));
  EXPECT_THAT(config_of(with_one(all_reduce().channel().groups({{0}}))),
              HasSubstr("ranks = array<i32: 0, 1, 2, 3>"));
  // Without a channel, it is among replicas, of which there is one.
  EXPECT_EQ(config_of(with_one(all_reduce().groups({{0}}))), "");
  auto uses_replicas = [](const ModuleBytes& module) {
    return rewrite_collectives(module.bytes(), on(4)).value().uses_replicas;
  };
  EXPECT_TRUE(uses_replicas(with_one(all_reduce().groups({{0}}))));
  EXPECT_FALSE(uses_replicas(with_one(all_reduce().channel().global_ids())));
  // Iota groups in field 87.2: [4] reshaped to 2x2 and transposed.
  pjrt::WireWriter iota, list;
  iota.add_varint(1, 2);
  iota.add_varint(2, 2);
  iota.add_packed(3, Ids{2, 2});
  iota.add_packed(4, Ids{1, 0});
  list.add_message(2, iota);
  EXPECT_THAT(config_of(with_one(all_reduce().channel().global_ids().bytes(87, list.bytes()))),
              HasSubstr("ranks = array<i32: 0, 2, 1, 3>"));
}

TEST(RewriteCollectives, ReductionsAreRecognized) {
  const std::pair<const char*, int> cases[] = {{"add", 0},     {"multiply", 1}, {"minimum", 2},
                                               {"maximum", 3}, {"and", 4},      {"or", 5},
                                               {"xor", 6}};
  for (auto [opcode, number] : cases)
    EXPECT_THAT(config_of(with_one(all_reduce().channel().global_ids(), opcode)),
                HasSubstr(cat("reduction = ", number, " : i32")))
        << opcode;
}

TEST(RewriteCollectives, Errors) {
  auto fails = [](const ModuleBytes& module, ErrorCode code,
                  const std::vector<std::string>& parts) {
    return throws_error([&] { rewrite_collectives(module.bytes(), on(4)).value(); }, code, parts);
  };
  auto reduce = [] { return all_reduce().channel().global_ids().source("n17", "a/train.cc", 42); };
  EXPECT_TRUE(fails(with_one(reduce(), "subtract"), ErrorCode::kUnimplemented,
                    {"all-reduce n17 (train.cc:42)", "computation.1", "multiply"}));
  EXPECT_TRUE(fails(with_one(reduce().groups({{0, 4}})), ErrorCode::kDataLoss, {"partition 4"}));
  EXPECT_TRUE(fails(with_one(reduce().groups({{0, 1}, {1, 2, 3}})), ErrorCode::kDataLoss,
                    {"partition 1 is in two groups"}));
  EXPECT_TRUE(fails(with_one(reduce().groups({{0, 1}})), ErrorCode::kDataLoss, {"in no group"}));
  EXPECT_TRUE(fails(with_one(all_reduce().channel().groups({{0, 1}})), ErrorCode::kUnimplemented,
                    {"of replicas"}));
  EXPECT_TRUE(
      fails(with_one(InstructionBytes(51, "ragged-all-to-all", f32_bytes(), {50}).channel()),
            ErrorCode::kUnimplemented, {"ragged-all-to-all"}));
  EXPECT_TRUE(fails(
      with_one(
          InstructionBytes(51, "custom-call", f32_bytes(), {50}).bytes(28, "SPMDFullToShardShape")),
      ErrorCode::kUnimplemented, {"the partitioner has left SPMDFullToShardShape"}));
  EXPECT_TRUE(fails(with_one(InstructionBytes(51, "collective-permute", f32_bytes(), {50})
                                 .channel()
                                 .pairs({{0, 1}, {2, 1}})),
                    ErrorCode::kUnimplemented, {"partition 1 has two sources"}));
  std::string once = rewrite_collectives(with_one(reduce()).bytes(), on(4)).value().hlo;
  EXPECT_TRUE(throws_error([&] { rewrite_collectives(once, on(4)).value(); },
                           ErrorCode::kInvalidArgument, {"rewritten before"}));
  ModuleBytes small;
  std::string s4 = array_bytes(kS4Element, {4});
  small.add(5,
            {parameter_bytes(50, 0, s4),
             InstructionBytes(51, "collective-permute", s4, {50}).channel().pairs({{0, 1}})},
            51, {s4}, s4);
  EXPECT_TRUE(fails(small, ErrorCode::kUnimplemented, {"whole bytes"}));
  EXPECT_TRUE(throws_error([&] { rewrite_collectives("nonsense", on(4)).value(); },
                           ErrorCode::kDataLoss, {}));
  EXPECT_TRUE(throws_error(
      [&] {
        rewrite_collectives(with_one(reduce()).bytes(), {.partitions = 2, .ranks = {1, 1}}).value();
      },
      ErrorCode::kInvalidArgument, {"rank 1 is given twice"}));
}

// A source with two targets sends in two rounds.
TEST(RewriteCollectives, PermutationsWithSeveralTargets) {
  EXPECT_THAT(config_of(with_one(InstructionBytes(51, "collective-permute", f32_bytes(), {50})
                                     .channel()
                                     .pairs({{0, 1}, {0, 2}, {1, 3}}))),
              HasSubstr("ranks = array<i32: 0, 1, 1, 3, 0, 2>, reduction = 0 : i32, sizes = "
                        "array<i32: 2, 1>"));
}

TEST(RewriteCollectives, SourcesComeFromTheCaller) {
  RewriteOptions options = on(4);
  options.source_of = [](std::string_view op) { return cat("line of ", op); };
  auto rewritten = rewrite_collectives(
      with_one(all_reduce().channel().global_ids().source("n17", "", 0)).bytes(), options);
  EXPECT_THAT(calls_of(read_module(rewritten.value().hlo))[0].backend_config,
              HasSubstr("where = \"all-reduce n17 (line of n17)\""));
}

// start and done halves of each kind, and a collective in an asynchronous computation.
TEST(RewriteCollectives, AsynchronousPairs) {
  std::string array = f32_bytes(), wide = f32_bytes({16});
  ModuleBytes module;
  module.reduction(1, "add");
  module.add(2,
             {parameter_bytes(20, 0, array),
              InstructionBytes(21, "all-to-all", array, {20}).channel().dimension(0)},
             21);
  module.add(
      5,
      {parameter_bytes(50, 0, array),
       InstructionBytes(51, "all-reduce-start", array, {50}).channel().global_ids().calls({1}),
       InstructionBytes(52, "all-gather-start", tuple_bytes({array, wide}), {50})
           .channel()
           .global_ids()
           .dimension(0),
       InstructionBytes(53, "all-reduce-done", array, {51}),
       InstructionBytes(54, "all-gather-done", wide, {52}),
       InstructionBytes(55, "collective-permute-start", tuple_bytes({array, array}), {53})
           .channel()
           .pairs({{0, 1}}),
       InstructionBytes(56, "collective-permute-done", array, {55}),
       InstructionBytes(57, "async-start", tuple_bytes({tuple_bytes({array}), array}), {56})
           .calls({2}),
       InstructionBytes(58, "async-done", array, {57}),
       InstructionBytes(59, "tuple", tuple_bytes({array, wide}), {58, 54})},
      59, {array}, tuple_bytes({array, wide}));
  HloModule after = read_module(rewrite_collectives(module.bytes(), on(4)).value().hlo);
  check_valid(after);
  EXPECT_EQ(ChainCheck(after).problem(), "");
  std::vector<std::string> shapes;
  for (const auto& call : calls_of(after)) shapes.push_back(call.shape.to_string());
  EXPECT_EQ(shapes, (std::vector<std::string>{"(f32[4], s32[])", "(f32[16], s32[])",
                                              "(f32[4], s32[])", "(f32[4], s32[])"}));
  EXPECT_EQ(after.find(2), nullptr);
}

// A computation with a collective that is called from two places is called with the chain in both.
TEST(RewriteCollectives, CallsOfOneComputation) {
  std::string array = f32_bytes(), pred = array_bytes(kPredElement, {});
  ModuleBytes module;
  module.reduction(1, "add");
  module.add(2, {parameter_bytes(20, 0, array), all_reduce(21, {20}).channel().global_ids()}, 21);
  module.add(3, {parameter_bytes(30, 0, array), InstructionBytes(31, "negate", array, {30})}, 31);
  module.add(5,
             {parameter_bytes(50, 0, array), parameter_bytes(51, 1, pred),
              InstructionBytes(52, "call", array, {50}).calls({2}),
              InstructionBytes(53, "call", array, {52}).calls({2}),
              InstructionBytes(54, "conditional", array, {51, 53, 53}).calls({2, 3}),
              InstructionBytes(55, "call", array, {54}).calls({3})},
             55, {array, pred});
  RewrittenModule rewritten = rewrite_collectives(module.bytes(), on(4)).value();
  HloModule after = read_module(rewritten.hlo);
  check_valid(after);
  EXPECT_EQ(ChainCheck(after).problem(), "");
  // One copy for the calls and one for the branch; the branch without collectives and the plain
  // computation of the last call.
  EXPECT_EQ(calls_of(after).size(), 2u);
  EXPECT_EQ(opcodes(after)["negate"], 2);
}

TEST(RewriteCollectives, AResultThatIsNotATupleMovesItsAlias) {
  pjrt::WireWriter alias, aliases;
  alias.add_varint(2, 0);
  alias.add_varint(4, 1);
  aliases.add_message(1, alias);
  ModuleBytes module = with_one(all_reduce().channel().global_ids());
  module.field(8, aliases.bytes());
  HloModule after = read_module(rewrite_collectives(module.bytes(), on(4)).value().hlo);
  ASSERT_EQ(after.aliases.size(), 1u);
  EXPECT_EQ(after.aliases[0].output_index, (Ids{0}));
  EXPECT_EQ(after.result.to_string(), "(f32[4], s32[])");
}

// Fields that this code does not know are copied.
TEST(RewriteCollectives, UnknownFieldsStay) {
  ModuleBytes module;
  module.reduction(1, "add");
  module.add(5,
             {parameter_bytes(50, 0, f32_bytes()),
              InstructionBytes(51, "negate", f32_bytes(), {50}).bytes(1234, "kept in instruction"),
              all_reduce(52, {51}).channel().global_ids()},
             52);
  module.field(1235, "kept in module");
  std::string hlo = rewrite_collectives(module.bytes(), on(4)).value().hlo;
  EXPECT_THAT(hlo, HasSubstr("kept in instruction"));
  EXPECT_THAT(hlo, HasSubstr("kept in module"));
}

TEST(RewriteCollectives, ReducesPredWithLogic) {
  std::string scalar = array_bytes(kPredElement, {}), array = array_bytes(kPredElement, {4});
  for (auto [opcode, number] :
       {std::pair{"add", 5}, {"multiply", 4}, {"maximum", 5}, {"minimum", 4}}) {
    ModuleBytes module;
    module.add(1,
               {parameter_bytes(11, 0, scalar), parameter_bytes(12, 1, scalar),
                InstructionBytes(13, opcode, scalar, {12, 11})},
               13, {scalar, scalar}, scalar);
    module.add(5,
               {parameter_bytes(50, 0, array),
                InstructionBytes(51, "all-reduce", array, {50}).calls({1}).channel().global_ids()},
               51, {array}, array);
    EXPECT_THAT(config_of(module), HasSubstr(cat("reduction = ", number, " : i32"))) << opcode;
  }
}

}  // namespace
}  // namespace meshard
