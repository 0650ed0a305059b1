// Parts in several processes: tests/processes/check_checkpoints.py.
#include "meshard/io/internal/save_items.h"

#include "meshard/graph/leaf.h"
#include "meshard/io/io_testutil.h"
#include "meshard/io/safetensors.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/runtime/plugin_testutil.h"

namespace meshard::io::internal {
namespace {

class SaveItemsOnDevices : public OnPlugin {
 protected:
  std::string path_ = testing::TempDir() + "/meshard_save_items.safetensors";
  ~SaveItemsOnDevices() override { std::filesystem::remove(path_); }
};

std::vector<NamedTensors> tensors_on(const Mesh& mesh) {
  Tensor matrix = from_host(counted(12), {4, 3});
  return {{{"copied"}, mark_sharding(matrix, mesh, P()), 0},
          {{"host"}, matrix, 0},
          {{"l.0", "l.1", "l.2", "l.3"}, mark_sharding(matrix, mesh, P("x")), 1},
          {{"rows"}, mark_sharding(matrix, mesh, P("x")), 0}};
}

TEST_F(SaveItemsOnDevices, OneProcessOwnsEachPart) {
  SaveItems items = items_of_process(tensors_on(Mesh({{"x", 2}, {"y", 2}})), 0, "f", {});
  std::vector<std::vector<std::string>> names;
  std::int64_t bytes = 0;
  for (const SaveItem& item : items.items) {
    names.push_back(item.names);
    bytes += item.all.bytes();
  }
  // Stacked layers are tensors of their own, so a shard over layers has whole ones.
  EXPECT_EQ(names, (std::vector<std::vector<std::string>>{{"copied"},
                                                          {"host"},
                                                          {"l.0", "l.1"},
                                                          {"l.2", "l.3"},
                                                          {"rows[0:2, 0:3]"},
                                                          {"rows[2:4, 0:3]"}}));
  EXPECT_EQ(bytes, 4 * 12 * 4);
  EXPECT_EQ(items.index.whole.at("l.3"), "f");
  EXPECT_EQ(items.index.split.at("rows").parts.at("[2:4, 0:3]").box, (Box{{2, 4}, {0, 3}}));
  items.index.check_parts("x").value();
  EXPECT_EQ(items.index.total_size, 4u * 12 * 4);
  EXPECT_EQ(items.tensors.size(), 4u);
  // Another process has no devices here.
  EXPECT_TRUE(items_of_process(tensors_on(Mesh({{"x", 2}})), 1, "f", {}).items.empty());
}

TEST_F(SaveItemsOnDevices, PartsAreWrittenUnderTheirNames) {
  SaveItems items = items_of_process(tensors_on(Mesh({{"x", 2}})), 0, "f", {});
  items.take({});
  write_items(path_, items, {{"a", "b"}}, {}).value().commit().value();
  SafetensorsFile file = SafetensorsFile::open(path_).value();
  EXPECT_EQ(file.entries().size(), 8u);
  EXPECT_EQ(file.metadata().at("a"), "b");
  EXPECT_EQ(file.array("l.2").value(), HostArray::from_vector<float>(counted(3, 6), {3}));
  EXPECT_EQ(file.array("rows[2:4, 0:3]").value(),
            HostArray::from_vector<float>(counted(6, 6), {2, 3}));
  EXPECT_EQ(file.array("copied").value(), HostArray::from_vector<float>(counted(12), {4, 3}));
}

TEST_F(SaveItemsOnDevices, OneFileHasWholeTensors) {
  SaveItems items = items_of_one_file(tensors_on(Mesh({{"x", 2}, {"y", 2}})), {});
  write_items(path_, items, {}, {}).value().commit().value();
  SafetensorsFile file = SafetensorsFile::open(path_).value();
  EXPECT_EQ(file.entries().size(), 7u);
  EXPECT_EQ(file.array("l.2").value(), HostArray::from_vector<float>(counted(3, 6), {3}));
  EXPECT_EQ(file.array("rows").value(), HostArray::from_vector<float>(counted(12), {4, 3}));
}

}  // namespace
}  // namespace meshard::io::internal
