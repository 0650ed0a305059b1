#include "meshard/hlo/program_identity.h"

#include <gmock/gmock.h>

#include "meshard/hlo/hlo_builder_testutil.h"

namespace meshard {
namespace {

using testing::HasSubstr;

// Instructions have ids of their own, in any order in which operands precede users.
using Written = std::vector<InstructionBytes>;

std::string proto(ModuleBytes& module) {
  pjrt::WireWriter proto;
  proto.add_bytes(1, module.bytes());
  return proto.take();
}
std::string program(const Written& instructions, std::int64_t root,
                    const std::vector<std::string>& parameters = {f32_bytes()}) {
  ModuleBytes module;
  module.add(5, instructions, root, parameters);
  return proto(module);
}

// None, or the difference; checks that the fingerprints say the same.
std::string difference(const std::string& a, const std::string& b) {
  ProgramIdentity first = ProgramIdentity::from_bytes(a).value(),
                  second = ProgramIdentity::from_bytes(b).value();
  auto found = first_difference(first, second);
  EXPECT_EQ(!found, first.fingerprint() == second.fingerprint());
  return found ? found->to_string() : "";
}

InstructionBytes op(std::int64_t id, const std::string& opcode, const Ids& operands) {
  return InstructionBytes(id, opcode, f32_bytes(), operands).source(opcode, "step.py", id);
}
const InstructionBytes kX = parameter_bytes(1, 0, f32_bytes());

TEST(ProgramIdentity, NamesAndOrderDoNotMatter) {
  std::string a = program({kX, op(2, "exp", {1}), op(3, "tanh", {1}), op(4, "add", {2, 3})}, 4),
              b = program({parameter_bytes(70, 0, f32_bytes()), op(50, "tanh", {70}),
                           op(60, "exp", {70}), op(80, "add", {60, 50})},
                          80);
  EXPECT_EQ(difference(a, b), "");
  EXPECT_EQ(
      difference(a, program({kX, op(2, "exp", {1}), op(3, "tanh", {1}), op(4, "add", {3, 2})}, 4)),
      "");
  // Of the operands that differ, the first is found.
  EXPECT_THAT(
      difference(a, program({kX, op(2, "exp", {1}), op(3, "sine", {1}), op(4, "add", {3, 2})}, 4)),
      HasSubstr("tanh tanh f32[4] (step.py:3) in the first, sine sine f32[4] (step.py:3)"));
  // The operands of other ops have an order.
  a = program({kX, op(2, "exp", {1}), op(3, "tanh", {1}), op(4, "subtract", {2, 3})}, 4);
  EXPECT_THAT(
      difference(
          a, program({kX, op(2, "exp", {1}), op(3, "tanh", {1}), op(4, "subtract", {3, 2})}, 4)),
      HasSubstr("exp exp f32[4] (step.py:2) in the first, tanh tanh f32[4] (step.py:3)"));
}

TEST(ProgramIdentity, UnusedAndRepeatedOpsDoNotMatter) {
  std::string a = program({kX, op(2, "exp", {1}), op(3, "add", {2, 2})}, 3);
  EXPECT_EQ(difference(a, program({kX, op(2, "exp", {1}), op(4, "exp", {1}), op(9, "sine", {1}),
                                   op(3, "add", {2, 4})},
                                  3)),
            "");
}

TEST(ProgramIdentity, FunctionsStandWhereTheyAreCalled) {
  ModuleBytes module;
  module.add(2, {parameter_bytes(20, 0, f32_bytes()), op(21, "exp", {20})}, 21);
  module.add(3, {parameter_bytes(30, 0, f32_bytes()), op(31, "call", {30}).calls({2})}, 31);
  module.add(5, {kX, op(4, "tanh", {1}), op(6, "call", {4}).calls({3})}, 6);
  std::string written = program({kX, op(4, "tanh", {1}), op(6, "exp", {4})}, 6);
  EXPECT_EQ(difference(proto(module), written), "");
  EXPECT_THAT(difference(proto(module), program({kX, op(4, "sine", {1}), op(6, "exp", {4})}, 6)),
              HasSubstr("tanh tanh f32[4] (step.py:4) in the first, sine sine"));
}

TEST(ProgramIdentity, FunctionsMayReturnTuples) {
  const std::string pair = tuple_bytes({f32_bytes(), f32_bytes()});
  ModuleBytes module;
  module.add(2,
             {parameter_bytes(20, 0, f32_bytes()), op(21, "exp", {20}), op(22, "tanh", {20}),
              InstructionBytes(23, "tuple", pair, {21, 22})},
             23);
  module.add(
      5,
      {kX, InstructionBytes(6, "call", pair, {1}).calls({2}), element_bytes(7, 1, f32_bytes(), 6)},
      7);
  EXPECT_EQ(difference(proto(module), program({kX, op(4, "tanh", {1})}, 4)), "");
}

TEST(ProgramIdentity, LoopsAreEntered) {
  auto loop = [](const std::string& in_body) {
    ModuleBytes module;
    module.add(1, {parameter_bytes(10, 0, f32_bytes()), op(11, in_body, {10})}, 11);
    module.add(2,
               {parameter_bytes(20, 0, f32_bytes()),
                InstructionBytes(21, "constant", array_bytes(kPredElement, {}))},
               21);
    module.add(5, {kX, op(6, "while", {1}).calls({1, 2})}, 6);
    return proto(module);
  };
  EXPECT_EQ(difference(loop("negate"), loop("negate")), "");
  EXPECT_EQ(difference(loop("negate"), loop("abs")),
            "negate negate f32[4] (step.py:11) in the first, abs abs f32[4] (step.py:11) in the "
            "second");
}

// A loop over (counter, value, outside...) whose body uses what is outside in this order. `first`
// and `second` are what the program passes for them.
std::string capturing(const std::vector<std::string>& used, const std::string& combine) {
  const std::int64_t count = std::ssize(used);
  std::vector<std::string> shapes(static_cast<std::size_t>(1 + count), f32_bytes());
  const std::string state = tuple_bytes(shapes);
  std::vector<InstructionBytes> body = {parameter_bytes(10, 0, state),
                                        element_bytes(11, 0, f32_bytes(), 10)};
  Ids next = {0}, initial = {40};
  std::int64_t exp = 0, tanh = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    body.push_back(element_bytes(12 + i, 1 + i, f32_bytes(), 10));
    next.push_back(12 + i);
    (used[static_cast<std::size_t>(i)] == "exp" ? exp : tanh) = 12 + i;
    initial.push_back(used[static_cast<std::size_t>(i)] == "exp" ? 41 : 42);
  }
  body.push_back(op(20, combine, {exp, tanh}));
  body.push_back(op(21, "divide", {11, 20}));
  next[0] = 21;
  body.push_back(InstructionBytes(22, "tuple", state, next));
  ModuleBytes module;
  module.add(1, body, 22);
  module.add(2,
             {parameter_bytes(30, 0, state),
              InstructionBytes(31, "constant", array_bytes(kPredElement, {}))},
             31);
  module.add(5,
             {parameter_bytes(40, 0, f32_bytes()), op(41, "exp", {40}), op(42, "tanh", {40}),
              InstructionBytes(43, "tuple", state, initial),
              InstructionBytes(44, "while", state, {43}).calls({1, 2}),
              element_bytes(45, 0, f32_bytes(), 44), element_bytes(46, 1, f32_bytes(), 44),
              op(47, "subtract", {45, 46})},
             47);
  return proto(module);
}

TEST(ProgramIdentity, WhatLoopsUseFromOutsideHasNoOrder) {
  const std::string a = capturing({"exp", "tanh"}, "subtract");
  // The program subtracts the first of them from the loop's result.
  EXPECT_NE(difference(a, capturing({"tanh", "exp"}, "subtract")), "");
  EXPECT_EQ(difference(a, capturing({"exp", "tanh", "exp"}, "subtract")), "");
  EXPECT_THAT(difference(a, capturing({"exp", "tanh"}, "power")),
              HasSubstr("subtract subtract f32[4] (step.py:20) in the first, power"));
}

TEST(ProgramIdentity, AttributesAndTypesMatter) {
  std::string a = program({kX, op(2, "reverse", {1}).number(14, 0)}, 2);
  EXPECT_THAT(difference(a, program({kX, op(2, "reverse", {1}).number(14, 1)}, 2)),
              HasSubstr("their attributes differ"));
  EXPECT_EQ(difference(program({parameter_bytes(1, 0, f32_bytes({5}))}, 1), program({kX}, 1)),
            "argument 0 f32[5] in the first, argument 0 f32[4] in the second");
  EXPECT_THAT(
      difference(program({kX, op(2, "add", {1, 1})}, 2), program({kX, op(2, "add", {1})}, 2)),
      HasSubstr("2 and 1 operands"));
}

TEST(ProgramIdentity, NumbersOfChannelsDoNotMatterButThatThereIsOne) {
  auto sum = [](std::int64_t channel) {
    ModuleBytes module;
    module.reduction(1, "add");
    InstructionBytes all = op(6, "all-reduce", {1}).calls({1});
    if (channel > 0) all.number(26, channel);
    module.add(5, {kX, all}, 6);
    return proto(module);
  };
  EXPECT_EQ(difference(sum(1), sum(7)), "");
  EXPECT_THAT(difference(sum(1), sum(0)), HasSubstr("their attributes differ"));
}

// In the form of the compilers that keep Shardy's shardings as attributes.
TEST(ProgramIdentity, NamesOfMeshesAndAxesDoNotMatter) {
  auto sharded = [](const std::string& meshes, const std::string& sharding) {
    auto map = [](const std::string& key, const std::string& value) {
      pjrt::WireWriter entry, entries;
      entry.add_bytes(1, key);
      entry.add_bytes(2, value);
      entries.add_bytes(1, entry.bytes());
      return entries.take();
    };
    ModuleBytes module;
    module.add(5, {kX, op(2, "tanh", {1}).bytes(68, map("xla.sdy.sharding", sharding))}, 2);
    module.field(19, map("xla.sdy.meshes", meshes));
    return proto(module);
  };
  std::string a = sharded("{mesh = #sdy.mesh<[\"x\"=2, \"y\"=4]>}",
                          "#sdy.sharding_per_value<[<@mesh, [{\"y\"}]>]>");
  EXPECT_EQ(difference(a, sharded("{m = #sdy.mesh<[\"data\"=2, \"model\"=4]>}",
                                  "#sdy.sharding_per_value<[<@m, [{\"model\"}]>]>")),
            "");
  EXPECT_THAT(difference(a, sharded("{mesh = #sdy.mesh<[\"x\"=2, \"y\"=4]>}",
                                    "#sdy.sharding_per_value<[<@mesh, [{\"x\"}]>]>")),
              HasSubstr("their attributes differ"));
  EXPECT_THAT(difference(a, sharded("{mesh = #sdy.mesh<[\"x\"=4, \"y\"=4]>}",
                                    "#sdy.sharding_per_value<[<@mesh, [{\"y\"}]>]>")),
              HasSubstr("their attributes differ"));
}

TEST(ProgramIdentity, EffectsMatterAndTheirOrder) {
  auto prints = [](const std::string& first, const std::string& second) {
    return program(
        {kX, op(2, "exp", {1}), op(3, "tanh", {1}), op(4, "outfeed", {first == "exp" ? 2 : 3}),
         op(6, "outfeed", {second == "exp" ? 2 : 3}), op(7, "negate", {1})},
        7);
  };
  EXPECT_EQ(difference(prints("exp", "tanh"), prints("exp", "tanh")), "");
  EXPECT_NE(difference(prints("exp", "tanh"), prints("tanh", "exp")), "");
  EXPECT_THAT(difference(prints("exp", "tanh"), program({kX, op(7, "negate", {1})}, 7)),
              HasSubstr("3 and 1 results and effects"));
}

TEST(ProgramIdentity, DamagedBytesAreErrors) {
  EXPECT_FALSE(ProgramIdentity::from_bytes("nonsense").ok());
  EXPECT_FALSE(ProgramIdentity::from_bytes(program({kX, op(2, "exp", {9})}, 2)).ok());
  ModuleBytes module;
  module.add(5, {kX, op(2, "call", {1}).calls({5})}, 2);
  EXPECT_FALSE(ProgramIdentity::from_bytes(proto(module)).ok());
}

}  // namespace
}  // namespace meshard
