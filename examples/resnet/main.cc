// Trains ResNet-18 on synthetic images, with the batch split over the devices.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iomanip>
#include <string>
#include <string_view>

#include "examples/resnet/resnet.h"

namespace {

using namespace resnet;

constexpr const char* kUsage = R"(usage: resnet [options]

Trains ResNet-18 on synthetic images, with the batch split over the devices.

  --devices N     devices along "data" (default 8)
  --steps N       training steps (default 20)
  --batch N       images of a step (default 32)
  --size N        height and width of an image (default 64)
  --width N       filters of the first stage (default 64)
  --seed N        of the initial weights and of the images (default 1)
  --losses FILE   writes the loss of every step, one per line
  --save FILE     writes parameters and running statistics (safetensors)
)";

struct Options {
  std::int64_t devices = 8, steps = 20, batch = 32, size = 64, width = 64, seed = 1;
  std::string losses, save;
};

bool read_option(std::string_view name, std::string_view value, Options& out) {
  if (name == "--losses" || name == "--save")
    return !((name == "--save" ? out.save : out.losses) = value).empty();
  std::int64_t* number = name == "--devices" ? &out.devices
                         : name == "--steps" ? &out.steps
                         : name == "--batch" ? &out.batch
                         : name == "--size"  ? &out.size
                         : name == "--width" ? &out.width
                         : name == "--seed"  ? &out.seed
                                             : nullptr;
  if (!number) return false;
  auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *number);
  return error == std::errc() && end == value.data() + value.size() && *number > 0;
}

Options read_options(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; i += 2)
    if (i + 1 == count || !read_option(arguments[i], arguments[i + 1], options))
      throw Error(ErrorCode::kInvalidArgument, cat("cannot use ", arguments[i], "\n", kUsage));
  return options;
}

void run(const Options& options) {
  configure_runtime({.cpu_devices = std::max(8, static_cast<int>(options.devices))}).value();
  nn::AxisRules rules(Mesh({{"data", options.devices}}), {{"batch", "data"}});
  Sizes sizes{.width = options.width};
  Training training = make_training(rules, options.seed, sizes);
  Tensor key = random::key(options.seed);
  auto step = jit(&train_step, {.name = "train_step", .donate = {0}});
  std::ofstream losses;
  if (!options.losses.empty()) losses.open(options.losses);
  for (std::int64_t i = 1; i <= options.steps; ++i) {
    auto [images, labels] = batch_of(rules, key, i, options.batch, options.size, sizes.classes);
    auto [next, loss] = step(training, images, labels);
    training = next;
    double value = loss.item<float>();
    std::printf("step %3lld   loss %.4f\n", static_cast<long long>(i), value);
    losses << std::setprecision(9) << value << "\n";
  }
  // The statistics of all batches, instead of those of one.
  auto [images, labels] = batch_of(rules, key, options.steps + 1, options.batch, options.size, 10);
  auto evaluated = jit([](const Training& now, const Tensor& x, const Tensor& wanted) {
    return cross_entropy(logits_of(now.model, now.state, x, false).first, wanted);
  });
  std::printf("loss of other images, with the running statistics: %.4f\n",
              double{evaluated(training, images, labels).item<float>()});
  if (!options.save.empty())
    io::save(options.save, std::pair(training.model, training.state)).value();
}

}  // namespace

int main(int count, char** arguments) {
  try {
    run(read_options(count, arguments));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
