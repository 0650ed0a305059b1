#include "examples/digits/options.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "examples/digits/data.h"

namespace digits {
namespace {

using meshard::cat;

meshard::Error wrong(std::string text) {
  return meshard::Error(meshard::ErrorCode::kInvalidArgument, "[digits] " + std::move(text));
}

template <class Number>
bool read_number(std::string_view text, Number& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_mesh(std::string_view text, Options& out) {
  std::size_t cross = text.find('x');
  return cross != text.npos && read_number(text.substr(0, cross), out.data_devices) &&
         read_number(text.substr(cross + 1), out.model_devices) && out.data_devices > 0 &&
         out.model_devices > 0 && out.data_devices <= 512 && out.model_devices <= 512;
}

bool read_list(std::string_view text, std::vector<std::int64_t>& out) {
  out.clear();
  while (true) {
    std::size_t comma = std::min(text.find(','), text.size());
    std::int64_t id = 0;
    if (!read_number(text.substr(0, comma), id) || id < 0 || id > 2047) return false;
    out.push_back(id);
    if (comma == text.size()) return true;
    text.remove_prefix(comma + 1);
  }
}

bool read_option(std::string_view name, std::string_view value, Options& out) {
  if (name == "--mesh") return read_mesh(value, out);
  if (name == "--devices") return read_list(value, out.devices);
  if (name == "--steps") return read_number(value, out.steps) && out.steps > 0;
  if (name == "--pipeline") return read_number(value, out.stages) && out.stages > 0;
  if (name == "--chunks") return read_number(value, out.chunks) && out.chunks > 0;
  if (name == "--microbatches") return read_number(value, out.microbatches) && out.microbatches > 0;
  if (name == "--schedule") {
    out.schedule = value;
    return value == "gpipe" || value == "1f1b" || value == "interleaved" || value == "zb-h1";
  }
  if (name == "--seed") return read_number(value, out.seed);
  std::string* text = name == "--data"     ? &out.data
                      : name == "--out"    ? &out.out
                      : name == "--losses" ? &out.losses
                      : name == "--save"   ? &out.save
                                           : nullptr;
  if (text) *text = value;
  return text && !value.empty();
}

meshard::Result<void> check_pipeline(const Options& options) {
  if (options.stages == 1) return {};
  if (options.stages > 4) return wrong(cat("the model has 4 stages, not ", options.stages));
  std::int64_t rows = options.microbatches * options.data_devices;
  if (kBatch % rows != 0)
    return wrong(cat("a batch of ", kBatch, " cannot be divided into ", options.microbatches,
                     " microbatches over ", options.data_devices, " devices each"));
  if (options.schedule == "interleaved" && options.stages % options.chunks != 0)
    return wrong(cat(options.stages, " stages cannot be divided into ", options.chunks,
                     " chunks for each worker"));
  return {};
}

}  // namespace

const char* usage() {
  return R"(usage: digits [options]

Trains a small classifier of handwritten digits over a mesh of devices, and shows where the data is.

  --mesh 2x4         devices along "data" (the batch) and "model" (the weights)
  --devices 4,5,..   the ids of the devices, in row-major order; default 0, 1, 2, ...
  --pipeline N       up to 4 stages, each on a mesh of its own as --mesh says: the layers, and the loss (default 1)
  --schedule NAME    the order of the stages' work: gpipe, 1f1b (default), interleaved or zb-h1
  --microbatches N   the parts of a batch, which the stages work on at the same time (default 8)
  --chunks N         the stages of each worker of an interleaved pipeline (default 2)
  --steps N          training steps (default 600)
  --seed N           of the initial weights and of the order of the digits (default 1)
  --data FILE        the digits: 64 pixels of 0..16 and a label in each line
  --out DIR          folder of loss.svg and sharding.svg (default demo-out)
  --losses FILE      writes the loss of every step, one per line
  --save FILE        writes the trained parameters (safetensors)
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
    if (i + 1 == count) return wrong(cat(name, " is not an option, or its value is missing"));
    std::string_view value = arguments[++i];
    if (!read_option(name, value, options)) return wrong(cat("cannot use: ", name, " ", value));
  }
  MESHARD_RETURN_IF_ERROR(check_pipeline(options));
  std::int64_t wanted = options.workers() * options.data_devices * options.model_devices;
  if (!options.devices.empty() && static_cast<std::int64_t>(options.devices.size()) != wanted)
    return wrong(cat(options.workers() > 1 ? cat(options.workers(), " workers with ") : "",
                     "--mesh ", options.data_devices, "x", options.model_devices,
                     options.workers() > 1 ? " need " : " needs ", wanted,
                     " devices, but --devices lists ", options.devices.size()));
  if (options.data.empty()) options.data = default_data_path();
  return options;
}

meshard::Mesh Options::mesh(std::int64_t worker) const {
  std::vector<std::int64_t> own;
  std::int64_t size = data_devices * model_devices;
  for (std::int64_t i = worker * size; i < (worker + 1) * size; ++i)
    own.push_back(devices.empty() ? i : devices[static_cast<std::size_t>(i)]);
  return meshard::Mesh({{"data", data_devices}, {"model", model_devices}}, own);
}

int Options::device_count() const {
  std::int64_t most = workers() * data_devices * model_devices;
  for (std::int64_t id : devices) most = std::max(most, id + 1);
  return static_cast<int>(std::max<std::int64_t>(most, 8));
}

}  // namespace digits
