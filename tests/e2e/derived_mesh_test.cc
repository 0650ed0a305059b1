// Meshes derived from one root, on real devices: they can be combined in one program, and their
// replica groups match the groups that the compiler generates and accepts.
#include <algorithm>

#include "meshard/explain/hlo_testutil.h"
#include "meshard/mesh/concatenate.h"
#include "meshard/mesh/submeshes.h"
#include "meshard/sharding/replica_groups.h"
#include "meshard/stablehlo/shardy_text.h"
#include "tests/support/devices.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

using DerivedMeshes = OnDevices;
using Groups = std::vector<std::vector<std::int64_t>>;

// Values with equal placements need no communication, however their meshes were derived.
TEST_F(DerivedMeshes, MeetInOneProgram) {
  Mesh mesh({{"x", 2}, {"y", 4}});
  Mesh flat = mesh.flatten("xy"), split = mesh.unflatten("y", {{"a", 2}, {"b", 2}});
  struct Case {
    Mesh mesh;
    PartitionSpec spec;
    PartitionSpec on_root;
  };
  const Case cases[] = {
      {flat, P("xy", none), P(axes("x", "y"), none)},
      {split, P({"x", "a"}, "b"), P({"x", {"y", 1, 2}}, AxisRef("y", 2, 2))},
      {split.slice({"b", "x"}), P("b", "x"), P(AxisRef("y", 2, 2), "x")},
      {mesh["y"], P(none, "y"), P(none, "y")},
      {mesh.permute({"y", "x"}), P("y", "x"), P("y", "x")},
      {mesh.permute({"y", "x"}).flatten("yx"), P("yx"), P(axes("y", "x"))},
      {mesh.reshape({{"p", 4}, {"q", 2}}), P("q", "p"), P(AxisRef("y", 2, 2), {"x", {"y", 1, 2}})},
      {concatenate({split["b"], mesh["x"]}).flatten("bx"), P("bx"), P({{"y", 2, 2}, "x"})},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.mesh.to_string());
    Tensor a = mark_sharding(counting({8, 8}), one.mesh, one.spec);
    Tensor b = mark_sharding(counting({8, 8}, 100), mesh, one.on_root);
    auto sum_of = jit([](Tensor s, Tensor t) { return s + t; });
    Tensor c = sum_of(a, b);
    EXPECT_EQ(c.to_vector<float>(), numbers(64, 100, 2));
    EXPECT_TRUE(explain(sum_of).collectives().empty()) << explain(sum_of).to_string();
    EXPECT_EQ(explain(sum_of).mesh(), mesh);
  }
}

// Each device holds the shard that the derived mesh assigns to its coordinate.
TEST_F(DerivedMeshes, HoldTheShardsTheySay) {
  Mesh mesh({{"x", 2}, {"y", 4}}, {3, 1, 4, 0, 5, 7, 2, 6});
  for (const Mesh& derived :
       {mesh.flatten("f"), mesh.permute({"y", "x"}).flatten("g"), mesh["y"].rename({{"y", "f"}}),
        mesh.reshape({{"p", 4}, {"f", 2}}), mesh.unflatten("y", {{"a", 2}, {"f", 2}}),
        mesh.submesh("y", 7)->rename({{"y", "f"}})}) {
    SCOPED_TRACE(derived.to_string());
    std::string axis = derived.axes().back().name;
    Tensor t = mark_sharding(counting({8}), derived, P(AxisRef(axis)));
    const DeviceArray& array = device_array(t);
    std::int64_t along = static_cast<std::int64_t>(derived.rank()) - 1;
    std::int64_t part = 8 / derived.shape()[static_cast<std::size_t>(along)];
    for (std::size_t i = 0; i < array.num_shards(); ++i) {
      IntVector coordinate = *derived.coordinate(array.device_id(i));
      EXPECT_EQ(array.shard(i, {}).to_vector<float>(),
                numbers(static_cast<std::size_t>(part),
                        static_cast<float>(part * coordinate[static_cast<std::size_t>(along)])));
    }
  }
}

// A split that no sub-axis of the root can express still runs.
TEST_F(DerivedMeshes, CutsBetweenTheRootsAxes) {
  Mesh mesh({{"x", 3}, {"y", 2}});
  Tensor a = mark_sharding(counting({6, 6}), mesh, P("x", "y"));
  Tensor b = mark_sharding(counting({6, 6}), mesh.reshape({{"p", 2}, {"q", 3}}), P("p", "q"));
  EXPECT_EQ((a + b).to_vector<float>(), numbers(36, 0, 2));
}

TEST_F(DerivedMeshes, SubmeshesRunOnTheirDevices) {
  Mesh mesh({{"stage", 2}, {"x", 2}, {"y", 2}});
  Submeshes stages = mesh.submeshes({"x", "y"});
  std::vector<Tensor> parts;
  for (const Mesh& stage : stages) {
    Tensor a = mark_sharding(counting({4, 4}), stage, P("x", "y"));
    parts.push_back(matmul(a, a));
  }
  EXPECT_EQ(parts[0].to_vector<float>(), parts[1].to_vector<float>());
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(device_array(parts[1]).device_id(i), static_cast<std::int64_t>(4 + i));
  EXPECT_TRUE(throws_error([&] { sync({parts[0] + parts[1]}); }, ErrorCode::kInvalidArgument,
                           {"different sets of devices"}));
}

// Which devices an all-reduce over these groups sums: device i contributes 2^i.
std::vector<std::int64_t> members_seen(const Mesh& mesh, const Groups& groups) {
  std::string listed;
  for (const std::vector<std::int64_t>& group : groups)
    listed += cat(listed.empty() ? "[" : ", [", join(group, ", "), "]");
  std::string sharding = "#sdy.sharding<@mesh, [{\"all\"}]>";
  std::string text = cat(
      "module @main attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {\n",
      "  sdy.mesh @mesh = ", shardy_text(Mesh({{"all", mesh.size()}})), "\n",
      "  func.func public @main(%x: tensor<8xf32> {sdy.sharding = ", sharding,
      "}) -> (tensor<8xf32> {sdy.sharding = ", sharding, "}) {\n",
      "    %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{\"all\"}]>] ",
      "out_shardings=[<@mesh, [{\"all\"}]>] manual_axes={\"all\"} (%a: tensor<1xf32>) {\n",
      "      %1 = \"stablehlo.all_reduce\"(%a) ({\n",
      "      ^bb0(%p: tensor<f32>, %q: tensor<f32>):\n",
      "        %s = stablehlo.add %p, %q : tensor<f32>\n",
      "        stablehlo.return %s : tensor<f32>\n",
      "      }) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, ",
      "replica_groups = dense<[", listed, "]> : tensor<", groups.size(), "x", groups[0].size(),
      "xi64>, use_global_device_ids} : (tensor<1xf32>) -> tensor<1xf32>\n",
      "      sdy.return %1 : tensor<1xf32>\n", "    } : (tensor<8xf32>) -> tensor<8xf32>\n",
      "    return %0 : tensor<8xf32>\n  }\n}\n");
  pjrt::CompileOptions options;
  options.num_partitions = 8;
  pjrt::LoadedExecutable program = runtime_client().compile(text, options).value();
  std::vector<pjrt::Buffer> sent;
  std::vector<float> powers = {1, 2, 4, 8, 16, 32, 64, 128};
  std::vector<std::int64_t> one = {1};
  for (std::size_t k = 0; k < 8; ++k)
    sent.push_back(std::move(runtime_client()
                                 .buffer_from_host({&powers[k], pjrt::ElementType::kF32, one},
                                                   pjrt::HostSemantics::kImmutableOnlyDuringCall,
                                                   *program.devices()[k])
                                 .value()
                                 .buffer));
  const pjrt::BufferList argument = pjrt::BufferList::of(sent);
  std::vector<pjrt::BufferList> outputs(1);
  program.execute(std::vector{&argument}, outputs).value().await().value();
  std::vector<std::int64_t> seen;
  for (std::size_t k = 0; k < 8; ++k) {
    float sum = 0;
    outputs[0][k].read(std::as_writable_bytes(std::span(&sum, 1))).value();
    seen.push_back(static_cast<std::int64_t>(sum));
  }
  return seen;
}

TEST_F(DerivedMeshes, ListedReplicaGroupsRun) {
  Mesh mesh({{"x", 2}, {"y", 2}, {"z", 2}});
  struct Case {
    Mesh mesh;
    AxisList axes;
  };
  for (const Case& one :
       {Case{mesh, {"x"}}, Case{mesh, {"x", "z"}}, Case{mesh.flatten("all"), {{"all", 2, 2}}},
        Case{mesh.slice({"z", "x"}).flatten("zx"), {"zx"}},
        Case{mesh.permute({"z", "y", "x"}), {"z"}},
        Case{mesh.reshape({{"p", 4}, {"q", 2}}), {"p"}}}) {
    SCOPED_TRACE(one.mesh.to_string() + to_string(one.axes));
    std::vector<std::int64_t> seen =
        members_seen(mesh, replica_groups(one.mesh, one.axes).listed());
    for (std::int64_t device = 0; device < 8; ++device) {
      std::int64_t expected = 0;
      for (std::int64_t member : one.mesh.group(one.axes, device)->to_vector())
        expected += std::int64_t{1} << member;
      EXPECT_EQ(seen[static_cast<std::size_t>(device)], expected) << device;
    }
  }
}

// A sum over a split dimension is an all-reduce over its axes. The compiler writes its replica
// groups in the compact form.
TEST_F(DerivedMeshes, CompactReplicaGroupsAreTheCompilers) {
  Mesh mesh({{"x", 2}, {"y", 2}, {"z", 2}});
  struct Case {
    AxisList axes;
    std::string split;
  };
  for (const Case& one : {Case{{"x"}, "\"x\""}, Case{{"y"}, "\"y\""}, Case{{"z"}, "\"z\""},
                          Case{{"x", "z"}, "\"x\", \"z\""}, Case{{"y", "z"}, "\"y\", \"z\""}}) {
    SCOPED_TRACE(one.split);
    std::string text =
        "module @main attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {\n"
        "  sdy.mesh @mesh = " +
        shardy_text(mesh) +
        "\n  func.func public @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{" +
        one.split +
        "}, {}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {\n"
        "    %c = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "    %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [0] : "
        "(tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>\n"
        "    return %0 : tensor<4xf32>\n  }\n}\n";
    IotaGroups expected = replica_groups(mesh, one.axes);
    int found = 0;
    for (const HloComputation& computation : compile_module(text).computations)
      for (const HloInstruction& instruction : computation.instructions) {
        if (instruction.opcode != "all-reduce") continue;
        ++found;
        const ReplicaGroups& groups = instruction.groups;
        EXPECT_EQ(groups.expand().value(), expected.listed());
        if (groups.iota) {
          EXPECT_EQ(*groups.iota, expected);
        }
      }
    EXPECT_EQ(found, 1);
  }
}

}  // namespace
}  // namespace meshard
