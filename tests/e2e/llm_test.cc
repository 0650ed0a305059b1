// The example of language models: logits of `transformers` (recorded by tests/llm/record.py), at
// once and with a cache in pages, on one device and on several; files; adapters; training that is
// resumed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "examples/llm/model/generate.h"
#include "examples/llm/model/load.h"
#include "examples/llm/model/paged_runner.h"
#include "examples/llm/train/adapter.h"
#include "examples/llm/train/events.h"
#include "examples/llm/train/finetune.h"
#include "meshard/base/json_reader.h"
#include "meshard/base/whole_file.h"
#include "meshard/meshard.h"
#include "meshard/runtime/plugin_testutil.h"

namespace llm {
namespace {

using namespace meshard;
using testing::AllOf;
using testing::HasSubstr;

constexpr std::int64_t kRows = 2, kTime = 14;

// The weights of a formula, as in record.py.
std::vector<float> numbers_of(const std::string& name, std::int64_t count) {
  std::int64_t seed = 0;
  for (std::size_t i = 0; i < name.size(); ++i) seed += name[i] * static_cast<std::int64_t>(i + 1);
  double scale = name.find("norm") != name.npos ? 0.25 : 0.5;
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t place = (i * 389 + seed % 1009 * 577 + i * i % 1009) % 1009;
    numbers.push_back(static_cast<float>((static_cast<double>(place) / 504.5 - 1) * scale));
  }
  return numbers;
}

std::string text_of(const JsonValue& value) {
  using Kind = JsonValue::Kind;
  if (value.is(Kind::kNull)) return "null";
  if (value.is(Kind::kBool)) return value.truth ? "true" : "false";
  if (value.is(Kind::kNumber)) return value.text;
  if (value.is(Kind::kString)) return cat("\"", value.text, "\"");
  std::string text;
  for (const JsonValue& each : value.elements) text += (text.empty() ? "" : ",") + text_of(each);
  for (const JsonMember& each : value.members)
    text += cat(text.empty() ? "" : ",", "\"", each.name, "\":", text_of(each.value));
  return value.is(Kind::kArray) ? cat("[", text, "]") : cat("{", text, "}");
}

// A recorded model, written to a folder.
struct Recorded {
  explicit Recorded(const std::string& name) : folder(testing::TempDir() + "llm_" + name) {
    std::string path = cat(MESHARD_SOURCE_FOLDER, "/tests/golden/llm/", name, ".json");
    JsonValue golden = read_json(read_whole_file(path).value(), path).value();
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/config.json") << text_of(*golden.find("config"));
    std::map<std::string, Tensor> tensors;
    for (const JsonMember& member : golden.find("shapes")->members) {
      Dimensions sizes;
      for (const JsonValue& size : member.value.elements) sizes.push_back(std::stoll(size.text));
      Shape shape(sizes);
      tensors[member.name] = from_host(numbers_of(member.name, shape.size()), shape);
    }
    io::save(folder + "/", tensors).value();
    for (const JsonValue& each : golden.find("tokens")->elements)
      tokens.push_back(static_cast<std::int32_t>(std::stol(each.text)));
    for (const JsonValue& each : golden.find("logits")->elements)
      logits.push_back(std::stof(each.text));
    config = read_config(folder).value();
  }
  std::vector<std::int32_t> row(std::int64_t i, std::int64_t first, std::int64_t end) const {
    return {tokens.begin() + i * kTime + first, tokens.begin() + i * kTime + end};
  }
  // The logits after these tokens of a row.
  std::vector<float> row_logits(std::int64_t i, std::int64_t first, std::int64_t end) const {
    std::int64_t v = config.vocabulary;
    return {logits.begin() + (i * kTime + first) * v, logits.begin() + (i * kTime + end) * v};
  }
  std::string folder;
  Config config;
  std::vector<std::int32_t> tokens;
  std::vector<float> logits;
};

nn::AxisRules rules_on(const Config& config, std::int64_t data, std::int64_t model) {
  return rules_for(config, Mesh({{"data", data}, {"model", model}})).value();
}

void expect_near(const std::vector<float>& actual, const std::vector<float>& expected) {
  EXPECT_THAT(actual, testing::Pointwise(testing::FloatNear(1e-4f), expected));
}

class Llm : public OnPlugin {};

TEST_F(Llm, HasTheRecordedLogitsAtOnceAndInPages) {
  for (const char* name : {"gemma2", "qwen3_moe"}) {
    SCOPED_TRACE(name);
    Recorded recorded(name);
    const Config& config = recorded.config;
    nn::AxisRules rules = rules_on(config, 2, 2);
    Model model = load_model(recorded.folder, config, rules, DType::f32).value();
    auto forward = jit([&](const Model& weights, const Tensor& tokens) {
      return logits_of(weights, config, tokens, rules);
    });
    Tensor tokens = rules.mark(from_host(recorded.tokens, {kRows, kTime}), P("batch"));
    expect_near(forward(model, tokens).to_vector<float>(), recorded.logits);

    PagedRunner runner(
        model, config, rules,
        {.context = 32, .page_tokens = 3, .pages = 16, .sequences = 3, .chunk_tokens = 4});
    // The pages of the two sequences are mixed, and the first two are shared: the sequences begin
    // with the same six tokens.
    std::vector<Chunk> both{{recorded.row(0, 0, 4), 0, {7, 3}, 0}};
    EXPECT_THAT(runner.step(both)[0], testing::IsEmpty());
    expect_near(runner.step({{recorded.row(0, 4, 6), 4, {7, 3}, 2}})[0],
                recorded.row_logits(0, 4, 6));
    std::vector<std::vector<float>> mixed = runner.step(
        {{recorded.row(0, 6, 7), 6, {7, 3, 9}, 1}, {recorded.row(1, 0, 4), 0, {1, 12}, 3}});
    expect_near(mixed[0], recorded.row_logits(0, 6, 7));
    expect_near(mixed[1], recorded.row_logits(1, 1, 4));
    // A second sequence that begins as the first one.
    mixed = runner.step(
        {{recorded.row(0, 7, 8), 7, {7, 3, 9}, 1}, {recorded.row(0, 6, 7), 6, {7, 3, 0}, 1}});
    expect_near(mixed[0], recorded.row_logits(0, 7, 8));
    expect_near(mixed[1], recorded.row_logits(0, 6, 7));
  }
}

TEST_F(Llm, SavesWhatItLoads) {
  Recorded recorded("qwen3_moe");
  Model model =
      load_model(recorded.folder, recorded.config, rules_on(recorded.config, 1, 2), DType::f32)
          .value();
  std::string folder = testing::TempDir() + "llm_saved";
  std::filesystem::remove_all(folder);
  save_model(folder, model, recorded.config, recorded.folder).value();
  auto before = io::load(recorded.folder).value(), after = io::load(folder).value();
  ASSERT_EQ(before.size(), after.size());
  for (const auto& [name, tensor] : before)
    EXPECT_EQ(tensor.to_vector<float>(), after.at(name).to_vector<float>()) << name;
  EXPECT_EQ(read_config(folder).value().experts, 4);
}

TEST_F(Llm, NamesAreStrictInBothDirections) {
  Recorded recorded("gemma2");
  auto tensors = io::load(recorded.folder).value();
  tensors.erase("model.layers.1.mlp.up_proj.weight");
  tensors["model.layers.1.mlp.up_proj2.weight"] = ones({24, 16});
  std::string folder = testing::TempDir() + "llm_other";
  std::filesystem::create_directories(folder);
  io::save(folder + "/", tensors).value();
  Result<Model> loaded = load_model(folder, recorded.config, nn::AxisRules(), DType::f32);
  ASSERT_FALSE(loaded.ok());
  EXPECT_THAT(loaded.error().what(),
              AllOf(HasSubstr("model.layers.1.mlp.up_proj.weight"), HasSubstr("up_proj2.weight")));
}

TEST_F(Llm, AdaptersHaveThePeftNamesAndMergeIntoTheWeights) {
  Recorded recorded("gemma2");
  const Config& config = recorded.config;
  nn::AxisRules rules = rules_on(config, 1, 2);
  AdapterConfig adapter{.rank = 2, .alpha = 6, .targets = {"q_proj", "down_proj"}};
  Adapters adapters = make_adapters(config, adapter, rules, 1).value();
  // As after training: lora_B is not zero.
  auto tensors = structure::tensors(adapters);
  for (Tensor& each : tensors) each = each + 0.05f;
  adapters = structure::with_tensors(adapters, tensors);
  std::string folder = testing::TempDir() + "llm_adapter";
  save_adapters(folder, adapters, adapter, recorded.folder).value();
  auto names = io::Weights::open(folder + "/adapter_model.safetensors").value().names();
  EXPECT_EQ(names.size(), 12u);
  EXPECT_EQ(names[0], "base_model.model.model.layers.0.mlp.down_proj.lora_A.weight");
  AdapterConfig read = read_adapter_config(folder).value();
  EXPECT_EQ(read.scale(), 3);
  Adapters loaded = load_adapters(folder, config, read, rules).value();
  Model model = load_model(recorded.folder, config, rules, DType::f32).value();
  auto forward = jit([&](const Model& weights, const std::optional<Adapters>& with) {
    std::optional<Adaptation> adaptation;
    if (with) adaptation.emplace(Adaptation{*with, 3});
    return logits_of(weights, config, from_host(recorded.tokens, {kRows, kTime}), rules,
                     adaptation);
  });
  std::vector<float> adapted = forward(model, std::optional(loaded)).to_vector<float>();
  Model whole = merged(model, config, loaded, 3).value();
  expect_near(forward(whole, std::optional<Adapters>()).to_vector<float>(), adapted);
  EXPECT_GT(std::abs(adapted[0] - recorded.logits[0]), 1e-3f);
}

TEST_F(Llm, TrainingContinuesWhereItWas) {
  Recorded recorded("gemma2");
  nn::AxisRules rules = rules_on(recorded.config, 2, 2);
  std::vector<Sample> samples;
  for (std::int64_t i = 0; i < kRows; ++i)
    samples.push_back({recorded.row(i, 0, 12), recorded.row(i, 0, 12)});
  samples.push_back({recorded.row(0, 2, 9), recorded.row(0, 2, 9)});
  std::string checkpoint = testing::TempDir() + "llm_training.safetensors";
  auto losses = [&](std::int64_t first, std::int64_t steps, std::int64_t end) {
    FinetuneOptions options{.steps = steps,
                            .rows = 2,
                            .length = 10,
                            .rate = 1e-2,
                            .constant_rate = true,
                            .adapter = AdapterConfig{.rank = 2},
                            .checkpoint = checkpoint};
    Model model = load_model(recorded.folder, recorded.config, rules, DType::f32).value();
    Finetuning training =
        Finetuning::create(model, recorded.config, rules, options, samples).value();
    if (first > 0) training.resume().value();
    EXPECT_EQ(training.steps(), first);
    std::vector<double> all;
    training.run([&](std::int64_t, double loss, double, double) { all.push_back(loss); });
    EXPECT_EQ(training.steps(), end);
    return all;
  };
  std::vector<double> whole = losses(0, 4, 4);
  losses(0, 2, 2);
  std::vector<double> rest = losses(2, 4, 4);
  ASSERT_EQ(rest.size(), 2u);
  EXPECT_EQ(rest, std::vector<double>(whole.begin() + 2, whole.end()));
  EXPECT_LT(whole[3], whole[0]);
}

TEST(LlmConfig, WhatWouldChangeTheResultsIsAnError) {
  std::string good =
      R"("model_type": "llama", "vocab_size": 8, "hidden_size": 8, "intermediate_size": 8,
      "num_hidden_layers": 1, "num_attention_heads": 2)";
  EXPECT_TRUE(parse_config(cat("{", good, "}"), "test").ok());
  Result<Config> bad = parse_config(cat("{", good, R"(, "logit_scale": 2, "hidden_act": "relu",
      "rope_scaling": {"rope_type": "dynamic", "factor": 2}, "num_key_value_heads": 3})"),
                                    "test");
  ASSERT_FALSE(bad.ok());
  EXPECT_THAT(bad.error().what(),
              AllOf(HasSubstr("logit_scale is unknown"), HasSubstr("hidden_act is \"relu\""),
                    HasSubstr("rope_scaling.rope_type is \"dynamic\""),
                    HasSubstr("not a multiple of the 3 key heads")));
  EXPECT_THAT(parse_config(R"({"model_type": "mamba"})", "test").error().what(),
              HasSubstr("model_type is \"mamba\""));
}

TEST(LlmEvents, ChecksumsAreThoseOfTheStandard) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);  // the check value of CRC-32C
}

}  // namespace
}  // namespace llm
