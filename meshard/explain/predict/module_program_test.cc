#include "meshard/explain/predict/module_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "meshard/base/cat.h"
#include "meshard/explain/explain.h"
#include "meshard/explain/hlo_testutil.h"
#include "meshard/explain/module_layout.h"
#include "meshard/explain/predict/op_moves.h"
#include "meshard/explain/predict/predict.h"
#include "meshard/stablehlo/module_reader.h"
#include "meshard/stablehlo/shardy_text.h"
#include "meshard/stablehlo/types.h"

namespace meshard {
namespace {

const std::vector<MeshAxis> kFlowAxes = {{.name = "x", .size = 2}, {.name = "y", .size = 4}};

using Specs = std::vector<std::optional<PartitionSpec>>;

Result<ModuleProgram> program_of(std::string text) {
  MESHARD_ASSIGN_OR_RETURN(stablehlo::Module module, stablehlo::Module::parse(std::move(text)));
  return ModuleProgram::of(module);
}

double flow_bytes(const std::string& body, const Specs& specs, const Specs& results = {}) {
  return program_of(cat("module @m {\n", body, "}\n"))
      .value()
      .communication(Mesh(kFlowAxes), specs, results);
}

constexpr const char* kProduct =
    R"(  func.func public @main(%arg0: tensor<16x32xf32> loc("a"), %arg1: tensor<32x64xf32>) -> (tensor<16x64xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32> loc(#loc3)
    return %0 : tensor<16x64xf32>
  }
)";

// What every partitioner does with one product.
TEST(ModuleProgram, OneProduct) {
  EXPECT_EQ(flow_bytes(kProduct, {P("x", none), P(none, "y")}), 0);
  // Both split where they are summed: the result is all-reduced.
  EXPECT_EQ(flow_bytes(kProduct, {P(none, "y"), P("y", none)}), 16 * 64 * 4);
  EXPECT_EQ(flow_bytes(kProduct, {P("x", "y"), P("y", none)}), 8 * 64 * 4);
  // Only one split: it is gathered, as not every device would have its own part of the sum. If the
  // other may be split too, it is cut at no cost, and the result is summed.
  EXPECT_EQ(flow_bytes(kProduct, {P(none, "y"), P()}), 16 * 32 * 4);
  EXPECT_EQ(flow_bytes(kProduct, {P(none, "y"), std::nullopt}), 16 * 64 * 4);
  // x splits rows of the left and what is summed of the right: the result has the rows split, so
  // the right operand is gathered.
  EXPECT_EQ(flow_bytes(kProduct, {P("x", none), P("x", none)}), 32 * 64 * 4);
  // x splits what is free in both: the result's first dimension has it.
  EXPECT_EQ(flow_bytes(kProduct, {P("x", none), P(none, "x")}), 32 * 64 * 4);
  // A result wanted whole.
  EXPECT_EQ(flow_bytes(kProduct, {P("x"), P()}, {P()}), 16 * 64 * 4);
  EXPECT_EQ(flow_bytes(kProduct, {P("x"), P()}, {P("x", "y")}), 0);
}

// With the figures of the v5e: 197 Tflop/s, 819 GB/s, and 200 GB/s over 4 links.
TEST(ModuleProgram, TheTimeOfAProduct) {
  ModuleProgram program = program_of(cat("module @m {\n", kProduct, "}\n")).value();
  Target target = Target::parse("v5e:2x4").value();
  Mesh mesh = mesh_on_target(kFlowAxes, target, DeviceOrder::kTorus).value();
  LinkModel links(hardware_figures(target.topology()).value(), mesh, target.topology());
  auto time = [&](const Specs& specs, const Specs& results) {
    return program.time(mesh, links, specs, results);
  };
  // 8 rows and 16 columns on a device. The operands and the result cross the memory twice: as
  // arguments and result, and for the product.
  PredictedTime split = time({P("x", none), P(none, "y")}, {P("x", "y")});
  EXPECT_DOUBLE_EQ(split.compute_seconds, 2.0 * 8 * 32 * 16 / 197e12);
  EXPECT_DOUBLE_EQ(split.memory_seconds, 2.0 * 4 * (8 * 32 + 32 * 16 + 8 * 16) / 819e9);
  EXPECT_EQ(split.link_seconds, 0);
  // Whole values move nothing, but every device computes everything.
  PredictedTime whole = time({P(), P()}, {P()});
  EXPECT_DOUBLE_EQ(whole.compute_seconds, 8 * split.compute_seconds);
  EXPECT_GT(whole.memory_seconds, split.memory_seconds);
  EXPECT_EQ(whole.link_seconds, 0);
  EXPECT_GT(whole.seconds(), split.seconds());
  // Where both are split along what is summed, each device does a quarter of the work, and the
  // results of all are summed.
  PredictedTime summed = time({P(none, "y"), P("y", none)}, {P()});
  EXPECT_DOUBLE_EQ(summed.compute_seconds, whole.compute_seconds / 4);
  EXPECT_EQ(summed.communication, 16 * 64 * 4);
  EXPECT_DOUBLE_EQ(summed.link_seconds,
                   links.seconds(predicted_collective(CollectiveKind::kAllReduce, {AxisRef("y")},
                                                      16 * 64 * 4, mesh.size())));
  EXPECT_GT(summed.link_seconds, 0);
}

// 3 x 3 places of 4 features for each of 2 x 8 x 8 places and 16 features of the result.
TEST(ModuleProgram, TheWorkOfAConvolution) {
  ModuleProgram program = program_of(R"(module @m {
  func.func public @main(%arg0: tensor<2x8x8x4xf32>, %arg1: tensor<3x3x4x16xf32>) -> (tensor<2x8x8x16xf32>) {
    %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<2x8x8x4xf32>, tensor<3x3x4x16xf32>) -> tensor<2x8x8x16xf32>
    return %0 : tensor<2x8x8x16xf32>
  }
})")
                              .value();
  Mesh mesh(kFlowAxes);
  ProgramMoves whole =
      predict_moves(mesh, program.rules(), program.shardings(mesh, {P(), P()}, {P()}));
  ASSERT_EQ(whole.products.size(), 1u);
  EXPECT_EQ(whole.products[0].flops, 2.0 * (2 * 8 * 8 * 16) * (3 * 3 * 4));
  ProgramMoves split =
      predict_moves(mesh, program.rules(), program.shardings(mesh, {P("x"), P()}, {P("x")}));
  ASSERT_EQ(split.products.size(), 1u);
  EXPECT_EQ(split.products[0].flops, whole.products[0].flops / 2);
  EXPECT_EQ(split.products[0].memory_bytes,
            4.0 * (2 * 8 * 8 * 4 / 2 + 3 * 3 * 4 * 16 + 2 * 8 * 8 * 16 / 2));
}

TEST(ModuleProgram, AHeadOfSeveralLines) {
  std::string text = kProduct;
  text.insert(text.find("%arg1"), "\n      ");
  text.insert(text.find("->"), "\n      ");
  EXPECT_EQ(flow_bytes(text, {P("x", "y"), P("y", none)}), 8 * 64 * 4);
}

TEST(ModuleProgram, TheGenericForm) {
  constexpr const char* kGeneric =
      R"(  func.func @main(%arg0: tensor<4x16x32xf32>, %arg1: tensor<4x32x64xf32>) -> (tensor<4x16x64xf32>) {
    %0 = "stablehlo.dot_general"(%arg0, %arg1) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>}> : (tensor<4x16x32xf32>, tensor<4x32x64xf32>) -> tensor<4x16x64xf32> loc("n1")
    %1 = "stablehlo.transpose"(%0) <{permutation = array<i64: 1, 0, 2>}> : (tensor<4x16x64xf32>) -> tensor<16x4x64xf32>
    %2 = "stablehlo.reduce"(%1, %9) <{dimensions = array<i64: 2>}> ({
    ^bb0(%b0: tensor<f32>, %b1: tensor<f32>):
      %t1 = stablehlo.add %b0, %b1 : tensor<f32>
      stablehlo.return %t1 : tensor<f32>
    }) : (tensor<16x4x64xf32>, tensor<f32>) -> tensor<16x4xf32> loc("n2")
    return %2 : tensor<16x4xf32>
  }
)";
  EXPECT_EQ(flow_bytes(kGeneric, {P("y", none, "x"), P("y", "x")}), 1 * 16 * 64 * 4);
  // The last dimension is summed over while it is split: what is left, 16 x 4 over y, moves.
  EXPECT_EQ(flow_bytes(kGeneric, {P("y"), P("y", none, "x")}), 16 * 1 * 4);
}

TEST(ModuleProgram, LoopsCallsAndConstraints) {
  constexpr const char* kLoop =
      R"(  func.func @main(%arg0: tensor<16x32xf32>, %arg1: tensor<12x32x32xf32>) -> tensor<16x32xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:3 = stablehlo.while(%iterArg = %c, %iterArg_0 = %arg0, %iterArg_1 = %arg1) : tensor<i32>, tensor<16x32xf32>, tensor<12x32x32xf32>
    cond {
      %c_7 = stablehlo.constant dense<12> : tensor<i32>
      %5 = stablehlo.compare LT, %iterArg, %c_7, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %5 : tensor<i1>
    } do {
      %5 = func.call @layer(%iterArg_0, %iterArg_1, %iterArg) : (tensor<16x32xf32>, tensor<12x32x32xf32>, tensor<i32>) -> tensor<16x32xf32>
      %c_8 = stablehlo.constant dense<1> : tensor<i32>
      %6 = stablehlo.add %iterArg, %c_8 : tensor<i32>
      stablehlo.return %6, %5, %iterArg_1 : tensor<i32>, tensor<16x32xf32>, tensor<12x32x32xf32>
    }
    %2 = sdy.sharding_constraint %1#1 <@mesh, [{"x"}, {}]> : tensor<16x32xf32>
    return %2 : tensor<16x32xf32>
  }
  func.func private @layer(%arg0: tensor<16x32xf32>, %arg1: tensor<12x32x32xf32>, %arg2: tensor<i32>) -> tensor<16x32xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg1, %arg2, %c, %c, sizes = [1, 32, 32] : (tensor<12x32x32xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x32x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x32x32xf32>) -> tensor<32x32xf32>
    %2 = stablehlo.dot_general %arg0, %1, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
    %3 = stablehlo.tanh %2 : tensor<16x32xf32>
    return %3 : tensor<16x32xf32>
  }
)";
  // Each of 12 layers: its rows over x, the weights summed over y: one all-reduce of 8 x 32 floats.
  // The columns of what is carried are split over y, so that they fit the weights; the constraint
  // at the end wants them whole.
  EXPECT_EQ(flow_bytes(kLoop, {P("x"), P(none, "y")}), 12 * 8 * 32 * 4 + 8 * 32 * 4);
  // Columns over y: each layer needs them whole, and so does the constraint at the end.
  EXPECT_EQ(flow_bytes(kLoop, {P("x"), P(none, none, "y")}), 12 * 8 * 32 * 4 + 8 * 32 * 4);
  EXPECT_EQ(flow_bytes(kLoop, {P("x"), P()}), 0);
}

TEST(ModuleProgram, ShapesTellTheRest) {
  constexpr const char* kRest =
      R"(  func.func @main(%arg0: tensor<16x32xf32>, %arg1: tensor<32xf32>) -> tensor<4x4x32xf32> {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<32xf32>) -> tensor<16x32xf32>
    %1 = stablehlo.add %arg0, %0 : tensor<16x32xf32>
    %2 = stablehlo.reshape %1 : (tensor<16x32xf32>) -> tensor<4x4x32xf32>
    return %2 : tensor<4x4x32xf32>
  }
)";
  EXPECT_EQ(flow_bytes(kRest, {P("x"), P()}), 0);
  EXPECT_EQ(flow_bytes(kRest, {P("x", "y"), P("y")}), 0);
  // The vector split by x cannot join rows that x splits: columns become rows.
  EXPECT_EQ(flow_bytes(kRest, {P("x"), P("x")}), 8 * 32 * 4);
  // 16 rows over 8 become 4 over 4 and 4 over 2, each where it is; a whole result is gathered.
  EXPECT_EQ(flow_bytes(kRest, {P(axes("x", "y")), P()}), 0);
  EXPECT_GE(flow_bytes(kRest, {P(axes("x", "y")), P()}, {P()}), 16 * 32 * 4);
}

TEST(ModuleProgram, DamagedTexts) {
  EXPECT_FALSE(program_of("module {}").ok());
  std::string text = kProduct;
  for (std::size_t at = 0; at < text.size(); ++at)
    for (char c : {'<', '"', '}', '%', '[', '9', '\n'}) {
      std::string damaged = text;
      damaged[at] = c;
      Result<ModuleProgram> read = program_of(damaged);
      if (read.ok()) (void)read->communication(Mesh(kFlowAxes), {P("x", "y"), P("y", none)}, {P()});
    }
}

constexpr const char* kFunctions =
    R"(  func.func private @twice(%x: tensor<16x32xf32>) -> tensor<16x32xf32> {
    %0 = call @once(%x) : (tensor<16x32xf32>) -> tensor<16x32xf32>
    %1 = call @once(%0) : (tensor<16x32xf32>) -> tensor<16x32xf32>
    return %1 : tensor<16x32xf32>
  }
  func.func private @once(%x: tensor<16x32xf32>) -> tensor<16x32xf32> {
    %0 = sdy.sharding_constraint %x <@mesh, [{}, {"y"}]> : tensor<16x32xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{}, {}]> : tensor<16x32xf32>
    return %1 : tensor<16x32xf32>
  }
  func.func @main(%x: tensor<16x32xf32>) -> tensor<16x32xf32> {
    %0 = call @twice(%x) : (tensor<16x32xf32>) -> tensor<16x32xf32>
    %1 = call @missing(%0) : (tensor<16x32xf32>) -> tensor<16x32xf32>
    return %1 : tensor<16x32xf32>
  }
)";

TEST(ModuleProgram, AFunctionCountsAsOftenAsItIsCalled) {
  // Each call cuts the columns, and gathers them.
  EXPECT_EQ(flow_bytes(kFunctions, {P(none, none)}), 2 * 16 * 32 * 4);
  ModuleProgram program = program_of(kFunctions).value();
  EXPECT_EQ(program.all_ops(), 2u + 2 + 4);
  EXPECT_EQ(program.known_ops(), 2u + 1 + 4) << "all but the call of a missing function";
}

TEST(ModuleProgram, FunctionsThatCallThemselves) {
  EXPECT_TRUE(program_of(R"(func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    %0 = call @main(%x) : (tensor<8xf32>) -> tensor<8xf32>
    %1 = call @main(%0) : (tensor<8xf32>) -> tensor<8xf32>
    return %1 : tensor<8xf32>
  })")
                  .ok());
}

TEST(ModuleProgram, Branches) {
  constexpr const char* kBranches =
      R"(  func.func @main(%i: tensor<i32>, %x: tensor<16x32xf32>, %w: tensor<32x32xf32>) -> tensor<16x32xf32> {
    %0 = "stablehlo.case"(%i) ({
      stablehlo.return %x : tensor<16x32xf32>
    }, {
      %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
      stablehlo.return %1 : tensor<16x32xf32>
    }) : (tensor<i32>) -> tensor<16x32xf32>
    return %0 : tensor<16x32xf32>
  }
)";
  EXPECT_EQ(flow_bytes(kBranches, {std::nullopt, P("x"), P()}), 0);
  // The product in the second branch is summed over y. The result of the op has columns split by
  // y, as the first branch gives it; they are gathered.
  EXPECT_EQ(flow_bytes(kBranches, {std::nullopt, P("x", "y"), P("y")}, {P("x")}),
            8 * 32 * 4 + 8 * 32 * 4);
  ModuleProgram program = program_of(kBranches).value();
  EXPECT_EQ(program.known_ops(), program.all_ops());
}

// x w over rows of w, in a manual computation over y that sums the parts by hand; x is also split
// by x, which the compiler shards over.
constexpr const char* kManual =
    R"(  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%x: tensor<16x32xf32>, %w: tensor<32x64xf32>) -> tensor<16x64xf32> {
    %0 = sdy.manual_computation(%x, %w) in_shardings=[<@mesh, [{?}, {"y", ?}]>, <@mesh, [{"y", ?}, {?}]>] out_shardings=[<@mesh, [{?}, {?}], replicated={"y"}>] manual_axes={"y"} (%a: tensor<16x8xf32>, %b: tensor<8x64xf32>) {
      %1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8x64xf32>) -> tensor<16x64xf32>
      %2 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
      ^bb0(%c: tensor<f32>, %d: tensor<f32>):
        %3 = stablehlo.add %c, %d : tensor<f32>
        stablehlo.return %3 : tensor<f32>
      }) : (tensor<16x64xf32>) -> tensor<16x64xf32>
      sdy.return %2 : tensor<16x64xf32>
    } : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
    return %0 : tensor<16x64xf32>
  }
)";

TEST(ModuleProgram, ManualComputations) {
  ModuleProgram program = program_of(kManual).value();
  EXPECT_EQ(program.known_ops(), program.all_ops());
  Mesh mesh(kFlowAxes);
  // As the text wants its operands: only the sum that it contains. The rows are split by x.
  EXPECT_EQ(program.communication(mesh, {P("x", "y"), P("y", none)}), 8 * 64 * 4);
  ProgramMoves found = predict_moves(mesh, program.rules(),
                                     program.shardings(mesh, {P("x", "y"), P("y", none)}, {}));
  ASSERT_EQ(found.moves.size(), 1u);
  EXPECT_EQ(found.moves[0].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(found.moves[0].axes, AxisList({"y"}));
  EXPECT_EQ(found.moves[0].who, CollectiveCause::kAsked);
  // Rows that nothing splits stay whole: inside, no axis but x may split them.
  EXPECT_EQ(program.communication(mesh, {P(none, "y"), P("y", none)}), 16 * 64 * 4);
  // x is whole, and cut where it enters; w is split by columns, and its parts are exchanged.
  EXPECT_EQ(program.communication(mesh, {P(none, none), P(none, "y")}),
            16 * 64 * 4 + 32 * 64 * 4 / 4);
  // Split by y, the result is cut where it leaves; split by x, it is already.
  EXPECT_EQ(program.communication(mesh, {P("x", "y"), P("y", none)}, {P("x", "y")}), 8 * 64 * 4);
  // Wanted whole, it is gathered over x.
  EXPECT_EQ(program.communication(mesh, {P("x", "y"), P("y", none)}, {P(none, none)}),
            8 * 64 * 4 + 16 * 64 * 4);
}

// The same groups along an axis, of a second mesh that is equal: as JAX 0.12 writes them.
TEST(ModuleProgram, GroupsAlongAxes) {
  std::string text = kManual;
  std::string_view listed = "dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>";
  text.replace(text.find(listed), listed.size(),
               "#stablehlo.replica_group_mesh_axes<mesh = @mesh_0, axes = "
               "[#stablehlo.axis_ref<name = \"y\">]>");
  text.insert(2, "sdy.mesh @mesh_0 = <[\"x\"=2, \"y\"=4]>\n  ");
  ModuleProgram program = program_of(text).value();
  for (std::int64_t y : {4, 2}) {  // the groups follow the mesh
    Mesh mesh({{"x", 8 / y}, {"y", y}});
    ProgramMoves found = predict_moves(mesh, program.rules(),
                                       program.shardings(mesh, {P("x", "y"), P("y", none)}, {}));
    ASSERT_EQ(found.moves.size(), 1u);
    EXPECT_EQ(found.moves[0].axes, AxisList({"y"}));
    EXPECT_EQ(found.moves[0].bytes, 16 * y / 8 * 64 * 4);
  }
  Mesh alone({{"x", 8}, {"y", 1}});
  EXPECT_EQ(program.communication(alone, {P("x", none), P(none, none)}), 0);
}

TEST(ModuleProgram, ACollectiveInALoopOfAManualComputation) {
  constexpr const char* kRing =
      R"(  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func @main(%x: tensor<16x32xf32>) -> tensor<16x32xf32> {
    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"y"}, {"x"}]>] out_shardings=[<@mesh, [{"y"}, {"x"}]>] manual_axes={"x", "y"} (%a: tensor<4x16xf32>) {
      %c = stablehlo.constant dense<0> : tensor<i32>
      %c_0 = stablehlo.constant dense<1> : tensor<i32>
      %c_1 = stablehlo.constant dense<3> : tensor<i32>
      %1:2 = stablehlo.while(%i = %c, %b = %a) : tensor<i32>, tensor<4x16xf32>
      cond {
        %2 = stablehlo.compare LT, %i, %c_1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %2 : tensor<i1>
      } do {
        %2 = stablehlo.add %i, %c_0 : tensor<i32>
        %3 = "stablehlo.collective_permute"(%b) <{source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64>}> : (tensor<4x16xf32>) -> tensor<4x16xf32>
        stablehlo.return %2, %3 : tensor<i32>, tensor<4x16xf32>
      }
      sdy.return %1#1 : tensor<4x16xf32>
    } : (tensor<16x32xf32>) -> tensor<16x32xf32>
    return %0 : tensor<16x32xf32>
  }
)";
  EXPECT_EQ(flow_bytes(kRing, {P("y", "x")}), 3 * 4 * 16 * 4);
  // Entering costs an exchange, as rows become columns.
  EXPECT_GT(flow_bytes(kRing, {P("x", "y")}), 3 * 4 * 16 * 4);
}

TEST(ModuleProgram, ALoopOfUnknownLengthCountsOnce) {
  constexpr const char* kUnknownLength =
      R"(  func.func @main(%n: tensor<i32>, %x: tensor<16x32xf32>) -> tensor<16x32xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %1:2 = stablehlo.while(%i = %c, %b = %x) : tensor<i32>, tensor<16x32xf32>
    cond {
      %2 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %2 = stablehlo.add %i, %c_0 : tensor<i32>
      %3 = sdy.sharding_constraint %b <@mesh, [{}, {}]> : tensor<16x32xf32>
      %4 = sdy.sharding_constraint %3 <@mesh, [{"x"}, {}]> : tensor<16x32xf32>
      stablehlo.return %2, %4 : tensor<i32>, tensor<16x32xf32>
    }
    return %1#1 : tensor<16x32xf32>
  }
)";
  EXPECT_EQ(flow_bytes(kUnknownLength, {std::nullopt, P("x", none)}), 16 * 32 * 4);
}

TEST(ModuleProgram, WhatIsOverAnotherMeshIsLeftOut) {
  constexpr const char* kTwoMeshes =
      R"(  sdy.mesh @mesh = <["x"=2, "y"=4]>
  sdy.mesh @other = <["x"=8]>
  func.func @main(%x: tensor<16x32xf32>) -> tensor<16x32xf32> {
    %0 = sdy.sharding_constraint %x <@other, [{}, {"x"}]> : tensor<16x32xf32>
    return %0 : tensor<16x32xf32>
  }
)";
  EXPECT_EQ(flow_bytes(kTwoMeshes, {P("x", none)}), 0);
  Mesh mesh(kFlowAxes);
  ModuleProgram program = program_of(kTwoMeshes).value();
  EXPECT_EQ(predict_moves(mesh, program.rules(), program.shardings(mesh, {}, {})).left_out, 2u);
}

TEST(ModuleProgram, UnknownOpsGiveWholeResults) {
  constexpr const char* kUnknown =
      R"(  func.func @main(%x: tensor<16x32xf32>) -> tensor<16x32xf32> {
    %0 = stablehlo.tanh %x : tensor<16x32xf32>
    %1 = mine.op %0 {many = 3 : i64} : tensor<16x32xf32>
    %2:2 = "mine.other"(%1, %0) ({
      ^bb0(%a: tensor<f32>):
        mine.yield %a : tensor<f32>
    }) : (tensor<16x32xf32>, tensor<16x32xf32>) -> (tensor<16x32xf32>, !mine.type)
    %3 = stablehlo.add %2#0, %1 : tensor<16x32xf32>
    return %3 : tensor<16x32xf32>
  }
)";
  EXPECT_EQ(flow_bytes(kUnknown, {P("x", "y")}), 0);
  EXPECT_EQ(flow_bytes(kUnknown, {P("x", "y")}, {P("x")}), 0) << "whole values are cut";
  ModuleProgram program = program_of(kUnknown).value();
  EXPECT_EQ(program.all_ops(), 4u);
  EXPECT_EQ(program.known_ops(), 2u);
  std::vector<PartialSharding> values = program.shardings(Mesh(kFlowAxes), {P("x", "y")}, {});
  EXPECT_EQ(values[1].axes[0], AxisList({"x"})) << "tanh of x";
  EXPECT_TRUE(values[2].is_whole());
}

TEST(ModuleProgram, CustomCallsTakeWholeOperands) {
  constexpr const char* kCustom =
      R"(  func.func @main(%x: tensor<16x32xf32>) -> tensor<16x32xf32> {
    %0 = stablehlo.custom_call @mine(%x) : (tensor<16x32xf32>) -> tensor<16x32xf32>
    return %0 : tensor<16x32xf32>
  }
)";
  EXPECT_EQ(flow_bytes(kCustom, {P("x", none)}), 16 * 32 * 4);
  EXPECT_EQ(flow_bytes(kCustom, {P()}, {P("x", none)}), 0) << "the result is cut";
}

// A step of a model with a loop over 12 layers, as JAX wrote it.
TEST(ModuleProgram, ARecordedModel) {
  std::ifstream file(MESHARD_GOLDEN "/exported/gpt12_scan_v5e_4x4.mlir");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  Mesh mesh({{"dp", 4}, {"tp", 4}});
  ModuleProgram program = program_of(text).value();
  EXPECT_EQ(program.known_ops(), program.all_ops());
  EXPECT_GT(program.all_ops(), 900u);
  std::size_t in_loops = 0;
  for (const RuledOpFacts& op : program.rules().facts)
    in_loops += program.rules().regions[op.region].executions == 12;
  EXPECT_GT(in_loops, 300u) << "forward and backward";
  // Its arguments whole, but for the tokens: the gradient of each weight is summed over them, once.
  Specs specs;
  double weights = 0;
  stablehlo::ModuleFacts facts = stablehlo::read_module(text).value();
  for (const stablehlo::ModuleValue& argument : facts.arguments) {
    TensorType type = stablehlo::parse_type(argument.type).value();
    bool split = argument.name == "tok" || argument.name == "tgt";
    specs.emplace_back(
        split ? P("dp", none)
              : PartitionSpec(std::vector<DimensionSpec>(static_cast<std::size_t>(type.rank()))));
    if (argument.name.starts_with("p[")) weights += static_cast<double>(type.bytes());
  }
  EXPECT_GT(weights, 0);
  double moved = program.communication(mesh, specs, {});
  EXPECT_GE(moved, weights);
  EXPECT_LT(moved, 1.1 * weights);
}

// The compiler is the reference where it does not find a better way.
TEST(ModuleProgram, WhatTheCompilerMoves) {
  if (std::string reason = why_no_plugin(); !reason.empty())
    GTEST_SKIP() << "no CPU plugin: " << reason;
  ExplainForOptions options;
  options.compile.use_cache = false;
  Target target = Target::parse("cpu:8").value();
  Mesh mesh(kFlowAxes);
  struct Case {
    PartitionSpec x, w, y;
  };
  for (const Case& one : {Case{P("x", none), P(none, "y"), P("x", "y")},
                          Case{P(none, "y"), P("y", none), P(none, none)},
                          Case{P("x", "y"), P("y", none), P("x", none)},
                          Case{P(none, "y"), P(none, none), P(none, none)},
                          Case{P("x", none), P(none, none), P(none, none)}}) {
    std::string text = kProduct;
    auto insert = [&](std::string_view after, const PartitionSpec& spec) {
      text.insert(text.find(after) + after.size(),
                  cat(" {sdy.sharding = ", shardy_text(Sharding(mesh, spec), "mesh"), "}"));
    };
    insert("(tensor<16x64xf32>", one.y);
    insert("%arg1: tensor<32x64xf32>", one.w);
    insert("%arg0: tensor<16x32xf32>", one.x);
    text = cat("module @m {\n  sdy.mesh @mesh = ", shardy_text(mesh), "\n", text, "}\n");
    text.replace(text.find(" loc(#loc3)"), 11, "");
    ProgramReport report = explain_module(text, target, options);
    double moved = 0;
    for (const Collective& collective : report.collectives())
      moved += static_cast<double>(collective.bytes());
    EXPECT_EQ(program_of(text)->communication(mesh, {one.x, one.w}, {one.y}), moved) << text;
  }
}

}  // namespace
}  // namespace meshard
