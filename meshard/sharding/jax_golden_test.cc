// Shardings against the answers JAX gave (tests/golden/jax/README.md).
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "meshard/mesh/shardy_text.h"
#include "meshard/sharding/sharding.h"
#include "meshard/sharding/shardy_text.h"
#include "meshard/sharding/tile_assignment.h"

namespace meshard {
namespace {

using Json = nlohmann::json;

const Json& golden(const std::string& name) {
  static std::map<std::string, Json> files;
  if (!files.contains(name)) {
    std::string here = __FILE__;
    std::string root = here.substr(0, here.rfind("meshard/sharding/"));
    std::ifstream file(root + "tests/golden/jax/" + name);
    if (!file) throw std::runtime_error("cannot read " + root + "tests/golden/jax/" + name);
    files[name] = Json::parse(file);
  }
  return files[name];
}

Mesh mesh_named(const std::string& name) {
  const Json& json = golden("named_sharding.json").at("meta").at("meshes").at(name);
  std::vector<MeshAxis> axes;
  for (std::size_t i = 0; i < json.at("axis_names").size(); ++i)
    axes.push_back({json.at("axis_names")[i], json.at("axis_sizes")[i]});
  return Mesh(axes, json.at("device_ids").get<std::vector<std::int64_t>>());
}

PartitionSpec spec_of(const Json& json) {
  std::vector<DimensionSpec> dimensions;
  for (const Json& entry : json) {
    if (entry.is_null()) {
      dimensions.push_back(none);
    } else if (entry == "*") {
      dimensions.push_back(open);
    } else if (entry.is_string()) {
      dimensions.push_back(entry.get<std::string>());
    } else {
      AxisList axes;
      for (const Json& axis : entry) axes.push_back(AxisRef(axis.get<std::string>()));
      dimensions.push_back(DimensionSpec(axes));
    }
  }
  return PartitionSpec(dimensions);
}

// Where JAX raises (uneven sizes), the field holds {"error": ...} and is not compared: we allow
// them.
bool answered(const Json& test, const char* field) {
  return test.contains(field) && !(test[field].is_object() && test[field].contains("error"));
}

void check_slices(const Json& test, const Sharding& s, const std::vector<std::int64_t>& shape) {
  SliceTable all = s.slices(shape);
  for (std::size_t p = 0; p < test["indices"].size(); ++p) {
    Slices slice = s.slice(shape, static_cast<std::int64_t>(p));
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const Json& expected = test["indices"][p][d];
      Slice want{expected[0], expected[1]};
      EXPECT_EQ(slice[d], want) << "position " << p << " dimension " << d;
      EXPECT_EQ(all[p][d], want);
    }
  }
}

void check_texts(const Json& test, const Sharding& s) {
  if (answered(test, "hlo")) {
    EXPECT_EQ(tile_assignment(s).to_string(), test["hlo"]);
    Result<Sharding> back = sharding_from_tiles(
        s.mesh(), TileAssignment::parse(test["hlo"].get<std::string>()).value(), s.rank());
    ASSERT_TRUE(back.ok()) << back.error().what();
    EXPECT_TRUE(back->is_equivalent_to(s, s.rank())) << back->to_string();
  }
  if (answered(test, "sdy")) {
    EXPECT_EQ(shardy_text(s), test["sdy"]);
  }
  if (answered(test, "sdy_mesh")) {
    EXPECT_EQ("@mesh = " + shardy_text(s.mesh()), test["sdy_mesh"]);
  }
  if (answered(test, "sdy_constraint")) {
    EXPECT_EQ(shardy_text(s), "#sdy.sharding" + test["sdy_constraint"].get<std::string>());
    EXPECT_EQ(parse_shardy_sharding(test["sdy_constraint"].get<std::string>(), s.mesh()).value(),
              s);
  }
}

TEST(JaxGolden, NamedSharding) {
  int built = 0, refused = 0;
  for (const Json& test : golden("named_sharding.json").at("cases")) {
    SCOPED_TRACE(test["id"].get<std::string>());
    Mesh mesh = mesh_named(test["mesh"]);
    PartitionSpec spec = spec_of(test["spec"]);
    std::vector<std::int64_t> shape = test["shape"];
    // A spec longer than the rank is refused at once; JAX refuses it when it is used.
    if (test.contains("ctor") || spec.size() > shape.size()) {
      EXPECT_THROW(Sharding(mesh, spec, shape.size()), Error);
      ++refused;
      continue;
    }
    ++built;
    Sharding s(mesh, spec, shape.size());
    EXPECT_EQ(s.is_fully_replicated(), test["is_fully_replicated"].get<bool>());
    EXPECT_EQ(s.is_even(shape), answered(test, "shard_shape"));
    if (answered(test, "shard_shape")) {
      EXPECT_EQ(s.shard_shape(shape),
                IntVector(IntView(test["shard_shape"].get<std::vector<std::int64_t>>())));
    }
    if (answered(test, "indices")) check_slices(test, s, shape);
    if (answered(test, "replica_id_mesh_order")) {
      for (std::size_t p = 0; p < test["replica_id_mesh_order"].size(); ++p)
        EXPECT_EQ(s.replica_id(shape, static_cast<std::int64_t>(p)),
                  test["replica_id_mesh_order"][p]);
    }
    check_texts(test, s);
  }
  EXPECT_GT(built, 800);
  EXPECT_GT(refused, 70);
}

TEST(JaxGolden, Equivalence) {
  int equivalent = 0;
  for (const Json& test : golden("sharding_equivalence.json").at("cases")) {
    SCOPED_TRACE(test["id"].get<std::string>());
    Sharding a(mesh_named(test["mesh_a"]), spec_of(test["spec_a"]));
    Sharding b(mesh_named(test["mesh_b"]), spec_of(test["spec_b"]));
    EXPECT_EQ(a.is_equivalent_to(b, test["rank"]), test["equivalent"].get<bool>());
    EXPECT_EQ(a == b, test["equal"].get<bool>());
    equivalent += test["equivalent"].get<bool>();
  }
  EXPECT_GT(equivalent, 20);
}

}  // namespace
}  // namespace meshard
