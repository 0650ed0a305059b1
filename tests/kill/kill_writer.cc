// Writes files repeatedly until it is killed, or checks the files after it was killed.
//
//   kill_writer checkpoint FILE      two tensors with one value, which changes with each write
//   kill_writer npy FILE             the same as one array
//   kill_writer compiled FOLDER      entries of the compile cache, bounded to a few of them
//   kill_writer check-KIND PATH      0 if the files are intact
//   kill_writer once-KIND PATH       one more write that is not killed
#include <cstdio>
#include <filesystem>
#include <string>

#include "meshard/io/npy.h"
#include "meshard/meshard.h"
#include "meshard/target/compile_job.h"

namespace {

namespace fs = std::filesystem;
using namespace meshard;

constexpr std::int64_t kElements = 300'000;
constexpr int kKeys = 5;
constexpr std::uint64_t kMostBytes = 3'000'000;  // for entries of about 1 MB each

HostArray array_of(std::int64_t elements, float number) {
  return HostArray::full<float>({elements}, number);
}

void write(const std::string& kind, const std::string& path, int number) {
  auto value = static_cast<float>(number);
  if (kind == "checkpoint")
    io::save(path, {{"large", from_host(array_of(kElements, value))},
                    {"small", from_host(array_of(3, value))}})
        .value();
  if (kind == "npy") io::save_npy(path, array_of(kElements, value)).value();
  if (kind == "compiled") {
    Compiled compiled;
    compiled.log = std::string(1'000'000, static_cast<char>('a' + number % 26));
    CompiledCache(path, kMostBytes).keep(cat("key", number % kKeys), compiled).value();
  }
}

bool is_filled(const std::vector<float>& values, std::int64_t elements, float number) {
  if (static_cast<std::int64_t>(values.size()) != elements) return false;
  for (float value : values)
    if (value != number) return false;
  return true;
}

bool is_whole_cache(const std::string& folder) {
  int found = 0;
  for (int i = 0; i < kKeys; ++i) {
    CompiledCache cache(folder, kMostBytes);
    std::string key = cat("key", i);
    if (!fs::exists(cache.path_of(key))) continue;
    ++found;
    auto compiled = cache.find(key);
    if (!compiled || compiled->log != std::string(1'000'000, compiled->log.at(0))) return false;
  }
  return found > 0;
}

bool is_whole(const std::string& kind, const std::string& path) {
  if (kind == "compiled") return is_whole_cache(path);
  if (kind == "npy") {
    std::vector<float> values = io::load_npy(path).value().to_vector<float>();
    return is_filled(values, kElements, values.at(0));
  }
  auto tensors = io::load(path).value();
  std::vector<float> small = tensors.at("small").to_vector<float>();
  return is_filled(small, 3, small.at(0)) &&
         is_filled(tensors.at("large").to_vector<float>(), kElements, small.at(0));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  std::string kind = argv[1], path = argv[2];
  try {
    if (kind.starts_with("check-")) return is_whole(kind.substr(6), path) ? 0 : 1;
    if (kind.starts_with("once-")) return write(kind.substr(5), path, 1), 0;
    for (int number = 0;; ++number) {
      write(kind, path, number);
      if (number > 0) continue;
      std::puts("writing");  // the first file is complete
      std::fflush(stdout);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
