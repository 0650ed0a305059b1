#include "meshard/hlo/module.h"

#include <gtest/gtest.h>

#include "meshard/pjrt/executable.h"
#include "meshard/pjrt/wire.h"

namespace meshard {
namespace {

using pjrt::WireWriter;
using Numbers = std::vector<std::int64_t>;

WireWriter shape(std::uint64_t primitive, const Numbers& dimensions) {
  WireWriter writer;
  writer.add_varint(2, primitive);
  writer.add_packed(3, dimensions);
  return writer;
}

WireWriter group(const Numbers& ids) {
  WireWriter writer;
  writer.add_packed(1, ids);
  return writer;
}

WireWriter instruction(const std::string& opcode, std::uint64_t id) {
  WireWriter writer;
  writer.add_bytes(1, opcode + ".1");
  writer.add_bytes(2, opcode);
  writer.add_message(3, shape(11, {4}));
  writer.add_varint(35, id);
  return writer;
}

// Collectives, each with another form of groups.
WireWriter collectives() {
  WireWriter computation;
  computation.add_bytes(1, "main");
  computation.add_varint(5, 40);
  computation.add_varint(6, 3);

  WireWriter old = instruction("all-reduce", 1);
  old.add_message(49, group({0, 1}));
  old.add_message(49, group({2, 3}));
  old.add_varint(26, 9);
  old.add_varint(71, 1);
  old.add_packed(36, Numbers{0});
  old.add_packed(38, Numbers{40});
  WireWriter metadata;
  metadata.add_bytes(2, "n5");
  metadata.add_bytes(3, "a.cc");
  metadata.add_varint(4, 42);
  old.add_message(7, metadata);
  computation.add_message(2, old);

  WireWriter listed = instruction("all-gather", 2), list;
  list.add_message(1, group({0, 2}));
  list.add_message(1, group({1, 3}));
  listed.add_message(87, list);
  listed.add_packed(14, Numbers{1});
  computation.add_message(2, listed);

  WireWriter iota_list;
  iota_list.add_varint(1, 2);
  iota_list.add_varint(2, 2);
  iota_list.add_packed(3, Numbers{2, 2});
  iota_list.add_packed(4, Numbers{1, 0});
  WireWriter nested = instruction("reduce-scatter", 3), nested_list;
  nested_list.add_message(2, iota_list);
  nested.add_message(87, nested_list);
  computation.add_message(2, nested);
  WireWriter newer = instruction("all-to-all", 4);
  newer.add_message(92, iota_list);
  computation.add_message(2, newer);

  WireWriter permute = instruction("collective-permute", 5), pair;
  pair.add_varint(1, 3);
  pair.add_varint(2, 1);
  permute.add_message(52, pair);
  computation.add_message(2, permute);
  return computation;
}

// A module of collectives.
std::string module_bytes() {
  WireWriter program_shape, result;
  program_shape.add_message(1, shape(11, {2, 3}));
  program_shape.add_message(1, shape(16, {}));
  result.add_varint(2, 13);
  result.add_message(4, shape(11, {2, 3}));
  result.add_message(4, shape(1, {5}));
  program_shape.add_message(2, result);
  WireWriter aliases, alias;
  alias.add_packed(1, Numbers{0});
  alias.add_varint(4, 2);  // parameter 0 is omitted
  aliases.add_message(1, alias);

  WireWriter module;
  module.add_bytes(1, "m");
  module.add_message(3, collectives());
  module.add_message(4, program_shape);
  module.add_varint(6, 40);
  module.add_message(8, aliases);
  WireWriter all;
  all.add_message(1, module);
  return all.take();
}

TEST(HloModule, ReadsEveryFormOfGroups) {
  HloModule module = HloModule::from_bytes(module_bytes()).value();
  const auto& all = module.entry().instructions;
  ASSERT_EQ(all.size(), 5u);
  std::vector<Numbers> pairs = {{0, 1}, {2, 3}}, crossed = {{0, 2}, {1, 3}};
  EXPECT_EQ(all[0].groups.expand().value(), pairs);
  EXPECT_EQ(all[1].groups.expand().value(), crossed);
  EXPECT_EQ(all[2].groups.expand().value(), crossed);
  EXPECT_EQ(all[3].groups.expand().value(), crossed);
  EXPECT_EQ(all[4].source_target_pairs,
            (std::vector<std::pair<std::int64_t, std::int64_t>>{{3, 1}}));
}

TEST(HloModule, ReadsInstructionsAndBoundary) {
  HloModule module = HloModule::from_bytes(module_bytes()).value();
  const HloInstruction& first = module.entry().instructions[0];
  EXPECT_EQ(first.opcode, "all-reduce");
  EXPECT_EQ(first.shape.to_string(), "f32[4]");
  EXPECT_EQ(first.channel_id, 9);
  EXPECT_TRUE(first.use_global_device_ids);
  EXPECT_EQ(first.metadata.op_name, "n5");
  EXPECT_EQ(first.metadata.source_line, 42);
  EXPECT_EQ(first.called_computations, Numbers{40});
  EXPECT_EQ(module.entry().instructions[1].dimensions, Numbers{1});
  EXPECT_EQ(module.entry().find(3)->opcode, "reduce-scatter");
  EXPECT_EQ(module.entry().find(77), nullptr);
  EXPECT_EQ(module.parameters[1].to_string(), "bf16[]");
  EXPECT_EQ(module.result.to_string(), "(f32[2,3], pred[5])");
  EXPECT_EQ(module.result.byte_size(), 29);
  ASSERT_EQ(module.aliases.size(), 1u);
  EXPECT_EQ(module.aliases[0].parameter, 0);
  EXPECT_TRUE(module.aliases[0].must_alias);
}

TEST(HloModule, TheSignatureIsReadFromTheSameBytes) {
  auto signature = pjrt::ExecutableSignature::from_module(module_bytes()).value();
  EXPECT_EQ(signature.to_string(),
            "(f32[2,3] donated, bf16[]) -> (f32[2,3], pred[5]) with collectives");
  EXPECT_EQ(pjrt::ExecutableSignature::parse(signature.to_string()).value(), signature);
  for (const char* text :
       {"() -> ()", "(s32[]) -> (f32[1], f32[1])", "() -> (u32[]) reading the partition id",
        "() -> (u32[]) with collectives reading the partition id"})
    EXPECT_EQ(pjrt::ExecutableSignature::parse(text).value().to_string(), text);
  for (const char* bad : {"", "(f32[1]", "(f32[1]) -> (f32[1] donated)", "() -> () x"})
    EXPECT_FALSE(pjrt::ExecutableSignature::parse(bad).ok()) << bad;
}

TEST(HloModule, DamagedBytesGiveAnErrorAndNothingElse) {
  std::string bytes = module_bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(HloModule::from_bytes(bytes.substr(0, size)).ok()) << size;
    (void)pjrt::ExecutableSignature::from_module(bytes.substr(0, size));
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {  // must not crash; may still be readable
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0xFF);
    (void)HloModule::from_bytes(changed);
    (void)pjrt::ExecutableSignature::from_module(changed);
  }
}

TEST(HloModule, PrimitiveNumbersOfXla) {
  EXPECT_EQ(pjrt::element_type_of_primitive(11), pjrt::ElementType::kF32);
  EXPECT_EQ(pjrt::element_type_of_primitive(13), pjrt::ElementType::kInvalid);
  EXPECT_EQ(pjrt::element_type_of_primitive(15), pjrt::ElementType::kC64);
  EXPECT_EQ(pjrt::element_type_of_primitive(16), pjrt::ElementType::kBf16);
  EXPECT_EQ(pjrt::element_type_of_primitive(20), pjrt::ElementType::kF8E4M3Fn);
  EXPECT_EQ(pjrt::element_type_of_primitive(-3), pjrt::ElementType::kInvalid);
  EXPECT_TRUE(pjrt::is_collective_opcode("all-gather-start"));
  EXPECT_FALSE(pjrt::is_collective_opcode("add"));
}

TEST(HloModule, WhatTellsSizesOrderAndPlaces) {
  WireWriter dot = instruction("dot", 1), numbers, window, dimension, attribute, attributes;
  numbers.add_packed(1, Numbers{1});
  numbers.add_packed(2, Numbers{0});
  dot.add_message(30, numbers);
  dimension.add_varint(1, 3);
  dimension.add_varint(2, 1);
  dimension.add_varint(6, 2);
  window.add_message(1, dimension);
  dot.add_message(15, window);
  attribute.add_bytes(1, "chain_id");
  attribute.add_bytes(2, "5");
  attributes.add_message(1, attribute);
  dot.add_message(68, attributes);
  WireWriter metadata;
  metadata.add_varint(15, 2);
  dot.add_message(7, metadata);
  WireWriter constant = instruction("constant", 2), literal, scalar;
  scalar.add_varint(2, 4);  // s32
  literal.add_message(1, scalar);
  literal.add_packed(4, Numbers{12});
  constant.add_message(8, literal);
  constant.add_bytes(43, "config");
  constant.add_bytes(63, "LT");
  constant.add_varint(13, 4);
  WireWriter computation, sequence, entry, schedule, stacks, location, frame, module, whole;
  computation.add_message(2, dot);
  computation.add_message(2, constant);
  computation.add_varint(5, 40);
  sequence.add_packed(1, Numbers{2, 1});
  entry.add_varint(1, 40);
  entry.add_message(2, sequence);
  schedule.add_message(1, entry);
  stacks.add_bytes(1, "lib.py");
  stacks.add_bytes(1, "user.py");
  stacks.add_bytes(2, "main");
  location.add_varint(1, 2);
  location.add_varint(2, 1);
  location.add_varint(3, 98);
  stacks.add_message(3, location);
  frame.add_varint(1, 7);  // no such location
  stacks.add_message(4, frame);
  frame = WireWriter();
  frame.add_varint(1, 1);
  frame.add_varint(2, 1);
  stacks.add_message(4, frame);
  module.add_message(3, computation);
  module.add_varint(6, 40);
  module.add_message(7, schedule);
  module.add_message(17, stacks);
  whole.add_message(1, module);
  HloModule read = HloModule::from_bytes(whole.bytes()).value();
  EXPECT_EQ(read.frames, (std::vector<HloFrame>{{}, {"user.py", "main", 98, 1}}));
  EXPECT_EQ(read.entry().schedule, (Numbers{2, 1}));
  const HloInstruction& product = read.entry().instructions[0];
  ASSERT_TRUE(product.dot.has_value());
  EXPECT_EQ(product.dot->lhs_contracting, Numbers{1});
  EXPECT_EQ(product.dot->rhs_contracting, Numbers{0});
  ASSERT_EQ(product.window.size(), 1u);
  EXPECT_EQ(product.window[0].size, 3);
  EXPECT_EQ(product.window[0].base_dilation, 2);
  EXPECT_EQ(product.frontend_attribute("chain_id"), "5");
  EXPECT_EQ(product.frontend_attribute("other"), "");
  EXPECT_EQ(product.metadata.source_file, "user.py");
  EXPECT_EQ(product.metadata.source_line, 98);
  const HloInstruction& twelve = read.entry().instructions[1];
  EXPECT_EQ(twelve.literal, 12);
  EXPECT_EQ(twelve.backend_config, "config");
  EXPECT_EQ(twelve.comparison_direction, "LT");
  EXPECT_EQ(twelve.tuple_index, 4);
  EXPECT_EQ(twelve.metadata.source_file, "");
}

}  // namespace
}  // namespace meshard
