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
  if (name == "--temperature") return read_number(value, out.temperature);
  if (name == "--seed") return read_number(value, out.seed);
  std::int64_t* size = name == "--batch"    ? &out.batch
                       : name == "--length" ? &out.length
                       : name == "--count"  ? &out.count
                       : name == "--layers" ? &out.sizes.layers
                       : name == "--width"  ? &out.sizes.width
                       : name == "--heads"  ? &out.sizes.heads
                       : name == "--hidden" ? &out.sizes.hidden
                                            : nullptr;
  if (size) return read_size(value, *size);
  std::string* text = name == "--weights"   ? &out.weights
                      : name == "--make"    ? &out.make
                      : name == "--prompts" ? &out.prompts
                      : name == "--export"  ? &out.module
                                            : nullptr;
  if (text) *text = value;
  return text && !value.empty();
}

}  // namespace

Mesh Options::mesh() const { return Mesh({{"data", data_devices}, {"model", model_devices}}); }

const char* usage() {
  return R"(usage: serve --weights FILE [options] < prompts
       serve --make FILE [--layers N --width N --heads N --hidden N --seed N]

Continues each line of its input, several at a time: a line takes a free place in the batch as soon
as there is one. Answers are printed in the order of the lines, byte by byte as they come; progress
goes to standard error. The same line, seed and weights give the same answer on every mesh and in
any company, up to rounding.

  --weights PATH     safetensors of examples/gpt's model: a file, an index of several, or a folder
  --prompts FILE     the lines; - (default) is standard input
  --mesh 2x4         devices along "data" (places of the batch) and "model" (heads, hidden values)
  --batch N          places in the batch (8)
  --length N         bytes that a place holds, prompt and answer (512)
  --count N          bytes of an answer (100)
  --temperature T    0 takes the likeliest byte (0.7)
  --seed N           of the draws, and of --make
  --export FILE      writes the StableHLO module of a step, for meshard explain
  --make FILE        writes untrained weights of these sizes and ends
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
  if (!options.help && options.weights.empty() == options.make.empty())
    return Error(ErrorCode::kInvalidArgument, "say --weights or --make; see --help");
  if (options.batch % options.data_devices != 0)
    return Error(ErrorCode::kInvalidArgument,
                 cat("--batch ", options.batch, " is not divided by the ", options.data_devices,
                     " devices along \"data\""));
  return options;
}

}  // namespace serve
