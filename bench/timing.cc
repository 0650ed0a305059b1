#include "bench/timing.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <string>

namespace meshard::bench {

std::int64_t memory(const char* key) {
  std::ifstream status("/proc/self/status");
  std::string wanted = std::string(key) + ":", word;
  std::int64_t kibibytes = 0;
  while (status >> word)
    if (word == wanted) {
      status >> kibibytes;
      break;
    }
  return kibibytes * 1024;
}

std::optional<std::string> output_of_child(const std::function<std::string()>& work) {
  std::fflush(nullptr);
  int ends[2];
  if (pipe(ends) != 0) return std::nullopt;
  pid_t child = fork();
  if (child < 0) return std::nullopt;
  if (child == 0) {
    close(ends[0]);
    int status = 1;
    try {
      std::string output = work();
      std::FILE* out = fdopen(ends[1], "w");
      bool written = std::fwrite(output.data(), 1, output.size(), out) == output.size();
      status = std::fclose(out) == 0 && written ? 0 : 1;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "meshard-bench: %s\n", error.what());
    }
    std::fflush(nullptr);
    std::exit(status);
  }
  close(ends[1]);
  std::string output;
  char part[4096];
  for (ssize_t count; (count = read(ends[0], part, sizeof part)) > 0;)
    output.append(part, static_cast<std::size_t>(count));
  close(ends[0]);
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) return std::nullopt;
  return output;
}

std::vector<double> numbers_of_child(const std::function<std::vector<double>()>& measure) {
  std::optional<std::string> bytes = output_of_child([&] {
    std::vector<double> numbers = measure();
    return std::string(reinterpret_cast<const char*>(numbers.data()),
                       numbers.size() * sizeof(double));
  });
  std::vector<double> numbers(bytes ? bytes->size() / sizeof(double) : 0);
  if (!numbers.empty()) std::memcpy(numbers.data(), bytes->data(), numbers.size() * sizeof(double));
  return numbers;
}

void reset_peak_memory() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace meshard::bench
