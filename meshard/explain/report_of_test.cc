#include "meshard/explain/report_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/explain/collectives/collectives.h"
#include "meshard/explain/hlo_testutil.h"

namespace meshard {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Mesh kNotesMesh({{"x", 8}});

std::vector<Collective> collectives_of(const HloModule& module) {
  return find_collectives(module, kNotesMesh, nullptr).value();
}

HloModule with_sum_of(pjrt::ElementType element) {
  return make_module({{
      make_instruction(1, "parameter", array_shape(element, {4})),
      make_instruction(2, "convert", f32_shape({4}), {1}),
      make_collective(3, "all-reduce", f32_shape({4}), {2}, "sum", {{0, 1, 2, 3, 4, 5, 6, 7}}),
  }});
}

TEST(CompileNotes, NoSourceLines) {
  HloModule module = with_sum_of(pjrt::ElementType::kF32);
  EXPECT_THAT(notes_on_lines(module, collectives_of(module)),
              ElementsAre(HasSubstr("as_text(debug_info=True)")));
  EXPECT_THAT(notes_on_lines(module, {}), IsEmpty());
  module.computations[0].instructions[1].metadata.source_file = "-";
  EXPECT_EQ(notes_on_lines(module, collectives_of(module)).size(), 1u);
  module.computations[0].instructions[1].metadata.source_file = "step.py";
  EXPECT_THAT(notes_on_lines(module, collectives_of(module)), IsEmpty());
}

TEST(CompileNotes, WidenedFloats) {
  HloModule narrow = with_sum_of(pjrt::ElementType::kBf16);
  EXPECT_THAT(notes_on_widening(ModuleIndex(narrow), collectives_of(narrow)),
              ElementsAre(HasSubstr("1 collective moves 16-bit floats as f32")));
  HloModule wide = with_sum_of(pjrt::ElementType::kS32);
  EXPECT_THAT(notes_on_widening(ModuleIndex(wide), collectives_of(wide)), IsEmpty());
}

// The CPU compiler adds bf16 numbers of several devices as f32.
TEST(CompileNotes, TheCpuCompilerWidens) {
  if (std::string reason = why_no_plugin(); !reason.empty())
    GTEST_SKIP() << "no CPU plugin: " << reason;
  HloModule module = compile_module(R"(module @m attributes {mhlo.num_partitions = 8 : i32} {
    sdy.mesh @mesh = <["x"=8]>
    func.func @main(%a: tensor<16x64xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                    %b: tensor<64x16xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
        -> tensor<16x16xbf16> {
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<16x64xbf16>, tensor<64x16xbf16>) -> tensor<16x16xbf16>
      return %0 : tensor<16x16xbf16>
    }
  })");
  std::vector<Collective> collectives = collectives_of(module);
  ASSERT_EQ(collectives.size(), 1u);
  EXPECT_EQ(collectives[0].bytes(), 16 * 16 * 4);
  EXPECT_THAT(notes_on_widening(ModuleIndex(module), collectives),
              ElementsAre(HasSubstr("1 collective moves")));
}

}  // namespace
}  // namespace meshard
