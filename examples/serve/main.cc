// Serves a trained model: reads prompts line by line, and streams many answers at a time.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <string>

#include "examples/serve/line_queue.h"
#include "examples/serve/options.h"
#include "examples/serve/server.h"
#include "examples/serve/weights.h"
#include "meshard/meshard.h"

namespace {

using namespace meshard;
using Clock = std::chrono::steady_clock;

// Prints answers in request order: the first unfinished one is streamed, later ones wait.
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
  void done(std::int64_t number, const std::string& note = {}) {
    waiting_.at(number).text += note;
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
      std::cout << "\n--\n" << std::flush;
    }
  }
  std::map<std::int64_t, Answer> waiting_;
  std::int64_t last_ = 0;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void report(const serve::Progress& progress, double seconds) {
  std::fprintf(stderr,
               "%lld answered, %lld in progress, %lld refused; %lld bytes read and %lld written in "
               "%lld steps and %.2f s: %.0f bytes written per second",
               static_cast<long long>(progress.answered), static_cast<long long>(progress.at_work),
               static_cast<long long>(progress.refused), static_cast<long long>(progress.read),
               static_cast<long long>(progress.written), static_cast<long long>(progress.steps),
               seconds, static_cast<double>(progress.written) / seconds);
  if (progress.begun > 0)
    std::fprintf(stderr, ", the first byte of an answer after %.1f ms",
                 1000 * progress.waited / static_cast<double>(progress.begun));
  std::fputs("\n", stderr);
}

void make_weights(const serve::Options& options) {
  nn::AxisRules rules = gpt::rules_for(options.mesh(), false);
  gpt::Trained made{
      nn::create(rules, static_cast<std::int64_t>(options.serving.seed),
                 [&](nn::Maker& make) { return gpt::make_decoder(make, options.sizes); }),
      options.context > 0 ? options.context : serve::kContext};
  io::save(options.make, made).value();
  std::cerr << "wrote " << gpt::count_parameters(made.model) << " untrained weights to "
            << options.make << "\n";
}

void write_module(const serve::Options& options) {
  gpt::Sizes sizes = options.sizes;
  std::int64_t context = options.context;
  if (!options.weights.empty()) {
    io::Weights weights = io::Weights::open(options.weights).value();
    sizes = serve::sizes_of(weights).value();
    if (context == 0) context = serve::context_of(weights).value();
  }
  std::ofstream file(options.module, std::ios::binary);
  if (!(file << serve::step_module(sizes, context > 0 ? context : serve::kContext,
                                   gpt::rules_for(options.mesh(), false), options.serving))
           .flush())
    throw Error(ErrorCode::kUnavailable, "cannot write " + options.module);
  std::cerr << "wrote the module of a step to " << options.module << "\n";
}

void answer(const serve::Options& options) {
  static std::ifstream prompts;  // the reader thread may outlive this function
  if (options.prompts != "-") {
    prompts.open(options.prompts);
    if (!prompts) throw Error(ErrorCode::kNotFound, "cannot read " + options.prompts);
  }
  auto start = Clock::now();
  nn::AxisRules rules = gpt::rules_for(options.mesh(), false);
  gpt::Trained model = serve::load_model(options.weights, rules, options.context).value();
  std::cerr << gpt::count_parameters(model.model) << " parameters on " << options.mesh().to_string()
            << ", with a context of " << model.context << " bytes, loaded in "
            << seconds_since(start) << " s\n";
  start = Clock::now();
  serve::Server server(std::move(model), rules, options.serving);
  server.warm_up();
  std::cerr << "compiled in " << seconds_since(start) << " s\n";
  serve::LineQueue lines(options.prompts == "-" ? std::cin : prompts);
  InOrder shown;
  start = Clock::now();
  auto reported = start;
  serve::Client client;
  client.next = [&](bool wait) {
    std::optional<std::string> line = lines.next(wait);
    if (line) shown.add(*line);
    return line;
  };
  client.byte = [&](std::int64_t number, char byte) { shown.byte(number, byte); };
  client.done = [&](std::int64_t number) { shown.done(number); };
  client.refused = [&](std::int64_t number, const std::string& why) {
    shown.done(number, "[refused: " + why + "]");
  };
  client.progress = [&](const serve::Progress& progress) {
    if (seconds_since(reported) < 2) return;
    reported = Clock::now();
    report(progress, seconds_since(start));
  };
  serve::Progress all = server.run(client);
  report(all, seconds_since(start));
}

void run(const serve::Options& options) {
  if (!options.module.empty()) return write_module(options);
  configure_runtime({.cpu_devices = static_cast<int>(options.mesh().size())}).value();
  if (options.make.empty())
    answer(options);
  else
    make_weights(options);
}

}  // namespace

int main(int argc, char** argv) {
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
