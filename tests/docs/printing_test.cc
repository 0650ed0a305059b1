// Every public value type prints: to_string(x), stream << x, and GoogleTest's messages.
#include <gtest/gtest.h>
#include <meshard/meshard.h>

#include <sstream>
#include <string>

namespace {

using namespace meshard;

template <class T>
std::string printed(const T& value) {
  std::ostringstream stream;
  stream << value;
  EXPECT_EQ(std::string(to_string(value)), stream.str());
  EXPECT_EQ(testing::PrintToString(value), stream.str());
  return stream.str();
}

const Mesh kMesh({{"data", 2}, {"model", 4}});

// The texts of `parse`, and those that the comments of the types promise.
TEST(Printing, LayoutsAndMeshes) {
  EXPECT_EQ(printed(IntTuple{2, 4}), "(2,4)");
  EXPECT_EQ(printed(Layout(IntTuple{2, 4}, IntTuple{4, 1})), "(2,4):(4,1)");
  EXPECT_EQ(printed(kMesh), "mesh<data=2, model=4>");
  EXPECT_EQ(printed(MeshAxis{"data", 2}), "data=2");
  EXPECT_EQ(printed(MeshAxis{"data", 2, AxisKind::kExplicit}), "data=2 explicit");
  EXPECT_EQ(printed(AxisKind::kAuto), "auto");
  EXPECT_EQ(printed(RankOrder::kSorted), "sorted");
  EXPECT_EQ(printed(Uneven::kError), "error");
  EXPECT_EQ(printed(AxisRef("x", 2, 4)), "\"x\":(2)4");
  EXPECT_EQ(to_string(AxisList{"x", "y"}), "{\"x\", \"y\"}");
  EXPECT_EQ(printed(RankMap::listed({4, 5, 6})), "[4,5,6]");
  EXPECT_EQ(printed(*kMesh.group({"data"}, 5)), "[1,5]");
  EXPECT_EQ(printed(overlap(kMesh, kMesh)), std::string(to_string(overlap(kMesh, kMesh))));
}

TEST(Printing, Shardings) {
  Sharding sharding(kMesh, P("data", none));
  EXPECT_EQ(printed(P("data", unconstrained)[1]), "unconstrained");
  EXPECT_EQ(printed(P("data", none)), "P(\"data\", none)");
  EXPECT_EQ(printed(sharding), "Sharding(mesh<data=2, model=4>, P(\"data\", none))");
  EXPECT_EQ(printed(DimensionSlice{2, 4}), "2:4");
  EXPECT_EQ(to_string(sharding.slice(IntVector{4, 3}, 7)), "[2:4, 0:3]");
  EXPECT_EQ(printed(sharding.distinct_slices(IntVector{4, 3})), "{[0:2, 0:3], [2:4, 0:3]}");
  EXPECT_EQ(printed(Shard(0)), "Shard(dim=0)");
  EXPECT_EQ(printed(Replicate()), "Replicate()");
  EXPECT_EQ(printed(Partial("max")), "Partial(max)");
  EXPECT_EQ(to_string(Placement(Shard(1))), "Shard(dim=1)");
  EXPECT_EQ(printed(Placements{Shard(0), Replicate()}), "(Shard(dim=0), Replicate())");
  ShardingSpec spec(kMesh, P("data"));
  EXPECT_EQ(printed(spec), spec.to_string());
  EXPECT_EQ(printed(sharding_type(sharding)), "PARTIAL");
  TileAssignment tiles = tile_assignment(sharding);
  EXPECT_EQ(printed(tiles), "{devices=[2,1,4]<=[8] last_tile_dim_replicate}");
  EXPECT_EQ(printed(OpSharding(tiles)), OpSharding(tiles).to_string());
  EXPECT_EQ(printed(TileKind::kReplicated), "replicated");
  EXPECT_EQ(printed(tile_array(Sharding(kMesh, P("data", "model")))),
            "[2,4] of devices 0,1,2,3,4,5,6,7");
  EXPECT_EQ(printed(tile_groups(Sharding(kMesh, P("data")))), "[2] tiles on {0,1,2,3}, {4,5,6,7}");
}

TEST(Printing, Arrays) {
  EXPECT_EQ(printed(DType::bf16), "bf16");
  EXPECT_EQ(printed(Shape({8, 4})), "[8, 4]");
  EXPECT_EQ(printed(TensorType{DType::f32, {8, 4}}), "f32[8,4]");
  EXPECT_EQ(printed(Complex64(1, -2)), "1-2j");
  EXPECT_EQ(printed(Complex128(0.5, -0.0)), "0.5-0j");
  EXPECT_EQ(printed(BFloat16(0.5)), "0.5");
  EXPECT_EQ(printed(Float8E4M3FN(1000.0)), "nan");
  EXPECT_EQ(printed(Float8E8M0FNU(4.0)), "4");
  EXPECT_EQ(printed(DimensionSlice{2, 4}), "2:4");
  EXPECT_EQ(to_string(Box{{0, 2}, {1, 3}}), "[0:2, 1:3]");
  EXPECT_EQ(printed(HostArray::from_vector<float>({1, 2})), "[1, 2] f32[2]");
  EXPECT_EQ(printed(range(none, -1)), ":-1");
  EXPECT_EQ(printed(range(1, 9, 2)), "1:9:2");
}

TEST(Printing, TensorsAndPrograms) {
  Tensor x = mark_sharding(from_host<float>({1, 2, 3}, {3}), Mesh({{"x", 2}}), P("x"));
  EXPECT_EQ(printed(x), "[1, 2, 3] f32[3]");
  EXPECT_EQ(printed(abstract_tensor({3}, DType::f32)), "f32[3] (abstract)");
  EXPECT_EQ(printed(ShardedTensor(x)), "f32[3] over Sharding(mesh<x=2>, P(\"x\"))");
  EXPECT_EQ(printed(local_shards(x)[1]), "shard 1 on device 1: [2:3] of f32[3]");
  Graph graph = trace_program([](Tensor y) { return y + 1; }, x).program.graph;
  EXPECT_NE(printed(graph).find("return"), std::string::npos);
  EXPECT_NE(printed(predict(graph)), "");
  EXPECT_EQ(printed(RuntimeCounters()), "nothing happened\n");
  EXPECT_NE(printed(runtime_counters()), "");
  EXPECT_EQ(printed(ErrorCode::kNotFound), "not found");
  EXPECT_EQ(printed(Error(ErrorCode::kNotFound, "[io] nothing")), "not found: [io] nothing");
  EXPECT_EQ(printed(SourceLocation{"a/b.cc", "f", 3}), "b.cc:3");
}

TEST(Printing, ImportedPrograms) {
  const std::string text =
      "module @m { func.func public @main(%a: tensor<2xf32> loc(\"x\")) -> tensor<2xf32> { return "
      "%a "
      ": tensor<2xf32> } }";
  ImportedProgram program = load_program_from_bytes(text).value();
  EXPECT_EQ(printed(program), "m on 1 device: 1 argument, 1 result");
  EXPECT_EQ(printed(program.arguments()[0]), "[0]: f32[2]");
}

TEST(Printing, Processes) {
  EXPECT_EQ(printed(Reduction::kMax), "max");
  EXPECT_EQ(printed(LossKind::kStopped), "stopped");
  ProcessInfo info{.rank = 2, .host = "alpha", .pid = 4711};
  EXPECT_EQ(printed(info), "process 2 (pid 4711 on alpha)");
  ProcessLoss loss{.rank = 2, .host = "alpha", .pid = 4711, .activity = "step"};
  EXPECT_EQ(printed(loss), "process 2 (pid 4711 on alpha) died; it was last in \"step\", 0 s ago");
}

TEST(Printing, Hardware) {
  Target target = Target::parse("v5e:4x4").value();
  const Topology& topology = target.topology();
  EXPECT_EQ(printed(topology), "16 devices of TPU v5 lite, 4x4x1 chips");
  EXPECT_EQ(printed(tpu_topology("v4:4x4x4").value()), "128 devices of TPU v4, 4*x4*x4* chips");
  EXPECT_EQ(printed(Granule::kProcess), "process");
  EXPECT_EQ(printed(topology.devices()[1]), topology.devices()[1].to_string());
  RingMesh ring = ring_mesh(topology, {16}, std::vector<std::string>{"x"});
  EXPECT_EQ(printed(*ring.hops), "1 (worst 1)");
  EXPECT_EQ(printed(ring.hops->axes[0]), "1 (worst 1)");
  EXPECT_NE(printed(ring).find(", hops x 1 (worst 1)"), std::string::npos);
  EXPECT_NE(printed(*runtime_client().addressable_devices()[0]), "");
}

}  // namespace
