// Heat on a plate that is sharded over devices. Simulates it forward in two ways that agree, then
// recovers the initial heat from a later observation by gradient descent.
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "examples/heat/heat.h"
#include "meshard/meshard.h"

namespace {

using namespace meshard;

constexpr const char* kUsage = R"(usage: heat [options]

Simulates heat on a plate over a mesh of devices, and recovers the initial state from the final one.

  --mesh 2x4      devices along "rows" and "columns"
  --size N        points along each side (default 64)
  --steps N       time steps (default 20)
  --export FILE   writes the StableHLO module of the gradient for `meshard explain`, and runs nothing
)";

struct Options {
  std::int64_t rows = 2, columns = 4, size = 64, steps = 20;
  std::string module;
};

bool is_first() { return processes().process_index() == 0; }

bool read_number(std::string_view text, std::int64_t& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out > 0;
}

bool read_option(std::string_view name, std::string_view value, Options& out) {
  if (name == "--size") return read_number(value, out.size);
  if (name == "--steps") return read_number(value, out.steps);
  if (name == "--export") return !(out.module = value).empty();
  std::size_t cross = value.find('x');
  return name == "--mesh" && cross != value.npos && read_number(value.substr(0, cross), out.rows) &&
         read_number(value.substr(cross + 1), out.columns);
}

Options read_options(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; i += 2)
    if (i + 1 == count || !read_option(arguments[i], arguments[i + 1], options))
      throw Error(ErrorCode::kInvalidArgument, cat("cannot use ", arguments[i], "\n", kUsage));
  if (options.size % options.rows != 0 || options.size % options.columns != 0)
    throw Error(ErrorCode::kInvalidArgument,
                cat("the size ", options.size, " is not divisible by both sizes of the mesh ",
                    options.rows, "x", options.columns));
  return options;
}

// Prints the plate to the terminal; darker is warmer.
void draw(const char* title, const Tensor& plate) {
  constexpr std::string_view kShades = " .:-=+*#%@";
  std::vector<double> points = plate.to_vector<double>();
  std::int64_t size = plate.dim(0), lines = std::min<std::int64_t>(size, 16);
  std::printf("%s\n", title);
  for (std::int64_t i = 0; i < lines; ++i) {
    for (std::int64_t j = 0; j < 2 * lines; ++j) {
      double u = points[static_cast<std::size_t>(i * size / lines * size + j * size / lines / 2)];
      std::printf(
          "%c", kShades[static_cast<std::size_t>(std::lround(std::fmin(std::fmax(u, 0), 1) * 9))]);
    }
    std::printf("\n");
  }
}

template <class Program>
void print_collectives(const char* title, const Program& program) {
  if (!is_first()) return;  // compiles the program again, if it runs in several processes
  ProgramReport report = explain(program);
  std::printf("%s\n", title);
  for (const CollectiveGroup& group : report.groups()) std::printf("  %s\n", cat(group).c_str());
  if (report.groups().empty()) std::printf("  none\n");
}

void run_forward(const Options& options, const Mesh& mesh, const Tensor& start) {
  auto shifts = jit([&](const Tensor& u) { return heat::by_shifts(u, options.steps); });
  auto exchange = jit([&](const Tensor& u) { return heat::by_exchange(mesh, u, options.steps); });
  Tensor end = shifts(start), other = exchange(start);
  draw("initial state:", start);
  draw(cat("after ", options.steps, " steps:").c_str(), end);
  std::printf("shifted slices and explicit exchanges differ by at most %.1e\n",
              max(abs(end - other)).item<double>());
  print_collectives("collectives of the shifted slices:", shifts);
  print_collectives("collectives of the explicit exchanges:", exchange);
}

// Compares the gradient in one direction with a difference quotient.
void check_gradient(const Options& options, const Tensor& start, const Tensor& observed,
                    const Tensor& gradient) {
  Tensor direction = random::normal(random::key(1), start.shape(), DType::f64);
  auto loss_at = jit(
      [&](const Tensor& u, const Tensor& seen) { return heat::misfit(u, seen, options.steps); });
  constexpr double kDistance = 1e-4;
  double quotient = (loss_at(start + kDistance * direction, observed).item<double>() -
                     loss_at(start - kDistance * direction, observed).item<double>()) /
                    (2 * kDistance);
  double product = sum(gradient * direction).item<double>();
  std::printf(
      "derivative in a random direction: %.9e from the gradient, %.9e from finite differences\n",
      product, quotient);
  if (!(std::abs(product - quotient) <= 1e-6 * std::abs(quotient)))
    throw Error(ErrorCode::kInternal, "the gradient differs from the finite differences");
}

void run_backward(const Options& options, const Mesh& mesh, const Tensor& truth) {
  Tensor observed = jit([&](const Tensor& u) { return heat::by_shifts(u, options.steps); })(truth);
  // The loss is a mean over n points, so the learning rate is scaled by n.
  double rate = 0.5 * static_cast<double>(truth.size());
  auto step = jit([&](const Tensor& u, const Tensor& seen) {
    auto [loss, gradient] =
        value_and_grad([&](const Tensor& at) { return heat::misfit(at, seen, options.steps); })(u);
    return std::tuple(u - rate * gradient, loss, gradient);
  });
  Tensor guess = mark_sharding(zeros(truth.shape(), DType::f64), mesh, P("rows", "columns"));
  if (!options.module.empty()) {
    if (!is_first()) return;
    std::ofstream file(options.module, std::ios::binary);
    if (!(file << module_text(step, guess, observed)).flush())
      throw Error(ErrorCode::kUnavailable, "cannot write " + options.module);
    return;
  }
  for (int i = 0; i <= 100; ++i) {
    auto [next, loss, gradient] = step(guess, observed);
    if (i == 0) check_gradient(options, guess, observed, gradient);
    if (i % 25 == 0)
      std::printf("after %3d updates of the initial state: misfit %.3e\n", i, loss.item<double>());
    guess = next;
  }
  draw("recovered initial state:", guess);
  print_collectives("collectives of one update:", step);
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2 && std::string_view(arguments[1]) == "--help") {
    std::fputs(kUsage, stdout);
    return 0;
  }
  try {
    Options options = read_options(count, arguments);
    // Under mpirun, every process runs this program, with one device of the mesh; process 0 prints.
    (void)initialize_processes().value();
    if (!is_first() && !std::freopen("/dev/null", "w", stdout)) return 1;
    Mesh mesh({{"rows", options.rows}, {"columns", options.columns}});
    configure_runtime({.cpu_devices = static_cast<int>(mesh.size())}).value();
    Tensor start = heat::warm_disc(mesh, options.size);
    if (options.module.empty()) run_forward(options, mesh, start);
    run_backward(options, mesh, start);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "heat: %s\n", error.what());
    return 1;
  }
}
