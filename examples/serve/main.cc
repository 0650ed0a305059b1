// Serves a trained model: prompts are lines, answers are streamed, many at a time.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <string>

#include "examples/serve/line_queue.h"
#include "examples/serve/options.h"
#include "examples/serve/server.h"
#include "examples/serve/weights.h"
#include "meshard/meshard.h"

namespace {

using namespace meshard;
using Clock = std::chrono::steady_clock;

// Prints answers in the order of their requests: the first that is not done is streamed, later ones
// wait for their turn.
class InOrder {
 public:
  void add(std::string prompt) {
    waiting_[last_++].text = std::move(prompt);
    show();
  }
  void byte(std::int64_t number, char byte) {
    waiting_.at(number).text += byte;
    show();
  }
  void done(std::int64_t number) {
    waiting_.at(number).done = true;
    show();
  }

 private:
  struct Answer {
    std::string text;
    bool done = false;
  };
  void show() {
    for (auto first = waiting_.begin(); first != waiting_.end(); first = waiting_.erase(first)) {
      std::cout << first->second.text << std::flush;
      first->second.text.clear();
      if (!first->second.done) return;
      std::cout << "\n--\n";
    }
  }
  std::map<std::int64_t, Answer> waiting_;
  std::int64_t last_ = 0;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void report(const serve::Progress& progress, double seconds) {
  auto rate = static_cast<double>(progress.read + progress.written) / seconds;
  std::cerr << progress.answered << " answered, " << progress.at_work << " at work; "
            << progress.read << " bytes read and " << progress.written << " written in "
            << progress.steps << " steps, " << static_cast<std::int64_t>(rate) << " bytes/s\n";
}

void make_weights(const serve::Options& options) {
  nn::AxisRules rules = gpt::rules_for(options.mesh(), false);
  gpt::Gpt model = nn::create(rules, static_cast<std::int64_t>(options.seed),
                              [&](nn::Maker& make) { return gpt::make_gpt(make, options.sizes); });
  io::save(options.make, model).value();
  std::cerr << "wrote " << gpt::count_parameters(model) << " untrained weights to " << options.make
            << "\n";
}

void answer(const serve::Options& options) {
  auto start = Clock::now();
  nn::AxisRules rules = gpt::rules_for(options.mesh(), false);
  gpt::Gpt model = serve::load_model(options.weights, rules).value();
  std::cerr << gpt::count_parameters(model) << " weights on " << options.mesh().to_string()
            << " in " << seconds_since(start) << " s\n";
  serve::Server server(
      std::move(model), rules,
      {options.batch, options.length, options.count, options.temperature, options.seed});
  if (!options.module.empty()) {
    std::ofstream file(options.module, std::ios::binary);
    if (!(file << server.module()).flush())
      throw Error(ErrorCode::kUnavailable, "cannot write " + options.module);
    std::cerr << "wrote the module of a step to " << options.module << "\n";
  }
  static std::ifstream prompts;  // its reader may outlive this function
  if (options.prompts != "-") {
    prompts.open(options.prompts);
    if (!prompts) throw Error(ErrorCode::kNotFound, "cannot read " + options.prompts);
  }
  serve::LineQueue lines(options.prompts == "-" ? std::cin : prompts);
  InOrder shown;
  start = Clock::now();
  auto told = start;
  serve::Client client;
  client.next = [&](bool wait) {
    std::optional<std::string> line = lines.next(wait);
    if (line) shown.add(*line);
    return line;
  };
  client.byte = [&](std::int64_t number, char byte) { shown.byte(number, byte); };
  client.done = [&](std::int64_t number) { shown.done(number); };
  client.progress = [&](const serve::Progress& progress) {
    if (seconds_since(told) < 2) return;
    told = Clock::now();
    report(progress, seconds_since(start));
  };
  serve::Progress all = server.run(client);
  report(all, seconds_since(start));
}

void run(const serve::Options& options) {
  configure_runtime({.cpu_devices = static_cast<int>(options.mesh().size())}).value();
  if (options.make.empty())
    answer(options);
  else
    make_weights(options);
}

}  // namespace

int main(int argc, char** argv) {
  setenv("TF_CPP_MIN_LOG_LEVEL", "3", /*overwrite=*/0);  // the CPU plugin tells of each compile
  try {
    serve::Options options = serve::parse_options(argc, argv).value();
    if (options.help)
      std::cout << serve::usage();
    else
      run(options);
  } catch (const meshard::Error& error) {
    std::cerr << "serve: " << error.what() << '\n';
    return 2;
  }
  return 0;
}
