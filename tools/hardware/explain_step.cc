// What explain() says of a program, beside the measured time of its runs.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "meshard/explain/cost/link_use.h"
#include "meshard/explain/cost/schedule.h"
#include "meshard/meshard.h"
#include "tools/hardware/check.h"

namespace meshard::hardware {
namespace {

Tensor filled(Shape shape, DType dtype) {
  Tensor x = jit([=] { return astype(sin(iota(DType::f32, shape, shape.rank() - 1)), dtype); },
                 JitOptions{.name = "fill"})();
  block_until_ready(x);
  return x;
}

std::string device_kind() {
  return runtime_client().addressable_devices()[0]->description().kind().value();
}

// A run cannot be faster than the roofline of the published peaks. Clocks above the published ones,
// and the resolution of the clock, are worth a tenth.
void compare(const std::string& name, const std::function<Tensor(Tensor)>& f, const Tensor& x) {
  double seconds = 0;
  std::optional<ProgramReport> report;
  check(cat("compiles.", name), [&] {
    auto program = jit([f](Tensor given) { return f(given); }, JitOptions{.name = name});
    seconds = least_seconds([&] { block_until_ready(program(x)); });
    report = explain(program);
    return cat(report->memory() ? report->memory()->to_string() : "no memory figures");
  });
  if (!report) return;
  const ProgramReport::Parts& parts = report->parts();
  measured(cat("seconds.", name), seconds, "s");
  measured(cat("flops.", name), parts.cost.total_flops() / seconds, "FLOP/s");
  measured(cat("bytes.", name), parts.cost.memory_bytes / seconds, "B/s");
  // Reports of programs of this process have no roofline; those for targets have this one.
  std::optional<HardwareFigures> figures = hardware_figures(device_kind());
  if (!figures) return;
  Roofline roofline = roofline_of(parts.cost, {}, LinkModel(*figures, std::nullopt, std::nullopt));
  double bound = roofline.seconds();
  check(cat("roofline.", name), [&] {
    require(seconds >= 0.9 * bound, cat("measured ", seconds, " s, but explain() says at least ",
                                        bound, " s, bound by ", roofline.bound_by()));
    return cat("at least ", bound, " s by ", roofline.bound_by());
  });
  measured(cat("measured-over-roofline.", name), seconds / bound, "");
}

}  // namespace

bool is_slow() {
  Tensor x = filled({512, 512}, DType::f32);
  auto product = jit([](Tensor a) { return matmul(a, a); }, JitOptions{.name = "speed"});
  return least_seconds([&] { block_until_ready(product(x)); }, 0.1) > 5e-4;
}

void explain_step() {
  const std::int64_t n = is_slow() ? 512 : 4096;
  const std::string kind = device_kind();
  check("figures", [&] {
    if (hardware_figures(kind)) return cat("published figures of ", kind, " are known");
    throw Error(ErrorCode::kUnimplemented,
                cat("no published figures of ", kind, ": times are not compared with estimates"));
  });
  for (DType dtype : {DType::f32, DType::bf16}) {
    Tensor x = filled({n, n}, dtype);
    compare(
        cat("product-", to_string(dtype)), [](Tensor a) { return matmul(a, a); }, x);
  }
  Tensor x = filled({n, 4 * n}, DType::f32);
  compare(
      "sum-f32", [](Tensor a) { return sum(a, {1}); }, x);
  compare(
      "elementwise-f32", [](Tensor a) { return a * 2.0f + 1.0f; }, x);
  compare(
      "softmax-f32", [](Tensor a) { return softmax(a); }, x);
}

}  // namespace meshard::hardware
