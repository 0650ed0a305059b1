// Explains a training step of a large transformer on an absent pod: how its parameters are sharded,
// what the partitioner inserts, whether it fits, and a lower bound for its time.
#include <charconv>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>

#include "examples/pod/model.h"

namespace {

using namespace meshard;

constexpr const char* kUsage = R"(usage: pod [options]

Explains a training step of a Llama-shaped transformer on absent hardware. Nothing runs.

  --topology NAME   v5e:4x4 (default), v5p:4x4x4, v6e:16x16, two slices v5e:4x4*2, h100:2x8, cpu:8
  --mesh 4x4        devices along "data" and along "model"
  --layers N  --width N  --hidden N  --heads N  --key-heads N  --vocabulary N  --batch N  --sequence N
  --careless        splits the MLP's second weight like its first
  --json FILE  --html FILE  --module FILE   writes the report, its page, the StableHLO module
)";

struct Options {
  std::string topology = "v5e:4x4", json, html, module;
  std::int64_t data = 4, model = 4;
  bool careless = false;
  pod::Sizes sizes;
};

bool read_number(std::string_view text, std::int64_t& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out > 0;
}

bool read_option(std::string_view name, std::string_view value, Options& out) {
  pod::Sizes& s = out.sizes;
  if (name == "--mesh") {
    std::size_t cross = value.find('x');
    return cross != value.npos && read_number(value.substr(0, cross), out.data) &&
           read_number(value.substr(cross + 1), out.model);
  }
  std::int64_t* number = name == "--layers"       ? &s.layers
                         : name == "--width"      ? &s.width
                         : name == "--hidden"     ? &s.hidden
                         : name == "--heads"      ? &s.heads
                         : name == "--key-heads"  ? &s.key_heads
                         : name == "--vocabulary" ? &s.vocabulary
                         : name == "--batch"      ? &s.batch
                         : name == "--sequence"   ? &s.sequence
                                                  : nullptr;
  if (number) return read_number(value, *number);
  std::string* text = name == "--topology" ? &out.topology
                      : name == "--json"   ? &out.json
                      : name == "--html"   ? &out.html
                      : name == "--module" ? &out.module
                                           : nullptr;
  if (text) *text = value;
  return text && !value.empty();
}

Options read_options(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    std::string_view name = arguments[i];
    if (name == "--careless") {
      options.careless = true;
    } else if (i + 1 == count || !read_option(name, arguments[i + 1], options)) {
      throw Error(ErrorCode::kInvalidArgument, cat("cannot use ", name, "\n", kUsage));
    } else {
      ++i;
    }
  }
  return options;
}

void write(const std::string& path, const std::string& text) {
  if (path.empty()) return;
  std::ofstream file(path, std::ios::binary);
  if (!(file << text).flush()) throw Error(ErrorCode::kUnavailable, "cannot write " + path);
}

void run(const Options& options) {
  const pod::Sizes& sizes = options.sizes;
  Target target = Target::parse(options.topology).value();
  Mesh mesh = torus_mesh(target.topology(), {options.data, options.model}, {{"data", "model"}});

  auto make = [&](Shape shape, DType dtype, const PartitionSpec& spec) {
    return abstract_tensor(std::move(shape), dtype, mesh, spec);
  };
  pod::Training state = pod::make_training(sizes, make, options.careless);
  Tensor tokens = make({sizes.batch, sizes.sequence}, DType::i32, P("data", none));
  auto step = jit(
      [&](const pod::Training& before, const Tensor& inputs, const Tensor& targets) {
        return pod::train_step(before, inputs, targets, mesh, sizes);
      },
      {.name = "train_step", .donate = {0}});

  write(options.module, module_text(step, state, tokens, tokens));
  ProgramReport report = explain(target, step, state, tokens, tokens);
  std::cout << report.to_string();
  write(options.json, to_json(report));
  write(options.html, to_html(report));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::cout << kUsage;
    return 0;
  }
  try {
    run(read_options(argc, argv));
  } catch (const meshard::Error& error) {
    std::cerr << "pod: " << error.what() << '\n';
    return 2;
  }
}
