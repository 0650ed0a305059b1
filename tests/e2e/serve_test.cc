// The GPT serving example: many concurrent requests, on any mesh, get the answers that each request
// by itself gets from a model without a cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "examples/gpt/train.h"
#include "examples/serve/options.h"
#include "examples/serve/server.h"
#include "examples/serve/weights.h"
#include "meshard/meshard.h"
#include "meshard/runtime/plugin_testutil.h"

namespace serve {
namespace {

using namespace meshard;
using testing::HasSubstr;

constexpr gpt::Sizes kSizes{.layers = 2, .width = 32, .heads = 4, .hidden = 64};
constexpr std::int64_t kSeen = 24;  // bytes

gpt::Gpt model_on(const nn::AxisRules& rules) {
  return nn::create(rules, 1, [](nn::Maker& make) { return gpt::make_gpt(make, kSizes); });
}

nn::AxisRules rules_on(std::int64_t data, std::int64_t model) {
  return gpt::rules_for(Mesh({{"data", data}, {"model", model}}), false);
}

class Serve : public OnPlugin {
 protected:
  std::string in_folder(const std::string& name) const { return testing::TempDir() + name; }
};

// Greedy decoding of the whole window on one device, without a cache. The window follows
// gpt::Window: at most kSeen bytes, and half of them when there would be more.
class OneByOne {
 public:
  std::string answer(const std::string& prompt, std::int64_t count, const std::string& until) {
    std::string all = prompt;
    std::size_t first = 0;
    while (all.size() < prompt.size() + static_cast<std::size_t>(count)) {
      if (all.size() - first > kSeen) first = all.size() - kSeen / 2;
      all += next(all.substr(first));
      if (!until.empty() && all.size() >= prompt.size() + until.size() && all.ends_with(until))
        break;
    }
    return all.substr(prompt.size());
  }

 private:
  char next(const std::string& seen) {
    std::vector<std::int32_t> bytes(kSeen, 0);  // later bytes do not matter
    for (std::size_t i = 0; i < seen.size(); ++i) bytes[i] = static_cast<unsigned char>(seen[i]);
    Tensor logits = logits_(model_, from_host(std::move(bytes), {1, kSeen}));
    std::vector<float> all = logits.to_vector<float>();
    auto row = all.begin() + static_cast<std::ptrdiff_t>((seen.size() - 1) * gpt::kBytes);
    return static_cast<char>(std::max_element(row, row + gpt::kBytes) - row);
  }

  gpt::Gpt model_ = model_on({});
  Jit<std::function<Tensor(const gpt::Gpt&, const Tensor&)>> logits_ =
      jit(std::function<Tensor(const gpt::Gpt&, const Tensor&)>(
          [](const gpt::Gpt& model, const Tensor& bytes) {
            return gpt::logits_of(model, bytes, {});
          }));
};

// Prompts that are shorter than a chunk, longer than a chunk, and longer than a window.
const std::vector<std::string> kPrompts{"You may",
                                        "a",
                                        "The license says nothing of it, as far as one can see",
                                        "\xff\x80\n",
                                        "copies of this",
                                        "b",
                                        "software"};

struct Outcome {
  std::map<std::int64_t, std::string> answers, refusals;
  std::vector<std::int64_t> done;
  Progress progress;
};

// The first three prompts are available at once; each further one after five more steps, or when
// the server waits for it.
Outcome outcome_of(Server& server, const std::vector<std::string>& prompts) {
  Outcome out;
  std::size_t given = 0, steps = 0;
  Client client;
  client.next = [&](bool wait) -> std::optional<std::string> {
    bool there = wait || given < 3 || steps >= 5 * (given - 2);
    if (given == prompts.size() || !there) return std::nullopt;
    return prompts[given++];
  };
  client.byte = [&](std::int64_t number, char byte) { out.answers[number] += byte; };
  client.done = [&](std::int64_t number) { out.done.push_back(number); };
  client.refused = [&](std::int64_t number, const std::string& why) { out.refusals[number] = why; };
  client.progress = [&](const Progress&) { ++steps; };
  out.progress = server.run(client);
  return out;
}

TEST_F(Serve, ManyAtOnceOnAnyMeshGetWhatEachGetsAlone) {
  OneByOne alone;
  constexpr std::int64_t kCount = 40;
  // A byte that ends some answers early: one that occurs in the first answer.
  std::string until = alone.answer(kPrompts[0], kCount, "").substr(20, 1);
  std::map<std::int64_t, std::string> expected;
  std::int64_t shorter = 0, written = 0;
  for (std::size_t i = 0; i < kPrompts.size(); ++i) {
    std::string answer = alone.answer(kPrompts[i], kCount, until);
    shorter += answer.size() < kCount;
    written += static_cast<std::int64_t>(answer.size());
    expected[static_cast<std::int64_t>(i)] = answer;
  }
  ASSERT_GT(shorter, 0);
  ASSERT_LT(shorter, 7) << "and some go on";
  for (auto [data, model, batch] :
       {std::tuple(1, 1, 1), std::tuple(1, 1, 3), std::tuple(2, 4, 4)}) {
    nn::AxisRules rules = rules_on(data, model);
    Server server(gpt::Trained{gpt::decoder_of(model_on(rules)), kSeen}, rules,
                  {.batch = batch, .chunk = 8, .count = kCount, .until = until, .temperature = 0});
    server.warm_up();
    Outcome out = outcome_of(server, kPrompts);
    EXPECT_EQ(out.answers, expected) << data << "x" << model << ", batch " << batch;
    EXPECT_THAT(out.done, testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6));
    EXPECT_EQ(out.progress.answered, 7);
    EXPECT_EQ(out.progress.begun, 7);
    EXPECT_EQ(out.progress.at_work, 0);
    EXPECT_EQ(out.progress.written, written);
    if (batch > 1) {
      EXPECT_LT(out.progress.steps, written) << "several bytes a step";
    }
  }
}

TEST_F(Serve, DrawsDoNotDependOnTheCompany) {
  Outcome all[2];
  for (std::int64_t i = 0; i < 2; ++i) {
    Server server(gpt::Trained{gpt::decoder_of(model_on({})), kSeen}, {},
                  {.batch = 1 + 3 * i, .chunk = 8, .count = 12, .temperature = 1, .seed = 5});
    all[i] = outcome_of(server, kPrompts);
  }
  EXPECT_EQ(all[0].answers, all[1].answers);
  EXPECT_NE(all[0].answers[1].substr(0, 8), all[0].answers[5].substr(0, 8)) << "each has its own";
}

TEST_F(Serve, RefusesABadRequestAndGoesOn) {
  Server server(gpt::Trained{gpt::decoder_of(model_on({})), kSeen}, {}, {.batch = 2, .count = 3});
  std::vector<std::string> prompts{"", "a", std::string(Server::kLongestPrompt + 1, 'x'), "b", ""};
  Outcome out = outcome_of(server, prompts);
  EXPECT_EQ(out.answers.size(), 2u);
  EXPECT_EQ(out.answers[1].size(), 3u);
  EXPECT_EQ(out.answers[3].size(), 3u);
  EXPECT_EQ(out.refusals.size(), 3u);
  EXPECT_EQ(out.refusals[0], "the prompt is empty");
  EXPECT_EQ(out.refusals[2], "the prompt has 65537 bytes, more than 65536");
  EXPECT_EQ(out.progress.refused, 3);
}

TEST_F(Serve, LoadsACheckpointOfATrainingShardByShard) {
  gpt::Options options;
  options.sizes = kSizes;
  options.steps = 2;
  options.batch = 2;
  options.context = kSeen;
  options.checkpoint = in_folder("serve_test_training.safetensors");
  std::string text;
  for (int i = 0; i < 200; ++i) text += "a line of the book\n";
  gpt::Trainer trainer(options, {text, text, "lines"});
  trainer.run();

  gpt::Trained loaded = load_model(options.checkpoint, rules_on(2, 4)).value();
  EXPECT_EQ(loaded.context, kSeen);
  EXPECT_EQ(load_model(options.checkpoint, rules_on(2, 4), 7)->context, 7);
  EXPECT_EQ(loaded.model.blocks[1].mlp.down.weight.sharding()->spec(), P("model", none));
  std::vector<Tensor> expected = structure::tensors(gpt::decoder_of(trainer.state().model));
  std::vector<Tensor> found = structure::tensors(loaded.model);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_EQ(found[i].to_vector<float>(), expected[i].to_vector<float>());

  // A file with only the parameters is also accepted.
  std::string bare = in_folder("serve_test_bare.safetensors");
  io::save(bare, trainer.state().model).value();
  EXPECT_EQ(load_model(bare, rules_on(1, 1))->context, kContext);
}

TEST_F(Serve, SaysWhatIsWrongWithAFile) {
  std::string path = in_folder("serve_test_wrong.safetensors");
  gpt::Trained whole{gpt::decoder_of(model_on({})), kSeen};
  auto message = [&] {
    Result<gpt::Trained> loaded = load_model(path, rules_on(1, 1));
    return loaded.ok() ? std::string("it loads") : std::string(loaded.error().what());
  };
  std::filesystem::remove(path);
  EXPECT_THAT(message(), HasSubstr(path));
  io::save(path, whole).value();
  EXPECT_EQ(message(), "it loads");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1000);
  EXPECT_THAT(message(), testing::AllOf(HasSubstr(path), HasSubstr("bytes")));
  std::filesystem::resize_file(path, 5);
  EXPECT_THAT(message(), HasSubstr(path));

  io::save(path, {{"w", ones({2})}}).value();
  EXPECT_THAT(message(), testing::AllOf(HasSubstr(path), HasSubstr("not the weights of")));
  whole.model.blocks[1].mlp.up.weight = Tensor();
  io::save(path, {{"bytes.table", whole.model.bytes.table},
                  {"blocks.0.attention.query", whole.model.blocks[0].attention.query},
                  {"blocks.0.mlp.gate.weight", whole.model.blocks[0].mlp.gate.weight}})
      .value();
  EXPECT_THAT(message(), HasSubstr("blocks.0.attention_norm.scale")) << "the first one missing";
}

TEST_F(Serve, RefusesWhatCannotBeServed) {
  auto made = [](std::int64_t context, Serving serving) {
    Server(gpt::Trained{gpt::decoder_of(model_on({})), context}, {}, serving);
  };
  EXPECT_THROW(made(1, {}), Error);
  EXPECT_THROW(made(kSeen, {.batch = 0}), Error);
  EXPECT_THROW(made(kSeen, {.chunk = 0}), Error);
  EXPECT_THROW(made(kSeen, {.count = 0}), Error);
}

TEST(ServeModule, NeedsNeitherWeightsNorDevices) {
  std::string module = step_module(kSizes, kSeen, rules_on(2, 4), {.batch = 4, .chunk = 8});
  EXPECT_THAT(module, HasSubstr("\"data\"=2, \"model\"=4"));
  EXPECT_THAT(module, HasSubstr("tensor<4x4x24x8xf32>")) << "a cache";
}

TEST(ServeOptions, AreReadAndRefused) {
  const char* arguments[] = {"serve",   "--weights", "w",       "--mesh", "2x4",
                             "--batch", "6",         "--until", "\n"};
  Options options = parse_options(9, arguments).value();
  EXPECT_EQ(options.mesh(), Mesh({{"data", 2}, {"model", 4}}));
  EXPECT_EQ(options.serving.batch, 6);
  EXPECT_EQ(options.serving.until, "\n");
  using Arguments = std::vector<const char*>;
  for (auto [wrong, says] :
       {std::pair(Arguments{"serve"}, "--weights"),
        std::pair(Arguments{"serve", "--weights", "a", "--make", "b"}, "exclude"),
        std::pair(Arguments{"serve", "--weights"}, "cannot use --weights"),
        std::pair(Arguments{"serve", "--weights", "a", "--batch", "0"}, "--batch"),
        std::pair(Arguments{"serve", "--weights", "a", "--temperature", "-1"}, "--temperature"),
        std::pair(Arguments{"serve", "--weights", "a", "--mesh", "2"}, "--mesh"),
        std::pair(Arguments{"serve", "--weights", "a", "--mesh", "3x1"}, "--batch 8"),
        std::pair(Arguments{"serve", "--make", "a", "--heads", "3"}, "3 heads"),
        std::pair(Arguments{"serve", "--speed", "9"}, "--speed")}) {
    Result<Options> read = parse_options(static_cast<int>(wrong.size()), wrong.data());
    ASSERT_FALSE(read.ok()) << says;
    EXPECT_THAT(read.error().what(), HasSubstr(says));
  }
}

}  // namespace
}  // namespace serve
