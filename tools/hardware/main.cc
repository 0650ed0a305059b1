// meshard-hardware STEP: one step of `./dev hardware` on the device of the plugin in
// MESHARD_PLUGIN.
#include <atomic>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/meshard.h"
#include "meshard/ops/debug_print.h"
#include "meshard/ops/pure_callback.h"
#include "meshard/pjrt/host_call.h"
#include "tools/hardware/check.h"

namespace meshard::hardware {
namespace {

constexpr const char* kUsage =
    "usage: meshard-hardware device|transfers|memory|host-calls|explain|rows|ffi\n"
    "\n"
    "Runs the checks of one step on the devices of MESHARD_PLUGIN, and prints a JSON object for "
    "each\n"
    "check: name, status (passed, failed, unsupported, measured), text, value, unit. Exit code: 0 "
    "if\n"
    "the step came to its end, whatever its checks found. `./dev hardware` runs all steps.\n";

void device_step() {
  const pjrt::Client& client = runtime_client();
  const pjrt::Device& device = *client.addressable_devices()[0];
  print({"platform", "passed", client.platform()});
  print({"platform-version", "passed", client.platform_version()});
  print({"device-kind", "passed", device.description().kind().value()});
  print({"pjrt-api", "passed", client.plugin().version().to_string()});
  print({"plugin", "passed", client.plugin().path()});
  measured("devices", static_cast<double>(client.addressable_devices().size()), "");
}

void host_call_step() {
  Tensor x = from_host(std::vector<float>{1, -2, 3}, {3});
  check("debug-print", [&] {
    std::string line;
    set_debug_print_handler([&](std::string_view text) { line = text; });
    auto f = jit(
        [](Tensor given) {
          debug_print("sum {}", sum(given));
          return given * 2.0f;
        },
        JitOptions{.name = "prints"});
    block_until_ready(f(x));
    set_debug_print_handler({});
    require(line.find("sum 2") != line.npos, cat("the program printed \"", line, "\""));
    return line;
  });
  check("callback", [&] {
    auto negated = [](std::span<const HostArray> given) {
      std::vector<float> values = given[0].to_vector<float>();
      for (float& value : values) value = -value;
      return std::vector{HostArray::from_vector(values)};
    };
    auto f = jit([&](Tensor given) {
      return pure_callback(negated, {given * 2.0f}, {{DType::f32, {3}}})[0];
    });
    std::vector<float> values = f(x).to_host().to_vector<float>();
    require(values == std::vector<float>{-2, 4, -6}, cat("the values are ", join(values, ", ")));
    return join(values, ", ");
  });
  check("nan-check", [&] {
    set_check_nans(true);
    std::string found;
    try {
      block_until_ready(jit([](Tensor given) { return log(given); })(x));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kUnimplemented) throw;
      found = error.what();
    }
    set_check_nans(false);
    require(found.find("log") != found.npos, cat("log(-2) was not reported: \"", found, "\""));
    return found;
  });
}

std::atomic<int> handler_calls = 0;

Result<void> triple(const pjrt::HostCall& call) {
  ++handler_calls;
  const auto* from = static_cast<const float*>(call.arguments[0].data);
  auto* to = static_cast<float*>(call.results[0].data);
  for (int i = 0; i < 4; ++i) to[i] = 3 * from[i];
  return {};
}

void ffi_step() {
  check("handler", [] {
    constexpr const char* kTarget = "meshard.hardware.triple";
    pjrt::accept_host_calls(runtime_client(), kTarget, triple).value();
    auto f = jit(
        [](Tensor x) {
          return custom_call(kTarget, {x + 1.0f}, {{DType::f32, {4}}})[0];
        },
        JitOptions{.name = "ffi", .keep_on_disk = false});
    std::vector<float> values =
        f(from_host(std::vector<float>{0, 1, 2, 3}, {4})).to_vector<float>();
    require(values == std::vector<float>{3, 6, 9, 12}, cat("the values are ", join(values, ", ")));
    require(handler_calls == 1, cat(handler_calls.load(), " calls instead of 1"));
    return join(values, ", ");
  });
  check("unknown-target", [] {
    try {
      auto f = jit([](Tensor x) {
        return custom_call("meshard.nobody", {x}, {{DType::f32, {4}}})[0];
      });
      block_until_ready(f(ones({4})));
    } catch (const Error& error) {
      require(std::string_view(error.what()).find("meshard.nobody") != std::string_view::npos,
              cat("the error does not name the target: ", error.what()));
      return std::string(error.what());
    }
    throw Error(ErrorCode::kInternal, "a call of a target that nobody registered succeeded");
  });
}

struct Step {
  std::string_view name;
  void (*run)();
};
constexpr Step kSteps[] = {{"device", device_step},   {"transfers", transfer_step},
                           {"memory", memory_step},   {"host-calls", host_call_step},
                           {"explain", explain_step}, {"rows", rows_step},
                           {"ffi", ffi_step}};

int run(int count, char** arguments) {
  for (const Step& step : kSteps) {
    if (count != 2 || step.name != arguments[1]) continue;
    check("client", [] { return runtime_client().platform(); });
    step.run();
    print({"end", "passed"});
    return 0;
  }
  bool help = count == 2 && std::string_view(arguments[1]) == "--help";
  std::fputs(kUsage, help ? stdout : stderr);
  return help ? 0 : 2;
}

}  // namespace
}  // namespace meshard::hardware

int main(int count, char** arguments) {
  try {
    return meshard::hardware::run(count, arguments);
  } catch (const std::exception& error) {
    meshard::hardware::print({"step", "failed", error.what()});
    return 1;
  }
}
