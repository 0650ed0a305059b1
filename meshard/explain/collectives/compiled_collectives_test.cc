// Tests find_collectives on sharded programs that a real compiler compiled. The expected bytes
// follow from the formulas for each pattern.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "meshard/explain/collectives/collectives.h"
#include "meshard/explain/collectives/origin.h"
#include "meshard/explain/hlo_testutil.h"

namespace meshard {
namespace {

const Mesh kCompiledMesh({{"data", 2}, {"model", 4}});

class CompiledCollectives : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string reason = why_no_plugin(); !reason.empty())
      GTEST_SKIP() << "no CPU plugin: " << reason;
  }

  // `header` is the text from the parameters of @main up to the opening brace of the body.
  static std::vector<Collective> compile(const std::string& header, const std::string& body) {
    std::string text =
        "module @main attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {\n"
        "  sdy.mesh @mesh = <[\"data\"=2, \"model\"=4]>\n"
        "  func.func public @main(" +
        header + " {\n" + body + "  }\n}\n";
    return find_collectives(compile_module(text), kCompiledMesh, nullptr).value();
  }

  // `%x: tensor<type> {sdy.sharding = ...}`
  static std::string sharded(const std::string& type, const std::string& dimensions) {
    return "tensor<" + type + "> {sdy.sharding = #sdy.sharding<@mesh, [" + dimensions + "]>}";
  }
};

std::vector<std::string> compiled_ops_of(const Collective& one) {
  std::vector<std::string> ops;
  for (const OriginPlace& place : one.origin.places) ops.push_back(place.op);
  return ops;
}

TEST_F(CompiledCollectives, ColumnThenRowParallelNeedsOneAllReduce) {
  std::vector<Collective> found =
      compile("%x: " + sharded("16x32xf32", "{\"data\"}, {}") +
                  ", %v: " + sharded("32x64xf32", "{}, {\"model\"}") +
                  ", %w: " + sharded("64x32xf32", "{\"model\"}, {}") + ") -> (" +
                  sharded("16x32xf32", "{\"data\"}, {}") + ")",
              R"(
    %0 = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32> loc("n3")
    %1 = stablehlo.tanh %0 : tensor<16x64xf32> loc("n4")
    %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32> loc("n5")
    return %2 : tensor<16x32xf32>
)");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, CollectiveKind::kAllReduce);
  EXPECT_EQ(found[0].axes, AxisList({"model"}));
  EXPECT_EQ(found[0].group_size, 4);
  EXPECT_EQ(found[0].bytes_in, 16 / 2 * 32 * 4);  // one device's rows of the result
  EXPECT_EQ(found[0].bytes_out, 16 / 2 * 32 * 4);
  EXPECT_EQ(found[0].origin.certainty, OriginCertainty::kExact);
  EXPECT_THAT(compiled_ops_of(found[0]), testing::ElementsAre("n5"));
  EXPECT_EQ(found[0].to_string(), "all-reduce on axis \"model\", 1 KiB, from n5 (exact), inserted");
}

TEST_F(CompiledCollectives, DataParallelGradientsAreReducedTogether) {
  std::vector<Collective> found =
      compile("%x: " + sharded("16x32xf32", "{\"data\"}, {}") +
                  ", %dy: " + sharded("16x8xf32", "{\"data\"}, {}") +
                  ", %dz: " + sharded("16x4xf32", "{\"data\"}, {}") + ") -> (" +
                  sharded("32x8xf32", "{}, {}") + ", " + sharded("32x4xf32", "{}, {}") + ")",
              R"(
    %0 = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0] : (tensor<16x32xf32>, tensor<16x8xf32>) -> tensor<32x8xf32> loc("n3")
    %1 = stablehlo.dot_general %x, %dz, contracting_dims = [0] x [0] : (tensor<16x32xf32>, tensor<16x4xf32>) -> tensor<32x4xf32> loc("n4")
    return %0, %1 : tensor<32x8xf32>, tensor<32x4xf32>
)");
  std::int64_t bytes = 0;
  std::vector<std::string> ops;
  for (const Collective& one : found) {
    EXPECT_EQ(one.kind, CollectiveKind::kAllReduce);
    EXPECT_EQ(one.axes, AxisList({"data"}));
    bytes += one.bytes();
    for (std::string& op : compiled_ops_of(one)) ops.push_back(std::move(op));
    // The compiler may or may not combine them.
    EXPECT_EQ(one.origin.certainty,
              found.size() == 1 ? OriginCertainty::kMerged : OriginCertainty::kExact);
  }
  EXPECT_EQ(bytes, (32 * 8 + 32 * 4) * 4);
  EXPECT_THAT(ops, testing::UnorderedElementsAre("n3", "n4"));
}

TEST_F(CompiledCollectives, ReshardingGathersOrExchanges) {
  std::vector<Collective> gather = compile("%x: " + sharded("16x32xf32", "{\"model\"}, {}") +
                                               ") -> (" + sharded("16x32xf32", "{}, {}") + ")",
                                           R"(
    %0 = stablehlo.tanh %x : tensor<16x32xf32> loc("n1")
    return %0 : tensor<16x32xf32>
)");
  ASSERT_EQ(gather.size(), 1u);
  EXPECT_EQ(gather[0].kind, CollectiveKind::kAllGather);
  EXPECT_EQ(gather[0].axes, AxisList({"model"}));
  EXPECT_EQ(gather[0].bytes_in, 16 / 4 * 32 * 4);
  EXPECT_EQ(gather[0].bytes_out, 16 * 32 * 4);
  EXPECT_THAT(compiled_ops_of(gather[0]), testing::ElementsAre("n1"));

  std::vector<Collective> exchange =
      compile("%x: " + sharded("16x32xf32", "{\"model\"}, {}") + ") -> (" +
                  sharded("16x32xf32", "{}, {\"model\"}") + ")",
              R"(
    %0 = sdy.sharding_constraint %x <@mesh, [{}, {"model"}]> : tensor<16x32xf32> loc("n1")
    return %0 : tensor<16x32xf32>
)");
  ASSERT_EQ(exchange.size(), 1u);
  EXPECT_EQ(exchange[0].kind, CollectiveKind::kAllToAll);
  EXPECT_EQ(exchange[0].axes, AxisList({"model"}));
  EXPECT_EQ(exchange[0].bytes_in, 16 * 32 / 4 * 4);
  EXPECT_EQ(exchange[0].bytes_out, 16 * 32 / 4 * 4);
  EXPECT_EQ(exchange[0].origin.certainty, OriginCertainty::kExact);
}

TEST_F(CompiledCollectives, RollingByOneShardIsAShift) {
  std::vector<Collective> found =
      compile("%x: " + sharded("16x32xf32", "{\"model\"}, {}") + ") -> (" +
                  sharded("16x32xf32", "{\"model\"}, {}") + ")",
              R"(
    %a = stablehlo.slice %x [4:16, 0:32] : (tensor<16x32xf32>) -> tensor<12x32xf32> loc("n1")
    %b = stablehlo.slice %x [0:4, 0:32] : (tensor<16x32xf32>) -> tensor<4x32xf32> loc("n2")
    %c = stablehlo.concatenate %a, %b, dim = 0 : (tensor<12x32xf32>, tensor<4x32xf32>) -> tensor<16x32xf32> loc("n3")
    return %c : tensor<16x32xf32>
)");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, CollectiveKind::kCollectivePermute);
  // Device m receives the shard of device m + 1.
  EXPECT_EQ(found[0].shifts, (std::vector<AxisShift>{{{"model"}, -1, true}}));
  EXPECT_EQ(found[0].bytes(), 16 / 4 * 32 * 4);
  // Some compilers report the argument that it moves as the origin.
  EXPECT_THAT(
      found[0].to_string(),
      testing::AllOf(testing::StartsWith(
                         "collective-permute on axis \"model\", moving \"model\" by -1, 512 B"),
                     testing::AnyOf(testing::EndsWith("from n3 (exact), inserted"),
                                    testing::EndsWith("from Arg_0.1 (exact), inserted"))));
}

// A loop whose limit is `limit`, with an all-reduce inside.
std::string loop_body(const std::string& limit) {
  return R"(
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %twelve = stablehlo.constant dense<12> : tensor<i32>
    %r:2 = stablehlo.while(%i = %i0, %y = %x) : tensor<i32>, tensor<16x32xf32>
      cond {
        %p = stablehlo.compare LT, %i, )" +
         limit + R"( : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      } do {
        %z = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32> loc("n5")
        %t = stablehlo.tanh %z : tensor<16x32xf32> loc("n6")
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, %t : tensor<i32>, tensor<16x32xf32>
      } loc("n7")
    return %r#1 : tensor<16x32xf32>
)";
}

TEST_F(CompiledCollectives, ALoopOfUnknownLengthCountsOnce) {
  std::vector<Collective> found =
      compile("%x: " + sharded("16x32xf32", "{\"data\"}, {}") +
                  ", %w: " + sharded("32x32xf32", "{\"model\"}, {}") + ", %n: tensor<i32>) -> (" +
                  sharded("16x32xf32", "{\"data\"}, {}") + ")",
              loop_body("%n"));
  std::vector<Collective> inside;
  for (const Collective& one : found)
    if (one.kind == CollectiveKind::kAllReduce) inside.push_back(one);
  ASSERT_EQ(inside.size(), 1u);
  EXPECT_EQ(inside[0].loop_depth, 1);
  EXPECT_EQ(inside[0].axes, AxisList({"model"}));
  EXPECT_THAT(compiled_ops_of(inside[0]), testing::ElementsAre("n5"));
  EXPECT_EQ(inside[0].executions, 1);
  EXPECT_FALSE(inside[0].executions_known);
  for (const Collective& one : found) {
    EXPECT_NE(one.origin.certainty, OriginCertainty::kUnknown) << one.to_string();
  }
}

TEST_F(CompiledCollectives, ALoopOfKnownLengthCountsItsIterations) {
  std::vector<Collective> found =
      compile("%x: " + sharded("16x32xf32", "{\"data\"}, {}") +
                  ", %w: " + sharded("32x32xf32", "{\"model\"}, {}") + ") -> (" +
                  sharded("16x32xf32", "{\"data\"}, {}") + ")",
              loop_body("%twelve"));
  std::int64_t bytes = 0, reductions = 0;
  for (const Collective& one : found)
    if (one.kind == CollectiveKind::kAllReduce) {
      ++reductions;
      EXPECT_TRUE(one.executions_known);
      EXPECT_EQ(one.axes, AxisList({"model"}));
      bytes += one.total_bytes();
    }
  EXPECT_GE(reductions, 1);
  EXPECT_EQ(bytes, 12 * 8 * 32 * 4);  // an 8x32 shard per iteration
}

TEST_F(CompiledCollectives, ManualRegionsNameTheirOpsBehindTheCall) {
  std::vector<Collective> found =
      compile("%x: " + sharded("16x32xf32", "{\"model\"}, {}") + ") -> (" +
                  sharded("16x32xf32", "{\"model\"}, {}") + ")",
              R"(
    %c = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"model"}, {}]>] out_shardings=[<@mesh, [{"model"}, {}]>] manual_axes={"data","model"} (%y: tensor<4x32xf32>) {
      %p = "stablehlo.collective_permute"(%y) {source_target_pairs = dense<[[0,1],[1,2],[2,3],[3,0],[4,5],[5,6],[6,7],[7,4]]> : tensor<8x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>} : (tensor<4x32xf32>) -> tensor<4x32xf32> loc("n2")
      sdy.return %p : tensor<4x32xf32>
    } : (tensor<16x32xf32>) -> tensor<16x32xf32>
    return %c : tensor<16x32xf32>
)");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].shifts, (std::vector<AxisShift>{{{"model"}, +1, true}}));
  EXPECT_EQ(node_in_op_name(found[0].origin.places[0].op), 2u);
}

}  // namespace
}  // namespace meshard
