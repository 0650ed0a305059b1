// Configures the runtime of this process to use the fake plugin.
#pragma once
#include <string>

#include "meshard/meshard.h"
#include "meshard/runtime/device_array.h"
#include "tests/fake_plugin/load_fake.h"
#include "tests/support/matchers.h"

namespace meshard {

/// The control functions of the fake plugin that this process uses. The plugin computes nothing,
/// but the rest of the runtime is real.
inline const FakeControl& fake_runtime() {
  static const FakeControl control = [] {
    FakeControl found(MESHARD_FAKE_PLUGIN);
    found.reset();
    RuntimeOptions options{.plugin = MESHARD_FAKE_PLUGIN, .platform = "fake", .client_options = {}};
    options.client_options.push_back({"cpu_device_count", std::int64_t{8}});
    configure_runtime(std::move(options)).value();
    return found;
  }();
  return control;
}

/// `file.cc:42: `, for the line of the call.
inline std::string at_line(SourceLocation where) { return where.to_string() + ":"; }

inline Tensor f32(Shape shape, SourceLocation where = SourceLocation::current()) {
  return from_host(HostArray::zeros({DType::f32, std::move(shape)}), where);
}
inline Tensor i32(Shape shape, SourceLocation where = SourceLocation::current()) {
  return from_host(HostArray::zeros({DType::i32, std::move(shape)}), where);
}

}  // namespace meshard

/// Checks that `statement`, on this line, throws an Error with this code, whose text has this line
/// and all other parts.
#define EXPECT_ERROR_HERE(statement, code, ...)                                    \
  do {                                                                             \
    std::vector<std::string> parts{__VA_ARGS__};                                   \
    parts.push_back(::meshard::at_line(::meshard::SourceLocation::current()));     \
    EXPECT_TRUE(::meshard::throws_error([&] { (void)(statement); }, code, parts)); \
  } while (false)
