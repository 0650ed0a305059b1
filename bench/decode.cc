// Steps of decoding with a key-value cache: the time depends on what is read, not on the capacity.
#include <cstdint>
#include <functional>
#include <vector>

#include "bench/on_devices.h"
#include "bench/report.h"
#include "bench/timing.h"

namespace meshard::bench {
namespace {

constexpr std::int64_t kLayers = 4, kWidth = 256, kBatch = 8;

/// Attention layers and their caches of `capacity` positions, of which each step reads `read`.
class Decoder {
 public:
  Decoder(std::int64_t capacity, std::int64_t read)
      : step_(jit(Step([read](const std::vector<nn::Attention>& layers, Tensor x,
                              std::vector<nn::KeyValueCache> caches, const Tensor& start) {
                    for (std::size_t i = 0; i < layers.size(); ++i) {
                      auto [attended, next] =
                          nn::attention(layers[i], x, caches[i], start, {.read = read});
                      caches[i] = next;
                      x = x + attended;
                    }
                    return Result{x, caches};
                  }),
                  {.name = "decode", .donate = {2}})) {
    layers_ = nn::create({}, 1, [](nn::Maker& make) {
      std::vector<nn::Attention> layers;
      for (std::int64_t i = 0; i < kLayers; ++i)
        layers.push_back(nn::make_attention(make, kWidth, {.heads = 8}));
      return layers;
    });
    for (const nn::Attention& layer : layers_)
      caches_.push_back(nn::make_cache({}, layer, kBatch, capacity));
    x_ = meshard::ones({kBatch, 1, kWidth}) * 0.1f;
    start_ = full({kBatch}, 100, DType::i32);
    sync(std::vector{x_, start_});
    for (int i = 0; i < 3; ++i) step();
  }

  double step() {
    double begin = now();
    Result result = step_(layers_, x_, caches_, start_);
    caches_ = std::move(result.caches);
    wait_for(result.x);
    return now() - begin;
  }

 private:
  struct Result {
    Tensor x;
    std::vector<nn::KeyValueCache> caches;
    MESHARD_FIELDS(x, caches)
  };
  using Step = std::function<Result(const std::vector<nn::Attention>&, Tensor,
                                    std::vector<nn::KeyValueCache>, const Tensor&)>;
  Jit<Step> step_;
  std::vector<nn::Attention> layers_;
  std::vector<nn::KeyValueCache> caches_;
  Tensor x_, start_;
};

}  // namespace

void decode_rows(Report& report) {
  Decoder small(512, 256), large(4096, 256), exact(256, 0), whole(4096, 0);
  auto [ours, floor] = in_turns(
      100, [&] { return large.step(); }, [&] { return small.step(); });
  report.add(
      {.name = "decode.capacity",
       .work = "a step of 4 attention layers, batch 8, 256 positions of a cache of 4,096",
       .unit = "us",
       .ours = ours,
       .floor = floor,
       .floor_name = "the same with a cache of 512",
       .goal = "at most 1.10 times",
       .bound = 1.10 * floor,
       .note = cat("with a cache of 256 ", static_cast<long>(exact.step()),
                   " us, reading all 4,096 positions ", static_cast<long>(whole.step()), " us")});
}

}  // namespace meshard::bench
