// Greedy decoding with the model of examples/gpt and a key-value cache.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/on_devices.h"
#include "bench/peers/contest.h"
#include "bench/peers/saved.h"
#include "bench/timing.h"
#include "examples/gpt/model.h"

namespace meshard::bench {
namespace {

constexpr std::int64_t kDecodeSteps = 8;

struct DecodeResult {
  gpt::Caches caches;
  Tensor tokens, start;
  MESHARD_FIELDS(caches, tokens, start)
};

/// Generates the last tokens of a context.
class GreedyDecoder {
 public:
  GreedyDecoder(const gpt::Decoder& model, std::int64_t batch, std::int64_t context)
      : model_(model),
        step_(jit(Step([context](const gpt::Decoder& params, const gpt::Caches& caches,
                                 const Tensor& tokens, const Tensor& start) {
                    auto [logits, next] =
                        gpt::next_byte(params, tokens, caches, start, start * 0, Static{context});
                    Tensor chosen = astype(argmax(logits, 1), DType::i32);
                    return DecodeResult{next, expand_dims(chosen, 1), start + 1};
                  }),
                  {.name = "decode", .donate = {1}})),
        caches_(gpt::make_caches(model, {}, batch, context)) {
    std::vector<std::int32_t> first;
    for (std::int32_t i = 0; i < batch; ++i) first.push_back(i % 256);
    first_ = from_host(std::move(first), {batch, 1});
    start_ = full({batch}, context - kDecodeSteps, DType::i32);
    sync(std::vector{first_, start_});
  }

  /// All steps. The tokens of the first row are added to `tokens`, unless it is null.
  double run(std::vector<int>* tokens = nullptr) {
    double begin = now();
    Tensor next = first_, start = start_;
    std::vector<Tensor> all;
    for (std::int64_t i = 0; i < kDecodeSteps; ++i) {
      DecodeResult result = step_(model_, caches_, next, start);
      caches_ = std::move(result.caches);
      next = result.tokens;
      start = result.start;
      all.push_back(next);
    }
    wait_for(next);
    double seconds = (now() - begin) / 1e6;
    if (tokens != nullptr)
      for (const Tensor& each : all) tokens->push_back(each.to_vector<std::int32_t>()[0]);
    return seconds;
  }

 private:
  using Step = std::function<DecodeResult(const gpt::Decoder&, const gpt::Caches&, const Tensor&,
                                          const Tensor&)>;
  gpt::Decoder model_;
  Jit<Step> step_;
  gpt::Caches caches_;
  Tensor first_, start_;
};

struct DecodePeer {
  std::string peer, suffix, about;
  bool compiled;
};

void decode_at(Contest& contest, const gpt::Decoder& model, const std::string& weights,
               std::int64_t batch, std::int64_t context) {
  GreedyDecoder ours(model, batch, context);
  std::vector<int> tokens;
  ours.run(&tokens);
  // One peer at a time, because each has caches of its own.
  for (const DecodePeer& given :
       {DecodePeer{"jax", "jax", "", false}, DecodePeer{"torch", "eager", ", eager", false},
        DecodePeer{"torch", "compiled", ", torch.compile", true}}) {
    if (!contest.has(given.peer)) continue;
    std::string name = cat("decode.", batch, ".", context, ".", given.suffix);
    contest.attempt(name, [&] {
      std::unique_ptr<Peer> process = contest.start(given.peer);
      nlohmann::json with{
          {"weights", weights}, {"batch", batch}, {"context", context}, {"steps", kDecodeSteps}};
      if (given.peer == "torch") with["compiled"] = given.compiled;
      PeerWork theirs(*process, "decode", with);
      std::vector<double> seconds = fastest_in_turns(
          context < 1024 ? 40 : 12, {[&] { return ours.run(); }, [&] { return theirs.run(); }});
      double count = static_cast<double>(batch * kDecodeSteps);
      bool same = theirs.facts().at("tokens") == nlohmann::json(tokens);
      add_figures(
          contest, given.peer,
          {.name = name,
           .work = cat("tokens a second, batch ", batch, ", context ", context, given.about),
           .unit = "1/s",
           .ours = count / seconds[0],
           .theirs = count / seconds[1],
           .higher_is_better = true,
           .note = same ? "the same tokens" : "other tokens"});
    });
  }
}

}  // namespace

void decode_contest(Contest& contest) {
  TemporaryFolder folder;
  gpt::Decoder model = nn::create({}, 1, [](nn::Maker& make) {
    return gpt::make_decoder(make, {.layers = 4, .width = 256, .heads = 8, .hidden = 704});
  });
  std::string weights = folder.file("gpt.safetensors");
  io::save(weights, model).value();
  for (std::int64_t context : {256, 4096})
    for (std::int64_t batch : {1, 8, 32}) decode_at(contest, model, weights, batch, context);
}

}  // namespace meshard::bench
