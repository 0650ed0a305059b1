// Shared by the plugin tests: the plugins under test, programs, and arrays.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/pjrt/buffer.h"
#include "meshard/pjrt/loaded_executable.h"
#include "meshard/pjrt/plugin_search.h"
#include "tests/fake_plugin/load_fake.h"

namespace meshard::pjrt {

/// A plugin under test. An empty path is a real plugin that was not found.
struct Subject {
  std::string name;
  std::string path;
  bool is_fake = false;
};

/// The fake plugin, and MESHARD_TEST_PLUGINS (paths separated by colons) or the CPU plugin of this
/// machine.
inline std::vector<Subject> subjects() {
  std::vector<Subject> result = {{"fake", MESHARD_FAKE_PLUGIN, true}};
  if (const char* list = std::getenv("MESHARD_TEST_PLUGINS")) {
    std::string text = list;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = std::min(text.find(':', at), text.size());
      if (end > at)
        result.push_back({"plugin" + std::to_string(result.size()), text.substr(at, end - at)});
      at = end + 1;
    }
    return result;
  }
  result.push_back({"cpu", find_plugins().first("cpu").value_or("")});
  return result;
}

inline NamedValue device_count_option(std::int64_t count) { return {"cpu_device_count", count}; }

inline Client make_client(const Plugin& plugin, std::int64_t devices = 8) {
  NamedValue option = device_count_option(devices);
  return Client::create(plugin, {&option, 1}).value();
}

/// @main returns its arguments, each an f32 array of `per_device` * `partitions` elements that is
/// split over all partitions. With `donate`, each result reuses its argument's memory.
inline std::string pass_on(int partitions, int arguments, bool donate = false, int per_device = 4) {
  std::string type = "tensor<" + std::to_string(per_device * partitions) + "xf32>";
  std::string sharding = "sdy.sharding = #sdy.sharding<@m, [{\"x\"}]>";
  std::string parameters, results, values, types;
  for (int i = 0; i < arguments; ++i) {
    std::string comma = i == 0 ? "" : ", ";
    std::string n = std::to_string(i);
    append(parameters, cat(comma, "%a", n, ": ", type, " {", sharding,
                           donate ? ", tf.aliasing_output = " + n + " : i32" : "", "}"));
    append(results, cat(comma, type, " {", sharding, "}"));
    append(values, cat(comma, "%a", n));
    append(types, cat(comma, type));
  }
  return "module @pass_on { sdy.mesh @m = <[\"x\"=" + std::to_string(partitions) +
         "]>\n func.func public @main(" + parameters + ") -> (" + results + ") { return " + values +
         " : " + types + " } }";
}

inline CompileOptions on_devices(std::vector<int> ids) {
  CompileOptions options;
  options.num_partitions = static_cast<int>(ids.size());
  options.device_assignment = std::move(ids);
  return options;
}

inline CompileOptions on_first(int count) {
  std::vector<int> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  return on_devices(ids);
}

template <class T>
std::vector<T> read_all(const BufferView& buffer) {
  std::vector<T> values(static_cast<std::size_t>(buffer.type().element_count()));
  buffer.read(std::as_writable_bytes(std::span(values))).value();
  return values;
}

inline Buffer send(const Client& client, const Device& device, const std::vector<float>& values,
                   std::vector<std::int64_t> dimensions = {}) {
  if (dimensions.empty()) dimensions = {static_cast<std::int64_t>(values.size())};
  HostArrayView view{values.data(), ElementType::kF32, dimensions};
  auto sent =
      client.buffer_from_host(view, HostSemantics::kImmutableOnlyDuringCall, device).value();
  return std::move(sent.buffer);
}

inline std::vector<const BufferList*> pointers_to(const std::vector<BufferList>& lists) {
  std::vector<const BufferList*> pointers;
  for (const BufferList& list : lists) pointers.push_back(&list);
  return pointers;
}

inline BufferList list_of(Buffer buffer) { return BufferList::of({&buffer, 1}); }

/// A launch and its outputs.
struct Launched {
  std::vector<BufferList> outputs;
  Launch launch;
};

inline Result<Launched> execute(const LoadedExecutable& program,
                                std::span<const BufferList* const> arguments,
                                const LaunchOptions& options = {}) {
  Launched result{std::vector<BufferList>(program.output_count()), {}};
  MESHARD_ASSIGN_OR_RETURN(result.launch, program.execute(arguments, result.outputs, options));
  return result;
}

/// Arguments of a pass_on program: argument i of device k holds 100 * k + 10 * i + {0, 1, 2, 3}.
struct Arguments {
  Arguments(const Client& client, const LoadedExecutable& program) {
    for (std::size_t i = 0; i < program.parameter_count(); ++i) {
      std::vector<Buffer> buffers;
      for (std::size_t k = 0; k < program.devices().size(); ++k)
        buffers.push_back(send(client, *program.devices()[k], values(k, i)));
      lists.push_back(BufferList::of(buffers));
    }
    pointers = pointers_to(lists);
  }
  static std::vector<float> values(std::size_t k, std::size_t i) {
    float base = static_cast<float>(100 * k + 10 * i);
    return {base, base + 1, base + 2, base + 3};
  }
  std::vector<BufferList> lists;
  std::vector<const BufferList*> pointers;
};

/// A client with 8 devices of the plugin under test. The fake plugin behaves like a CPU plugin.
class PluginTest : public ::testing::TestWithParam<Subject> {
 protected:
  void SetUp() override {
    ::setenv("TF_CPP_MIN_LOG_LEVEL", "3", 0);
    if (GetParam().path.empty())
      GTEST_SKIP() << "no CPU plugin was found; run `./dev build` or set MESHARD_TEST_PLUGINS";
    if (GetParam().is_fake) {
      FakeControl control(GetParam().path);
      control.reset();
      control.set_platform("cpu");  // the launch rules of the CPU plugin also apply here
      control.set_trap(kFakeWedge);
    }
    client_ = make_client(plugin());
  }
  Plugin plugin() const { return Plugin::load(GetParam().path).value(); }
  const Client& client() const { return *client_; }
  const Device& device(std::size_t i = 0) const { return *client().addressable_devices()[i]; }
  std::optional<Client> client_;
};

}  // namespace meshard::pjrt
