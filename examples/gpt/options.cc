#include "examples/gpt/options.h"

#include <charconv>
#include <numeric>
#include <string_view>
#include <vector>

namespace gpt {
namespace {

using meshard::cat;

meshard::Error wrong(std::string text) {
  return meshard::Error(meshard::ErrorCode::kInvalidArgument, "[gpt] " + std::move(text));
}

template <class Number>
bool read_number(std::string_view text, Number& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

// Parses data=2,model=4; either may be omitted.
bool read_mesh(std::string_view text, Options& out) {
  out.data_devices = out.model_devices = 1;
  while (true) {
    std::string_view part = text.substr(0, text.find(','));
    std::int64_t* size = part.starts_with("data=")    ? &out.data_devices
                         : part.starts_with("model=") ? &out.model_devices
                                                      : nullptr;
    if (!size || !read_number(part.substr(part.find('=') + 1), *size) || *size < 1 || *size > 512)
      return false;
    if (part.size() == text.size()) return true;
    text.remove_prefix(part.size() + 1);
  }
}

bool read_positive(std::string_view text, std::int64_t& out) {
  return read_number(text, out) && out > 0;
}

bool read_option(std::string_view name, std::string_view value, Options& out) {
  if (name == "--mesh") return read_mesh(value, out);
  if (name == "--steps") return read_positive(value, out.steps);
  if (name == "--batch") return read_positive(value, out.batch);
  if (name == "--pipeline") return read_positive(value, out.stages) && out.stages <= 512;
  if (name == "--chunks") return read_positive(value, out.chunks);
  if (name == "--microbatches")
    return read_positive(value, out.microbatches) && out.microbatches <= 1 << 20;
  if (name == "--context") return read_positive(value, out.context);
  if (name == "--save-every") return read_positive(value, out.save_every);
  if (name == "--layers") return read_positive(value, out.sizes.layers);
  if (name == "--width") return read_positive(value, out.sizes.width);
  if (name == "--heads") return read_positive(value, out.sizes.heads);
  if (name == "--hidden") return read_positive(value, out.sizes.hidden);
  if (name == "--rate") return read_number(value, out.rate) && out.rate > 0;
  if (name == "--seed") return read_number(value, out.seed);
  if (name == "--sample") return read_number(value, out.sample) && out.sample >= 0;
  if (name == "--temperature") return read_number(value, out.temperature) && out.temperature >= 0;
  if (name == "--schedule") {
    out.schedule = value;
    return value == "gpipe" || value == "1f1b" || value == "interleaved" || value == "zb-h1";
  }
  std::string* text = name == "--data"         ? &out.data
                      : name == "--losses"     ? &out.losses
                      : name == "--checkpoint" ? &out.checkpoint
                      : name == "--export"     ? &out.module
                      : name == "--prompt"     ? &out.prompt
                                               : nullptr;
  if (text) *text = value;
  return text && !value.empty();
}

meshard::Result<void> check_pipeline(const Options& options) {
  if (options.stages == 1) return {};
  if (options.stages > options.sizes.layers)
    return wrong(cat(options.sizes.layers, " layers cannot be divided into ", options.stages,
                     " stages (--layers)"));
  std::int64_t rows = options.microbatches * options.data_devices;
  if (options.batch % rows != 0)
    return wrong(cat("a batch of ", options.batch, " cannot be divided into ", options.microbatches,
                     " microbatches over ", options.data_devices, " devices each"));
  if (options.schedule == "interleaved" && options.stages % options.chunks != 0)
    return wrong(cat(options.stages, " stages cannot be divided into ", options.chunks,
                     " chunks for each worker"));
  if (options.resume || !options.module.empty())
    return wrong("--resume and --export are for one stage, without --pipeline");
  return {};
}

meshard::Result<void> check(const Options& options) {
  if (options.batch % options.data_devices != 0)
    return wrong(cat("a batch of ", options.batch, " cannot be split over ", options.data_devices,
                     " devices"));
  if (options.sizes.width % (2 * options.sizes.heads) != 0)
    return wrong(cat("a width of ", options.sizes.width, " cannot be divided into ",
                     options.sizes.heads, " heads of even size"));
  if (options.resume && options.checkpoint.empty()) return wrong("--resume needs --checkpoint");
  return check_pipeline(options);
}

}  // namespace

const char* usage() {
  return R"(usage: gpt [options]

Trains a transformer on bytes of text over a mesh of devices, and generates text.

  --mesh data=2,model=4   devices along "data" (the batch) and "model" (heads and hidden values); default one
  --sequence              splits the values between the layers over "model" by time
  --pipeline N            divides the layers into N stages, each on a mesh of its own as --mesh says; default 1
  --schedule NAME         the order of the stages' work: gpipe, 1f1b (default), interleaved or zb-h1
  --microbatches N        the parts of a batch, which the stages work on at the same time; default 8
  --chunks N              the stages of each worker of an interleaved pipeline; default 2
  --steps N  --batch N  --context N  --rate X  --seed N         default 1000, 16, 64, 0.002, 1
  --layers N  --width N  --heads N  --hidden N                  default 2, 64, 4, 176
  --data FILE             training text; default the license texts of this system
  --checkpoint FILE       the checkpoint (safetensors), written during training and at the end; under mpirun, each
                          process writes its own file beside an index
  --save-every N          steps between checkpoints (default 100)
                          With --pipeline, it has the model, but not the optimizer's state.
  --resume                resumes from the checkpoint, on the same mesh or another, in any number of processes
  --sample N  --prompt TEXT  --temperature X                    the text generated at the end: default 300 bytes
  --losses FILE           writes the loss of every step, one per line
  --export FILE           writes the step's StableHLO module for `meshard explain`, and trains nothing
)";
}

meshard::Result<Options> parse_options(int count, const char* const* arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    std::string_view name = arguments[i];
    if (name == "--help" || name == "-h") {
      options.help = true;
      return options;
    }
    if (name == "--sequence" || name == "--resume") {
      (name == "--resume" ? options.resume : options.sequence) = true;
      continue;
    }
    if (i + 1 == count) return wrong(cat(name, " is not an option, or its value is missing"));
    std::string_view value = arguments[++i];
    if (!read_option(name, value, options)) return wrong(cat("cannot use: ", name, " ", value));
  }
  MESHARD_RETURN_IF_ERROR(check(options));
  return options;
}

meshard::Mesh Options::mesh(std::int64_t worker) const {
  std::vector<std::int64_t> devices(static_cast<std::size_t>(data_devices * model_devices));
  std::iota(devices.begin(), devices.end(), worker * data_devices * model_devices);
  return meshard::Mesh({{"data", data_devices}, {"model", model_devices}}, devices);
}

std::int64_t Options::device_count() const { return workers() * data_devices * model_devices; }

}  // namespace gpt
