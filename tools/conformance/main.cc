// meshard-conformance: compares meshard's answers with those recorded from other implementations.
#include <cstdlib>
#include <fstream>
#include <iostream>

#include "tools/conformance/jax/calls/call_judge.h"
#include "tools/conformance/report.h"
#include "tools/conformance/worker.h"

namespace meshard::conformance {
namespace {

constexpr const char* kUsage =
    "usage: meshard-conformance --data DIR [--skip-tag TAG]... [--observe OUT.json]\n"
    "       [--roundings DTYPE=N]...\n"
    "\n"
    "Walks DIR for golden files (*.json), runs the cases of those it knows by name, and prints a\n"
    "line for each file and each failure. Exit code: 0 if none failed, 1 otherwise, 2 for a wrong\n"
    "command line.\n"
    "\n"
    "  --data DIR          where the golden files are, in folders of any depth\n"
    "  --skip-tag TAG      leave out cases with this tag; may be given more than once\n"
    "  --observe OUT.json  write our raw answers, before any rule: file name -> [{name, answer}]\n"
    "  --roundings f32=N   rounding errors that a result of this dtype may have in calls_*.json;\n"
    "                      default: 4 for f16 and bf16, 16 for f32 and c64, 32 for f64 and c128\n"
    "\n"
    "meshard-conformance --worker N answers inputs, a line each, on N virtual devices; the "
    "program\n"
    "starts itself so for cases that need devices. Without a plugin these are skipped.\n";

struct Arguments {
  RunOptions options;
  std::string observe_path;
};

/// `f32=100`.
bool read_roundings(const std::string& text) {
  std::size_t equals = text.find('=');
  if (equals == text.npos) return false;
  char* end = nullptr;
  double roundings = std::strtod(text.c_str() + equals + 1, &end);
  return end != text.c_str() + equals + 1 && *end == 0 &&
         set_roundings(text.substr(0, equals), roundings);
}

/// Parses the command line into `arguments`. Returns an error message if it is invalid.
std::string read_arguments(int argc, char** argv, Arguments& arguments) {
  for (int i = 1; i < argc; ++i) {
    std::string option = argv[i];
    bool known = option == "--data" || option == "--skip-tag" || option == "--observe" ||
                 option == "--roundings";
    if (!known) return "unknown option " + option;
    if (++i == argc) return option + " needs a value";
    if (option == "--data") arguments.options.data = argv[i];
    if (option == "--skip-tag") arguments.options.skipped_tags.emplace_back(argv[i]);
    if (option == "--observe") arguments.observe_path = argv[i];
    if (option == "--roundings" && !read_roundings(argv[i]))
      return "--roundings takes DTYPE=N, such as f32=100, not " + std::string(argv[i]);
  }
  arguments.options.observe = !arguments.observe_path.empty();
  if (arguments.options.data.empty()) return "--data is missing";
  if (!std::filesystem::is_directory(arguments.options.data))
    return arguments.options.data.string() + " is not a folder";
  return {};
}

int run(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--help") {
    std::cout << kUsage;
    return 0;
  }
  if (argc == 3 && std::string_view(argv[1]) == "--worker")
    return serve_answers(std::atoi(argv[2]));
  Arguments arguments;
  if (std::string wrong = read_arguments(argc, argv, arguments); !wrong.empty()) {
    std::cerr << "meshard-conformance: " << wrong << "\n\n" << kUsage;
    return 2;
  }
  RunReport report = run_all(arguments.options, std::cout);
  if (arguments.options.observe) {
    std::ofstream file(arguments.observe_path);
    file << report.observed.dump() << "\n";
    if (!file.flush()) {
      std::cerr << "meshard-conformance: cannot write " << arguments.observe_path << "\n";
      return 2;
    }
  }
  std::cout << report.total.passed + report.total.by_rule << " passed, " << report.total.failed
            << " failed";
  if (report.total.skipped) std::cout << ", " << report.total.skipped << " skipped";
  std::cout << '\n';
  return report.total.failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace meshard::conformance

int main(int argc, char** argv) { return meshard::conformance::run(argc, argv); }
