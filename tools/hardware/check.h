// The lines that meshard-hardware prints: one JSON object for each check, as soon as it is done.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"
#include "meshard/base/json_writer.h"
#include "meshard/mesh/mesh.h"

namespace meshard::hardware {

/// The result of one check.
struct Check {
  std::string_view name;
  /// `passed`, `failed`, `unsupported` (the library or plugin says that the platform cannot do it),
  /// or `measured` for a number without a bound.
  std::string_view status;
  std::string text = {};
  std::optional<double> value = std::nullopt;
  std::string_view unit = {};
};

inline void print(const Check& check) {
  JsonWriter json;
  json.begin_object();
  json.member("name", check.name).member("status", check.status);
  if (!check.text.empty()) json.member("text", check.text);
  if (check.value) json.member("value", *check.value).member("unit", check.unit);
  json.end_object();
  std::puts(std::move(json).text().c_str());
  std::fflush(stdout);
}

inline void measured(std::string_view name, double value, std::string_view unit,
                     std::string text = {}) {
  print({name, "measured", std::move(text), value, unit});
}

/// Runs `f`, which returns a text for a passed check and throws otherwise.
template <class F>
void check(std::string_view name, F f) {
  try {
    print({name, "passed", f()});
  } catch (const Error& error) {
    bool unsupported = error.code() == ErrorCode::kUnimplemented;
    print({name, unsupported ? "unsupported" : "failed", error.what()});
  } catch (const std::exception& error) {
    print({name, "failed", error.what()});
  }
}

/// @error internal: `holds` is false
inline void require(bool holds, const std::string& what) {
  if (!holds) throw Error(ErrorCode::kInternal, what);
}

inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The least of several runs, after one to warm up: at least three, for about `budget` seconds.
template <class F>
double least_seconds(F run, double budget = 1) {
  run();
  double least = 1e300, begin = seconds_now();
  for (int i = 0; i < 3 || (i < 1000 && seconds_now() - begin < budget); ++i) {
    double start = seconds_now();
    run();
    least = std::min(least, seconds_now() - start);
  }
  return least;
}

/// A mesh of the first device.
const Mesh& one_device();
/// True if a product of 512 x 512 takes more than half a millisecond: CPUs, which get smaller work.
bool is_slow();

void transfer_step();
void memory_step();
void explain_step();
void rows_step();

}  // namespace meshard::hardware
