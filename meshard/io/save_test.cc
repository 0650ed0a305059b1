// Saves of several processes: tests/processes/check_checkpoints.py.
#include "meshard/io/save.h"

#include "meshard/graph/leaf.h"
#include "meshard/io/checkpoint.h"
#include "meshard/io/io_testutil.h"
#include "meshard/ops/arithmetic.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/ops/composite/operators.h"
#include "meshard/processes/processes.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/trace/jit.h"

namespace meshard::io {
namespace {

class SaveOnDevices : public OnPlugin {
 protected:
  std::string path_ = testing::TempDir() + "/meshard_io_save_on_devices.safetensors";
  ~SaveOnDevices() override { std::filesystem::remove(path_); }
};

TEST_F(SaveOnDevices, WhatWasSavedIsLoadedOntoAnyMesh) {
  Mesh eight({{"x", 8}}), grid({{"a", 2}, {"b", 2}}, {7, 1, 2, 4});
  Tensor w = from_host(counted(60), {10, 6});
  Tensor rows = mark_sharding(w, eight, P("x"));  // uneven: 2 rows a device, the last have none
  std::map<std::string, Tensor> tensors{
      {"rows", rows},
      {"columns", mark_sharding(w, grid, P(none, axes("b", "a")))},
      {"replicated", mark_sharding(w, grid, P())},
      {"host", w},
      {"recorded", add(rows, 1)},
      {"empty", from_host(std::vector<float>(), {0, 3})}};
  save(path_, tensors, {{"step", "3"}}).value();
  EXPECT_EQ(SafetensorsFile::open(path_).value().metadata().at("step"), "3");
  std::map<std::string, Tensor> back = load(path_, {{"*o*", grid, P("a", "b")}}).value();
  ASSERT_EQ(back.size(), tensors.size());
  for (const auto& [name, tensor] : back)
    EXPECT_TRUE(tensor.to_host().same_bits(tensors.at(name).to_host())) << name;
  EXPECT_EQ(back.at("rows").sharding(), Sharding(grid, P("a", "b"), 2));
}

TEST_F(SaveOnDevices, SavingAFileWhileItIsReadLeavesTheReaderItsOwn) {
  save(path_, {{"w", from_host(counted(4), {4})}}).value();
  Tensor old = load(path_).value().at("w");
  save(path_, {{"w", add(old, 10)}}).value();
  EXPECT_EQ(old.to_vector<float>(), counted(4));
  EXPECT_EQ(load(path_).value().at("w").to_vector<float>(), counted(4, 10));
}

TEST_F(SaveOnDevices, ErrorsLeaveTheOldFile) {
  save(path_, {{"w", from_host(counted(4), {4})}}).value();
  EXPECT_FALSE(save(path_, {{"w", Tensor()}}).ok());
  EXPECT_FALSE(save(path_, {{"__metadata__", from_host(counted(1), {1})}}).ok());
  EXPECT_EQ(load(path_).value().at("w").to_vector<float>(), counted(4));
  EXPECT_EQ(save("/nonexistent/a", {}).error().code(), ErrorCode::kNotFound);
}

TEST_F(SaveOnDevices, AFolderHasTheNamesOfOtherLibraries) {
  std::string folder = testing::TempDir() + "/meshard_save_folder";
  std::filesystem::remove_all(folder);
  save(folder + "/", {{"w", from_host(counted(2), {2})}}).value();
  save(folder, {{"w", from_host(counted(3), {3})}}).value();
  EXPECT_EQ(SafetensorsFile::open(folder + "/model.safetensors").value().entries().size(), 1u);
  EXPECT_EQ(load(folder).value().at("w").to_vector<float>(), counted(3));
  std::filesystem::remove_all(folder);
}

TEST_F(SaveOnDevices, InTheBackgroundTheValuesAreThoseOfTheCall) {
  Mesh mesh({{"x", 4}});
  auto step = jit([](const Tensor& x) { return x + 1; }, {.donate = {0}});
  Tensor x = mark_sharding(from_host(counted(8), {8}), mesh, P("x"));
  for (int i = 0; i < 5; ++i) {
    std::string path = path_ + std::to_string(i);
    Saving saving = save_async(path, {{"x", x}, {"recorded", x * 2}}, {{"step", "1"}});
    x = step(x);  // donated
    saving.wait().value();
    EXPECT_TRUE(saving.done());
    saving.wait().value();
    std::map<std::string, Tensor> back = load(path).value();
    EXPECT_EQ(back.at("x").to_vector<float>(), counted(8, static_cast<float>(i)));
    EXPECT_EQ(back.at("recorded").to_vector<float>()[1], 2 * static_cast<float>(i + 1));
    EXPECT_EQ(Weights::open(path).value().metadata().at("step"), "1");
    std::filesystem::remove(path);
  }
}

TEST_F(SaveOnDevices, SavesToOnePathAreInOrder) {
  for (int i = 0; i < 20; ++i) {
    Saving first = save_async(path_, {{"x", from_host(counted(1000, 1), {1000})}});
    Saving second = save_async(path_, {{"x", from_host(counted(3, static_cast<float>(i)), {3})}});
    // Reading waits, and so does another save.
    EXPECT_EQ(load(path_).value().at("x").to_vector<float>(), counted(3, static_cast<float>(i)));
    EXPECT_TRUE(first.done() && second.done());
    (void)save_async(path_, {{"x", from_host(counted(1000, 1), {1000})}});
    save(path_, {{"x", from_host(counted(2), {2})}}).value();
    EXPECT_EQ(load(path_).value().at("x").to_vector<float>(), counted(2));
  }
}

TEST_F(SaveOnDevices, ErrorsInTheBackgroundGoToTheHandle) {
  EXPECT_TRUE(Saving().done());
  Saving().wait().value();
  Saving nowhere = save_async("/nonexistent/a", std::map<std::string, Tensor>{});
  EXPECT_EQ(nowhere.wait().error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(nowhere.wait().error().code(), ErrorCode::kNotFound);
  Saving undefined = save_async(path_, {{"w", Tensor()}});
  EXPECT_FALSE(undefined.wait().ok());
  std::map<std::string, std::map<std::string, Tensor>> twice;
  twice["a"]["b.c"] = twice["a.b"]["c"] = from_host(counted(1), {1});
  EXPECT_NE(save_async(path_, twice).wait().error().message().find("\"a.b.c\""), std::string::npos);
  // Errors that nobody has asked for are those of leaving the run.
  (void)save_async("/nonexistent/b", std::map<std::string, Tensor>{});
  Error error = processes().finalize().error();
  EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  EXPECT_NE(error.to_string().find("/nonexistent/b"), std::string::npos) << error.to_string();
  EXPECT_EQ(error.to_string().find("/nonexistent/a"), std::string::npos) << error.to_string();
  processes().finalize().value();
}

}  // namespace
}  // namespace meshard::io
