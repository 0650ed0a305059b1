#include "examples/serve/options.h"

#include <charconv>
#include <string_view>

namespace serve {

using namespace meshard;

namespace {

template <class Number>
bool read_number(std::string_view text, Number& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out >= 0;
}

bool read_size(std::string_view text, std::int64_t& out) {
  return read_number(text, out) && out > 0;
}

bool read_mesh(std::string_view text, Options& out) {
  std::size_t cross = text.find('x');
  return cross != text.npos && read_size(text.substr(0, cross), out.data_devices) &&
         read_size(text.substr(cross + 1), out.model_devices);
}

bool read_option(std::string_view name, std::string_view value, Options& out) {
  if (name == "--mesh") return read_mesh(value, out);
  if (name == "--temperature") return read_number(value, out.serving.temperature);
  if (name == "--seed") return read_number(value, out.serving.seed);
  std::int64_t* size = name == "--batch"     ? &out.serving.batch
                       : name == "--chunk"   ? &out.serving.chunk
                       : name == "--count"   ? &out.serving.count
                       : name == "--context" ? &out.context
                       : name == "--layers"  ? &out.sizes.layers
                       : name == "--width"   ? &out.sizes.width
                       : name == "--heads"   ? &out.sizes.heads
                       : name == "--hidden"  ? &out.sizes.hidden
                                             : nullptr;
  if (size) return read_size(value, *size);
  std::string* text = name == "--weights"   ? &out.weights
                      : name == "--make"    ? &out.make
                      : name == "--prompts" ? &out.prompts
                      : name == "--export"  ? &out.module
                      : name == "--until"   ? &out.serving.until
                                            : nullptr;
  if (text) *text = value;
  return text && !value.empty();
}

Result<void> check(const Options& options) {
  auto wrong = [](std::string text) { return Error(ErrorCode::kInvalidArgument, std::move(text)); };
  if (!options.weights.empty() && !options.make.empty())
    return wrong("--weights and --make exclude each other; see --help");
  if (options.weights.empty() && options.make.empty() && options.module.empty())
    return wrong("specify --weights, --make or --export; see --help");
  if (options.serving.batch % options.data_devices != 0)
    return wrong(cat("--batch ", options.serving.batch, " is not divisible by the ",
                     options.data_devices, " devices along \"data\""));
  if (options.sizes.width % (2 * options.sizes.heads) != 0)
    return wrong(cat("--width ", options.sizes.width, " cannot be divided into ",
                     options.sizes.heads, " heads of even size"));
  return {};
}

}  // namespace

Mesh Options::mesh() const { return Mesh({{"data", data_devices}, {"model", model_devices}}); }

const char* usage() {
  return R"(usage: serve --weights PATH [options] < prompts
       serve --make FILE [--layers N --width N --heads N --hidden N --context N --seed N]
       serve --export FILE [--weights PATH, or sizes as above] [options]

Continues each line of its input, several at a time: a line takes a free slot of the batch as soon
as there is one. Answers are printed in the order of the lines, byte by byte as they come; progress
goes to standard error. The same line, seed and weights give the same answer on every mesh and in
any company, up to rounding.

  --weights PATH     a checkpoint of examples/gpt, or its model alone: a safetensors file, an index
                     of several, or a folder
  --prompts FILE     the lines; - (default) is standard input
  --mesh 2x4         devices along "data" (places of the batch) and "model" (heads, hidden values)
  --batch N          places in the batch (8)
  --chunk N          bytes of a prompt that a step reads at most (16)
  --count N          bytes of an answer at most (100)
  --until TEXT       ends an answer before this text
  --temperature T    0 chooses the most likely byte (0.5)
  --context N        bytes that the model sees at a time: what it was trained on (as the file says)
  --seed N           of the sampling, and of --make
  --make FILE        writes untrained weights of these sizes and exits
  --export FILE      writes the StableHLO module of a step, for meshard explain, and exits
)";
}

Result<Options> parse_options(int count, const char* const* arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    std::string_view name = arguments[i];
    if (name == "--help") {
      options.help = true;
    } else if (i + 1 == count || !read_option(name, arguments[i + 1], options)) {
      return Error(ErrorCode::kInvalidArgument, cat("cannot use ", name, "; see --help"));
    } else {
      ++i;
    }
  }
  if (!options.help) MESHARD_RETURN_IF_ERROR(check(options));
  return options;
}

}  // namespace serve
