#include "meshard/io/weights.h"

#include <atomic>
#include <thread>

#include "meshard/graph/leaf.h"
#include "meshard/io/internal/checkpoint_index.h"
#include "meshard/io/io_testutil.h"
#include "meshard/io/save.h"
#include "meshard/ops/composite/operators.h"
#include "meshard/runtime/plugin_testutil.h"
#include "meshard/runtime/shards.h"

namespace meshard::io {
namespace {

using internal::CheckpointIndex;
using WeightsTest = InFolder;

TEST_F(WeightsTest, SeveralFilesAreOneSetOfWeights) {
  for (const std::string& path : {golden_file("model.safetensors.index.json"), golden_file("")}) {
    Weights weights = Weights::open(path).value();
    EXPECT_EQ(weights.names(),
              (std::vector<std::string>{"blocks.0.b", "blocks.0.w", "blocks.1.w", "head"}));
    EXPECT_EQ(weights.type("blocks.1.w").value(), (TensorType{DType::f32, {4, 8}}));
    EXPECT_EQ(weights.tensor("blocks.1.w").value().to_vector<float>(), counted(32, 100));
  }
}

TEST_F(WeightsTest, AnIndexReadsOnlyWhatIsBesideIt) {
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

TEST_F(WeightsTest, ACheckpointIsThereAsOneFileAsAnIndexOrInAFolder) {
  const std::string index = R"({"weight_map":{}})",
                    ours = R"({"weight_map":{},"meshard":{"version":1,"files":{},"split":{}}})";
  struct Case {
    const char *file, *text, *path;
    bool there;
  };
  const Case cases[] = {
      {"a.safetensors", "", "a.safetensors", true},
      {"a.safetensors", "", "b.safetensors", false},
      {"a.safetensors", "", "a.safetensors.index.json", false},
      {"a.safetensors", "", "a.safetensors/b", false},
      {"a.safetensors.index.json", ours.c_str(), "a.safetensors", true},
      {"a.safetensors.index.json", "damaged", "a.safetensors", true},
      {"a.safetensors.index.json", index.c_str(), "a.safetensors", false},
      {"a.safetensors.index.json", index.c_str(), "a.safetensors.index.json", true},
      {"model.safetensors", "", "", true},
      {"model.safetensors.index.json", index.c_str(), "", true},
      {"a.safetensors", "", "", false},
  };
  for (const Case& each : cases) {
    const std::string file = written(each.file, each.text);
    EXPECT_EQ(has_checkpoint(in_folder(each.path)).value(), each.there)
        << each.file << ": " << each.path;
    std::filesystem::remove(file);
  }
  EXPECT_FALSE(has_checkpoint(in_folder("absent/a.safetensors")).value());
  EXPECT_EQ(has_checkpoint(in_folder(std::string(300, 'a'))).error().code(),
            ErrorCode::kUnavailable);
}

// A checkpoint of two writers in a folder: `step` is whole, `w` (f32[4,3], 0 to 11) is in three
// parts, and the layers `b.0` and `b.1` are split in columns.
class WeightsInParts : public OnPlugin {
 protected:
  WeightsInParts() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    auto rows = [](std::int64_t count, std::int64_t size, float first) {
      return from_host(counted(static_cast<std::size_t>(count * size), first), {count, size});
    };
    write(0, {{"step", from_host(std::vector<std::int32_t>{7}, {1})},
              {"w[0:2, 0:3]", rows(2, 3, 0)},
              {"b.0[0:2, 0:1]", from_host(std::vector<float>{0, 2}, {2, 1})},
              {"b.1[0:2, 0:1]", from_host(std::vector<float>{4, 6}, {2, 1})}});
    write(1, {{"w[2:4, 0:1]", from_host(std::vector<float>{6, 9}, {2, 1})},
              {"w[2:4, 1:3]", from_host(std::vector<float>{7, 8, 10, 11}, {2, 2})},
              {"b.0[0:2, 1:2]", from_host(std::vector<float>{1, 3}, {2, 1})},
              {"b.1[0:2, 1:2]", from_host(std::vector<float>{5, 7}, {2, 1})}});
    index_.is_ours = true;
    index_.whole = {{"step", file(0)}};
    add("w", {4, 3},
        {{Box{{0, 2}, {0, 3}}, 0}, {Box{{2, 4}, {0, 1}}, 1}, {Box{{2, 4}, {1, 3}}, 1}});
    for (const char* name : {"b.0", "b.1"})
      add(name, {2, 2}, {{Box{{0, 2}, {0, 1}}, 0}, {Box{{0, 2}, {1, 2}}, 1}});
    write_index();
  }
  ~WeightsInParts() override { std::filesystem::remove_all(folder_); }

  std::string file(int writer) const { return files_.piece_file("0123456789abcdef", writer, 2); }
  void write(int writer, const std::map<std::string, Tensor>& tensors) {
    std::string path = folder_ + "/" + file(writer);
    save(path, tensors).value();
    index_.files[file(writer)] = std::filesystem::file_size(path);
  }
  void add(const std::string& name, Shape shape, const std::vector<std::pair<Box, int>>& parts) {
    CheckpointIndex::Split& split = index_.split[name];
    split.type = {DType::f32, std::move(shape)};
    for (const auto& [box, writer] : parts) split.parts[to_string(box)] = {box, file(writer)};
  }
  void write_index() { std::ofstream(files_.index(), std::ios::binary) << index_.to_json(); }
  Error refusal() const { return Weights::open(path_).error(); }

  std::string folder_ = testing::TempDir() + "/meshard_weights_in_parts";
  std::string path_ = folder_ + "/run.safetensors";
  internal::CheckpointFiles files_{path_};
  CheckpointIndex index_;
};

TEST_F(WeightsInParts, AreTensorsAsInOneFile) {
  for (const std::string& path : {path_, path_ + ".index.json"}) {
    Weights weights = Weights::open(path).value();
    EXPECT_EQ(weights.names(), (std::vector<std::string>{"b.0", "b.1", "step", "w"}));
    EXPECT_EQ(weights.type("w").value(), (TensorType{DType::f32, {4, 3}}));
    EXPECT_EQ(weights.tensor("w").value().to_vector<float>(), counted(12));
    EXPECT_EQ(weights.tensor("step").value().to_vector<std::int32_t>(),
              std::vector<std::int32_t>{7});
    EXPECT_EQ(weights.tensor("none").error().code(), ErrorCode::kNotFound);
    std::vector<std::string> layers{"b.0", "b.1"};
    EXPECT_EQ(weights.stacked(layers, {2}).value().to_vector<float>(), counted(8));
  }
}

TEST_F(WeightsInParts, AnyBoxIsReadFromThePartsThatItNeeds) {
  StoredTensor w = Weights::open(path_).value().stored("w").value();
  for (std::int64_t top = 0; top < 4; ++top)
    for (std::int64_t bottom = top + 1; bottom <= 4; ++bottom)
      for (std::int64_t left = 0; left < 3; ++left)
        for (std::int64_t right = left + 1; right <= 3; ++right) {
          std::vector<float> expected;
          for (std::int64_t row = top; row < bottom; ++row)
            for (std::int64_t column = left; column < right; ++column)
              expected.push_back(static_cast<float>(3 * row + column));
          HostArray part = w.read(Box{{top, bottom}, {left, right}}).value();
          EXPECT_EQ(part.to_vector<float>(), expected);
        }
  // A whole part is not copied.
  EXPECT_EQ(w.read(w.parts()[0].box).value().bytes(),
            w.parts()[0].file.array("w[0:2, 0:3]").value().bytes());
}

TEST_F(WeightsInParts, DevicesReceiveTheirParts) {
  Mesh mesh({{"x", 2}, {"y", 2}});
  Weights weights = Weights::open(path_).value();
  Tensor w = weights.placed("w", Sharding(mesh, P("y", "x"), 2)).value();
  EXPECT_EQ(w.sharding(), Sharding(mesh, P("y", "x"), 2));
  EXPECT_EQ(w.to_vector<float>(), counted(12));
  EXPECT_EQ(local_shards(w)[3].data().to_vector<float>(), (std::vector<float>{8, 11}));
  std::vector<std::string> layers{"b.0", "b.1"};
  Sharding over_layers(mesh, P("x", none, "y"), 3);
  Tensor b = weights.placed_stacked(layers, {2}, over_layers).value();
  EXPECT_EQ(b.to_vector<float>(), counted(8));
  EXPECT_EQ(local_shards(b)[2].data().to_vector<float>(), (std::vector<float>{4, 6}));
  std::map<std::string, Tensor> loaded = load(path_, {{"w", mesh, P("x")}}).value();
  EXPECT_EQ(loaded.at("w").sharding(), Sharding(mesh, P("x"), 2));
  EXPECT_EQ(loaded.at("w").to_vector<float>(), counted(12));
  Error unmatched = load(path_, {{"*[ab]", mesh, P("x")}}).error();
  EXPECT_EQ(unmatched.code(), ErrorCode::kNotFound);
  for (std::string part : {"\"*[ab]\" matches no tensor", "\"b.0\"", "Only `*`"})
    EXPECT_NE(unmatched.message().find(part), std::string::npos) << unmatched.message();
  EXPECT_TRUE(load(path_, {{"*[ab]", mesh, P("x")}}, {.strict = false}).ok());
  Error error = load(path_, {{"w", mesh, P("x", none, "y")}}).error();
  EXPECT_NE(error.to_string().find("\"w\""), std::string::npos) << error.to_string();
}

TEST_F(WeightsInParts, AreMarkedAsTensorsOfOneFileAre) {
  Mesh mesh({{"x", 2}, {"y", 2}});
  std::string other = folder_ + "/other.safetensors";
  save(other, {{"w", from_host(counted(12), {4, 3})}}).value();
  for (const PartitionSpec& spec :
       {P(), P(unconstrained), P("x", unconstrained), P(unconstrained, "y"), P(axes("y", "x"))}) {
    Sharding sharding(mesh, spec, 2);
    Tensor parts = Weights::open(path_).value().placed("w", sharding).value();
    Tensor whole = Weights::open(other).value().placed("w", sharding).value();
    EXPECT_EQ(parts.sharding(), whole.sharding()) << spec;
    Tensor doubled = parts * 2;
    EXPECT_EQ(doubled.to_vector<float>()[11], 22) << spec;
    EXPECT_EQ(parts.stored_sharding(), whole.stored_sharding()) << spec;
    EXPECT_EQ(parts.to_vector<float>(), counted(12)) << spec;
  }
}

TEST_F(WeightsInParts, WhatIsMissingIsNamed) {
  std::filesystem::resize_file(folder_ + "/" + file(1), index_.files[file(1)] - 4);
  EXPECT_NE(refusal().message().find(file(1)), std::string::npos) << refusal().to_string();
  std::filesystem::remove(folder_ + "/" + file(1));
  EXPECT_EQ(refusal().code(), ErrorCode::kNotFound);
  EXPECT_NE(refusal().to_string().find("the file is listed in " + path_ + ".index.json"),
            std::string::npos)
      << refusal().to_string();
}

TEST_F(WeightsInParts, FilesThatDoNotMatchTheIndexAreRefused) {
  index_.files[file(0)] += 8;
  write_index();
  EXPECT_EQ(refusal().code(), ErrorCode::kDataLoss);
  EXPECT_NE(refusal().message().find("it was written with"), std::string::npos);
  index_.files[file(0)] -= 8;
  index_.split["w"].type.dtype = DType::i32;
  write_index();
  EXPECT_NE(refusal().message().find("tensor \"w[0:2, 0:3]\" must be i32[2,3] in " + file(0) +
                                     ", and is f32[2,3]"),
            std::string::npos)
      << refusal().message();
  index_.split["w"].type.dtype = DType::f32;
  for (auto& [box, part] : index_.split["w"].parts) part.file = file(0);
  write_index();
  EXPECT_NE(refusal().message().find("and is not there"), std::string::npos) << refusal().message();
}

TEST_F(WeightsInParts, TheIndexCountsAndNotAFileBesideIt) {
  // As after a crash of a process that replaces the file by the index, or the other way around.
  std::string other = folder_ + "/other.safetensors";
  save(other, {{"w", from_host(counted(2), {2})}}).value();
  std::filesystem::rename(other, path_);
  EXPECT_EQ(Weights::open(path_).value().type("w").value().shape, Shape({4, 3}));
  // An index of another library counts only in a folder, or if it is named.
  write(0, {{"v", from_host(counted(1), {1})}});
  std::ofstream(files_.index()) << "{\"weight_map\":{\"v\":\"" << file(0) << "\"}}";
  EXPECT_EQ(Weights::open(path_).value().names(), std::vector<std::string>{"w"});
  EXPECT_EQ(Weights::open(files_.index()).value().names(), std::vector<std::string>{"v"});
}

TEST_F(WeightsInParts, AreCompleteWhileTheyAreReplaced) {
  std::atomic<bool> stop{false};
  // As process 0 of another run does it.
  std::thread writer([&] {
    std::string last = file(1);
    for (int i = 0; !stop; ++i) {
      std::string next = files_.piece_file("fedcba9876543210", i, 1);
      std::filesystem::copy_file(folder_ + "/" + last, folder_ + "/" + next);
      index_.files[next] = index_.files[last];
      index_.files.erase(last);
      for (auto& [name, tensor] : index_.split)
        for (auto& [box, part] : tensor.parts)
          if (part.file == last) part.file = next;
      std::ofstream(folder_ + "/new", std::ios::binary) << index_.to_json();
      std::filesystem::rename(folder_ + "/new", files_.index());
      std::filesystem::remove(folder_ + "/" + last);
      last = next;
    }
  });
  std::vector<std::string> errors;
  for (int i = 0; i < 1000; ++i)
    if (Result<Weights> weights = Weights::open(path_); !weights)
      errors.push_back(weights.error().to_string());
  stop = true;
  writer.join();
  EXPECT_TRUE(errors.empty()) << errors.size() << ": " << errors.front();
}

TEST_F(WeightsInParts, OneFileTakesThePlaceOfSeveral) {
  std::ofstream(folder_ + "/run-of-something-else.safetensors") << "other";
  save(path_, {{"w", from_host(counted(2), {2})}}).value();
  EXPECT_EQ(Weights::open(path_).value().tensor("w").value().to_vector<float>(), counted(2));
  std::set<std::string> left;
  for (const auto& each : std::filesystem::directory_iterator(folder_))
    left.insert(each.path().filename().string());
  EXPECT_EQ(left, (std::set<std::string>{"run.safetensors", "run-of-something-else.safetensors"}));
}

class WeightsOnDevices : public OnPlugin {};

TEST_F(WeightsOnDevices, LoadingSendsEachDeviceItsOwnPart) {
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

}  // namespace
}  // namespace meshard::io
