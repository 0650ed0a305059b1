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
  if (name == "--seed") return read_number(value, out.seed);
  std::string* text = name == "--data"     ? &out.data
                      : name == "--out"    ? &out.out
                      : name == "--losses" ? &out.losses
                                           : nullptr;
  if (text) *text = value;
  return text && !value.empty();
}

}  // namespace

const char* usage() {
  return R"(usage: digits [options]

Trains a small classifier of handwritten digits over a mesh of devices, and shows where the data is.

  --mesh 2x4         devices along "data" (the batch) and "model" (the weights)
  --devices 4,5,..   the ids of the devices, in row-major order; default 0, 1, 2, ...
  --steps N          training steps (default 600)
  --seed N           of the initial weights and of the order of the digits (default 1)
  --data FILE        the digits: 64 pixels of 0..16 and a label in each line
  --out DIR          folder of loss.svg and sharding.svg (default demo-out)
  --losses FILE      writes the loss of every step, one per line
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
  auto wanted = static_cast<std::size_t>(options.data_devices * options.model_devices);
  if (!options.devices.empty() && options.devices.size() != wanted)
    return wrong(cat("--mesh ", options.data_devices, "x", options.model_devices, " needs ", wanted,
                     " devices, but --devices lists ", options.devices.size()));
  if (options.data.empty()) options.data = default_data_path();
  return options;
}

meshard::Mesh Options::mesh() const {
  std::vector<meshard::MeshAxis> axes{{"data", data_devices}, {"model", model_devices}};
  return devices.empty() ? meshard::Mesh(axes) : meshard::Mesh(axes, devices);
}

int Options::device_count() const {
  std::int64_t most = data_devices * model_devices;
  for (std::int64_t id : devices) most = std::max(most, id + 1);
  return static_cast<int>(std::max<std::int64_t>(most, 8));
}

}  // namespace digits
