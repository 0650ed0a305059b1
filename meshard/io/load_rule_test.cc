#include "meshard/io/load_rule.h"

#include <gmock/gmock.h>

#include "meshard/graph/abstract_tensor.h"
#include "meshard/io/io_testutil.h"
#include "meshard/ops/all.h"
#include "meshard/runtime/plugin_testutil.h"
#include "tests/support/matchers.h"

namespace meshard::io {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using Rules = std::vector<LoadRule>;

// Random rules beside NumPy: python/tests/test_load_rules.py.
class LoadRules : public InFolder {
 protected:
  // A model with two layers, in a file of another library's names.
  std::string foreign() const {
    std::map<std::string, Tensor> tensors;
    float first = 0;
    for (int layer = 0; layer < 2; ++layer) {
      std::string at = "model.layers." + std::to_string(layer) + ".";
      for (const char* part : {"q", "k", "v"}) {
        tensors[at + "self_attn." + part + "_proj.weight"] = from_host(counted(12, first), {4, 3});
        first += 100;
      }
      tensors[at + "norm.weight"] = from_host(counted(3, first), {3});
    }
    std::string path = in_folder("model.safetensors");
    EXPECT_TRUE(save(path, tensors).ok());
    return path;
  }
};

const LoadRule kFused{
    .from = {"model.layers.*.self_attn.q_proj.weight", "model.layers.*.self_attn.k_proj.weight",
             "model.layers.*.self_attn.v_proj.weight"},
    .to = {"blocks.*.wqkv"},
    .transpose = {1, 0},
    .dimension = 1};
const LoadRule kNorm{.from = {"model.layers.*.norm.weight"}, .to = {"blocks.*.norm"}};

TEST_F(LoadRules, RenameTransposeAndJoin) {
  auto weights = load(foreign(), Rules{kFused, kNorm}).value();
  std::vector<std::string> names;
  for (const auto& each : weights) names.push_back(each.first);
  EXPECT_THAT(names,
              ElementsAre("blocks.0.norm", "blocks.0.wqkv", "blocks.1.norm", "blocks.1.wqkv"));
  EXPECT_EQ(weights.at("blocks.1.wqkv").shape(), Shape({3, 12}));
  // Row 1 of layer 1: column 1 of q, k and v, which begin at 300, 400 and 500.
  EXPECT_THAT(weights.at("blocks.1.wqkv")[1].to_vector<float>(),
              ElementsAre(301, 304, 307, 310, 401, 404, 407, 410, 501, 504, 507, 510));
  EXPECT_THAT(weights.at("blocks.1.norm").to_vector<float>(), ElementsAre(600, 601, 602));
}

TEST_F(LoadRules, EachDeviceGetsItsPart) {
  Mesh mesh({{"data", 2}, {"model", 4}});
  std::string path = foreign();
  LoadRule rule = kFused;
  rule.dtype = DType::bf16;
  auto sharded =
      load(path, Rules{rule, kNorm}, {{"*.wqkv", mesh, P(none, {"model", "data"})}}).value();
  auto whole = load(path, Rules{rule, kNorm}).value();
  Tensor placed = sharded.at("blocks.1.wqkv");
  EXPECT_EQ(placed.stored_sharding()->spec(), P(none, {"model", "data"}));
  EXPECT_EQ(placed.dtype(), DType::bf16);
  EXPECT_EQ(placed.to_host(), whole.at("blocks.1.wqkv").to_host());
}

// Layers of a structure: its names are those of the rules.
struct Block {
  Tensor norm, wqkv;
  MESHARD_FIELDS(norm, wqkv)
};
struct Foreign {
  std::vector<Block> blocks;
  MESHARD_FIELDS(blocks)
};

TEST_F(LoadRules, RestoreStructures) {
  std::string path = foreign();
  Block like{abstract_tensor({3}, DType::f32), abstract_tensor({3, 12}, DType::f32)};
  Foreign model = restore(path, Rules{kFused, kNorm}, Foreign{{like, like}}).value();
  EXPECT_EQ(model.blocks[1].wqkv[1].to_vector<float>()[4], 401);

  // Everything at once: missing, left over, of another type, and where.
  Block wrong{abstract_tensor({4}, DType::f32), abstract_tensor({3, 12}, DType::bf16)};
  Error error = restore(path, Rules{kFused, kNorm}, Foreign{{like, wrong, like}}).error();
  for (const char* part :
       {"model.safetensors", "lacks \"blocks.2.norm\" (the nearest names are \"blocks.0.norm\"",
        "\"blocks.2.wqkv\"", "\"blocks.1.norm\" is f32[3] in the checkpoint", "is f32[4]",
        "\"blocks.1.wqkv\" is f32[3,12]", "is bf16[3,12]"})
    EXPECT_THAT(error.message(), HasSubstr(part));
  error = restore(path, Rules{kFused, kNorm}, Foreign{{like}}).error();
  EXPECT_THAT(error.message(), HasSubstr("has \"blocks.1.norm\", \"blocks.1.wqkv\", for which"));
}

TEST_F(LoadRules, SplitIntoParts) {
  std::string path = in_folder("fused.safetensors");
  ASSERT_TRUE(save(path, {{"h.0.c_attn", from_host(counted(24), {2, 12})}}).ok());
  // Query heads of 4 columns, keys and values of 2, for each of 1 and of 2 groups.
  LoadRule rule{
      .from = {"h.*.c_attn"}, .to = {"*.q", "*.k", "{1}.v"}, .dimension = -1, .sizes = {6, 3, 3}};
  auto parts = load(path, Rules{rule}).value();
  EXPECT_THAT(parts.at("0.k").to_vector<float>(), ElementsAre(6, 7, 8, 18, 19, 20));
  EXPECT_THAT(parts.at("0.v").to_vector<float>(), ElementsAre(9, 10, 11, 21, 22, 23));
  rule.groups = 3;
  rule.sizes = {2, 1, 1};
  parts = load(path, Rules{rule}).value();
  EXPECT_THAT(parts.at("0.q").to_vector<float>(),
              ElementsAre(0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21));
  EXPECT_THAT(parts.at("0.v").to_vector<float>(), ElementsAre(3, 7, 11, 15, 19, 23));
  // Joined again, as they were.
  std::string apart = in_folder("apart.safetensors");
  ASSERT_TRUE(save(apart, parts).ok());
  auto again =
      load(apart, Rules{{.from = {"*.q", "*.k", "*.v"}, .to = {"*"}, .dimension = 1, .groups = 3}})
          .value();
  EXPECT_THAT(again.at("0").to_vector<float>(), ElementsAreArray(counted(24)));
}

TEST_F(LoadRules, SeveralFilesAndLeftOutTensors) {
  Tensor w = from_host(counted(6), {2, 3});
  ASSERT_TRUE(save(in_folder("a.safetensors"), {{"a.w", w}}).ok());
  ASSERT_TRUE(save(in_folder("b.safetensors"), {{"b.w", w + 10}, {"b.inv_freq", w}}).ok());
  written("model.safetensors.index.json",
          R"({"weight_map": {"a.w": "a.safetensors", "b.w": "b.safetensors",
              "b.inv_freq": "b.safetensors"}})");
  auto weights = load(folder_.string(), Rules{{.from = {"*.inv_freq"}, .to = {}},
                                              {.from = {"a.w", "b.w"}, .to = {"both"}}})
                     .value();
  EXPECT_EQ(weights.size(), 1u);
  EXPECT_THAT(weights.at("both").to_vector<float>(),
              ElementsAre(0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15));
}

TEST_F(LoadRules, ListWhatDoesNotFit) {
  std::string path = foreign();
  auto message = [&](const Rules& rules) { return load(path, rules).error().message(); };
  std::string text = message(
      {{.from = {"model.layers.*.self_attn.q_proj.weight", "model.layers.*.w"}, .to = {"*.qk"}},
       {.from = {"model.layer.*.norm.weight"}, .to = {"*"}}});
  for (const char* part : {"model.safetensors: ", "there is no \"model.layers.0.w\"",
                           "there is no \"model.layers.1.w\"",
                           "the pattern \"model.layer.*.norm.weight\" matches no tensor, the "
                           "nearest names are \"model.",
                           "no rule takes \"model.layers.0.norm.weight\""})
    EXPECT_THAT(text, HasSubstr(part));
  LoadRule all{.from = {"*"}, .to = {"*"}};
  EXPECT_THAT(message({{.from = {"*.norm.weight"}, .to = {"norm"}}, all}),
              HasSubstr("two tensors would have the name \"norm\""));
  EXPECT_THAT(message({{.from = {"*.norm.weight"}, .to = {"{2}"}}, all}),
              HasSubstr("and there is 1"));
  EXPECT_THAT(message({{.from = {"*.norm.weight"}, .to = {"*"}, .transpose = {1, 0}}, all}),
              HasSubstr("f32[3], cannot be transposed to the order (1, 0)"));
  EXPECT_THAT(message({{.from = {"*.norm.weight"}, .to = {"*.a", "*.b"}}, all}),
              HasSubstr("has 3 elements along dimension 0, which cannot be split into 2 parts"));
  EXPECT_THAT(message({{.from = {"*.norm.weight"}, .to = {"*.a", "*.b"}, .dimension = 1}, all}),
              HasSubstr("cannot be joined or split along dimension 1"));
  EXPECT_THAT(
      message({{.from = {"*.q_proj.weight", "model.layers.0.norm.weight"}, .to = {"*"}}, all}),
      HasSubstr("f32[3], cannot be joined along dimension 0"));
  // Without strict, what does not match is ignored; what cannot be computed is still an error.
  EXPECT_TRUE(
      load(path, Rules{{.from = {"nothing"}, .to = {"x"}}}, {}, {.strict = false}).value().empty());
}

// One tensor of a dtype that meshard lacks does not spoil a file.
TEST_F(LoadRules, UnknownDtypesAreBytes) {
  std::string header = R"({"f4":{"dtype":"F4","shape":[2,4],"data_offsets":[0,4]},)"
                       R"("f6":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[4,7]},)"
                       R"("new":{"dtype":"I2","shape":[5],"data_offsets":[7,9]},)"
                       R"("c":{"dtype":"C64","shape":[1],"data_offsets":[9,17]},)"
                       R"("f":{"dtype":"F32","shape":[],"data_offsets":[17,21]}})";
  std::string data = {1,      2,      3, 4, 5, 6,      7, 8, 9,      0,     0,
                      '\x80', '\x3F', 0, 0, 0, '\x40', 0, 0, '\x80', '\x3F'};
  std::string size(8, '\0');
  size[0] = static_cast<char>(header.size() & 0xFF);
  size[1] = static_cast<char>(header.size() >> 8);
  std::string path = written("w.safetensors", size + header + data);
  auto weights = load(path).value();
  EXPECT_EQ(weights.at("f4").type(), (TensorType{DType::u8, {2, 2}}));
  EXPECT_THAT(weights.at("f4").to_vector<std::uint8_t>(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(weights.at("f6").to_vector<std::uint8_t>(), ElementsAre(5, 6, 7));
  EXPECT_EQ(weights.at("new").type(), (TensorType{DType::u8, {2}}));
  EXPECT_THAT(weights.at("c").to_vector<Complex64>(), ElementsAre(Complex64(1, 2)));
  EXPECT_EQ(weights.at("f").item<float>(), 1);
  SafetensorsFile file = SafetensorsFile::open(path).value();
  EXPECT_EQ(file.find("f4")->stored_dtype, "F4");
  EXPECT_EQ(file.find("f4")->stored_sizes, (Dimensions{2, 4}));
  EXPECT_EQ(file.find("f")->stored_dtype, "");
  EXPECT_THAT(load(path, Rules{{.from = {"f4"}, .to = {"f4"}, .dtype = DType::f32},
                               {.from = {"*"}, .to = {"*"}}})
                  .error()
                  .message(),
              HasSubstr("\"f4\" has the dtype F4, which is read as bytes"));
}

}  // namespace
}  // namespace meshard::io
