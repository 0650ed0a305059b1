#include "meshard/io/safetensors.h"

#include "meshard/graph/leaf.h"
#include "meshard/io/io_testutil.h"
#include "meshard/ops/add.h"
#include "meshard/ops/composite/mark_sharding.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/runtime/shards.h"

namespace meshard::io {
namespace {

using SafetensorsTest = InFolder;

std::vector<float> counted(std::size_t count, float first = 0) {
  std::vector<float> values(count);
  for (float& value : values) value = first++;
  return values;
}

TEST_F(SafetensorsTest, ReadsEveryDtypeThatPythonWrote) {
  SafetensorsFile file = SafetensorsFile::open(golden_file("dtypes.safetensors")).value();
  EXPECT_EQ(file.metadata().at("note"), "line\nbreak");
  for (DType dtype : {DType::i8, DType::i16, DType::i32, DType::i64, DType::u8, DType::u16,
                      DType::u32, DType::u64, DType::f16, DType::f32, DType::f64}) {
    std::string name(to_string(dtype).substr(1));
    name = (is_floating(dtype) ? "float" : is_signed(dtype) ? "int" : "uint") + name;
    double first = is_unsigned_integer(dtype) ? 0 : -3;
    std::vector<double> expected{first, first + 1, first + 2, first + 3, first + 4, first + 5};
    HostArray array = file.array(name).value();
    EXPECT_EQ(array.type(), (TensorType{dtype, {2, 3}}));
    EXPECT_EQ(array.astype(DType::f64).to_vector<double>(), expected) << name;
  }
  std::vector<double> quarters{-0.5, -0.25, 0, 0.25, 0.5, 0.75};
  for (const char* name : {"bfloat16", "float8_e4m3fn", "float8_e5m2"})
    EXPECT_EQ(file.array(name).value().astype(DType::f64).to_vector<double>(), quarters) << name;
  EXPECT_EQ(file.array("float8_e4m3fn").value().dtype(), DType::f8e4m3fn);
  EXPECT_EQ(file.array("bool").value(),
            HostArray::from_vector<bool>({true, false, true, false, false, true}, {2, 3}));
  EXPECT_EQ(file.array("scalar").value(), HostArray::scalar(2.5f));
  EXPECT_EQ(file.array("empty").value().type(), (TensorType{DType::f32, {0, 4}}));
  EXPECT_EQ(file.array("layers.0.\xC3\xA9 \"w\"").value().item<int>(), 7);
  EXPECT_EQ(file.array("other").error().code(), ErrorCode::kNotFound);
}

TEST_F(SafetensorsTest, SeveralFilesAreOneSetOfWeights) {
  for (const std::string& path : {golden_file("model.safetensors.index.json"), golden_file("")}) {
    Weights weights = Weights::open(path).value();
    EXPECT_EQ(weights.names(),
              (std::vector<std::string>{"blocks.0.b", "blocks.0.w", "blocks.1.w", "head"}));
    EXPECT_EQ(weights.type("blocks.1.w").value(), (TensorType{DType::f32, {4, 8}}));
    EXPECT_EQ(weights.tensor("blocks.1.w").value().to_vector<float>(), counted(32, 100));
  }
}

TEST_F(SafetensorsTest, AnIndexReadsOnlyWhatIsBesideIt) {
  std::filesystem::copy_file(golden_file("model-00001-of-00002.safetensors"), in_folder("a"));
  auto open_index = [&](const std::string& file, const std::string& name = "blocks.0.w") {
    return Weights::open(
        written("x.index.json", "{\"weight_map\":{\"" + name + "\":" + file + "}}"));
  };
  EXPECT_TRUE(open_index("\"a\"").ok());
  for (const char* file :
       {"\"../a\"", "\"/etc/passwd\"", "\"..\"", "\"\"", "3", "\"a\\u0000\"", "\"b\""})
    EXPECT_FALSE(open_index(file).ok()) << file;
  EXPECT_EQ(open_index("\"a\"", "other").error().code(), ErrorCode::kInvalidArgument);
  EXPECT_FALSE(Weights::open(written("y.index.json", "{}")).ok());
  EXPECT_EQ(Weights::open(in_folder("none")).error().code(), ErrorCode::kNotFound);
}

class SafetensorsOnDevices : public OnPlugin {
 protected:
  std::string path_ = testing::TempDir() + "/meshard_io_on_devices.safetensors";
  ~SafetensorsOnDevices() override { std::filesystem::remove(path_); }
};

TEST_F(SafetensorsOnDevices, LoadingSendsEachDeviceItsOwnPart) {
  Mesh mesh({{"data", 2}, {"model", 4}});
  std::map<std::string, Tensor> loaded =
      load(golden_file("model.safetensors.index.json"),
           {{"blocks.*.w", mesh, P("data", "model")}, {"blocks.*", mesh, P("model")}})
          .value();
  // Two w of 32 floats, each on one device; b in four shards, each on two devices.
  EXPECT_EQ(done().bytes_sent, 4u * (32 + 32 + 2 * 8));
  EXPECT_EQ(loaded.at("blocks.0.w").sharding(), Sharding(mesh, P("data", "model"), 2));
  EXPECT_EQ(local_shards(loaded.at("blocks.1.w"))[5].data().to_vector<float>(),
            (std::vector<float>{118, 119, 126, 127}));
  EXPECT_EQ(loaded.at("blocks.0.b").sharding(), Sharding(mesh, P("model"), 1));
  EXPECT_EQ(loaded.at("head").placement(), "host");
  Error error =
      load(golden_file("model.safetensors.index.json"), {{"head", mesh, P("data", "model")}})
          .error();
  EXPECT_NE(error.to_string().find("head"), std::string::npos) << error.to_string();
}

TEST_F(SafetensorsOnDevices, WhatWasSavedIsLoadedOntoAnyMesh) {
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

TEST_F(SafetensorsOnDevices, SavingAFileWhileItIsReadLeavesTheReaderItsOwn) {
  save(path_, {{"w", from_host(counted(4), {4})}}).value();
  Tensor old = load(path_).value().at("w");
  save(path_, {{"w", add(old, 10)}}).value();
  EXPECT_EQ(old.to_vector<float>(), counted(4));
  EXPECT_EQ(load(path_).value().at("w").to_vector<float>(), counted(4, 10));
}

TEST_F(SafetensorsOnDevices, ErrorsLeaveTheOldFile) {
  save(path_, {{"w", from_host(counted(4), {4})}}).value();
  EXPECT_FALSE(save(path_, {{"w", Tensor()}}).ok());
  EXPECT_FALSE(save(path_, {{"__metadata__", from_host(counted(1), {1})}}).ok());
  EXPECT_EQ(load(path_).value().at("w").to_vector<float>(), counted(4));
  EXPECT_EQ(save("/nonexistent/a", {}).error().code(), ErrorCode::kNotFound);
}

}  // namespace
}  // namespace meshard::io
