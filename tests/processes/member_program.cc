// One process of a run. Its arguments are steps, carried out in order; each result is one line of
// output. check_processes.py and check_mpi.py start several of these programs.
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/processes/processes.h"

namespace {

using namespace meshard;
using std::chrono::milliseconds;

void say(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

std::string outcome(const Result<void>& result) {
  return result.ok() ? "ok" : result.error().to_string();
}

class Steps {
 public:
  Steps(int count, char** words) : words_(words, words + count) {}

  int run() {
    while (at_ < words_.size()) {
      std::string step = next();
      if (step == "end") return std::atoi(next().c_str());
      if (!take_part(step) && !use_store(step) && !end_badly(step)) {
        std::fprintf(stderr, "unknown step %s\n", step.c_str());
        return 99;
      }
    }
    return 0;
  }

 private:
  std::string next() { return at_ < words_.size() ? words_[at_++] : ""; }
  milliseconds next_time() { return milliseconds(std::atoi(next().c_str())); }

  bool take_part(const std::string& step) {
    if (step == "join") {
      options_.join_limit = next_time();
      Result<Processes> joined = initialize_processes(options_);
      if (!joined.ok()) {
        say(joined.error().to_string());
        std::exit(2);
      }
      say(cat("joined ", joined->rank(), " of ", joined->size()));
    } else if (step == "callback") {
      options_.on_loss = [](const ProcessLoss& loss) { say("lost " + loss.to_string()); };
    } else if (step == "members") {
      for (const ProcessInfo& info : processes().members())
        say(cat(info.to_string(), " with ", info.local_devices));
    } else if (step == "entering") {
      processes().entering(next());
    } else if (step == "barrier") {
      std::string name = next();
      say(cat("barrier ", name, ": ", outcome(processes().barrier(name, next_time()))));
    } else if (step == "steps") {  // barriers until something happens
      for (int i = 0;; ++i) {
        processes().entering(cat("step ", i, ", train.cc:42"));
        if (!processes().barrier("step").ok()) std::this_thread::sleep_for(milliseconds(10000));
      }
    } else if (step == "reduces") {  // all-reduces until something happens
      std::vector<int> all(static_cast<std::size_t>(processes().size()));
      std::iota(all.begin(), all.end(), 0);
      std::vector<float> data(10000);
      for (;;) {
        processes().entering("all-reduce %12, train.cc:42");
        processes()
            .communicator()
            ->all_reduce(all, Reduction::kMax, DType::f32, data.data(), data.data(), data.size())
            .value();
      }
    } else if (step == "finalize") {
      say("finalize: " + outcome(processes().finalize()));
    } else if (step == "communicator") {
      say(processes().communicator() != nullptr ? "a communicator" : "no communicator");
    } else {
      return false;
    }
    return true;
  }

  bool use_store(const std::string& step) {
    if (step == "put") {
      std::string key = next();
      say(cat("put: ", outcome(processes().store().put(key, next()))));
    } else if (step == "get") {
      std::string key = next();
      Result<std::string> value = processes().store().get(key, next_time());
      say("get: " + (value.ok() ? *value : value.error().to_string()));
    } else if (step == "try") {
      say("try: " + processes().store().try_get(next()).value().value_or("nothing"));
    } else if (step == "publish") {
      std::string key = next(), first;
      Result<void> result = processes().store().publish(key, next(), &first);
      say(cat("publish: ", outcome(result), "; first ", first));
    } else {
      return false;
    }
    return true;
  }

  bool end_badly(const std::string& step) {
    if (step == "sleep") {
      std::this_thread::sleep_for(next_time());
    } else if (step == "compute") {  // as a compiler does: without calling anything
      auto end = std::chrono::steady_clock::now() + next_time();
      while (std::chrono::steady_clock::now() < end) {
      }
    } else if (step == "_exit") {
      ::_exit(0);
    } else if (step == "abort") {
      std::abort();
    } else if (step == "child") {  // a forked process that lives longer, but not for ever
      milliseconds time = next_time();
      if (::fork() == 0) {
        std::this_thread::sleep_for(time);
        std::exit(0);
      }
    } else {
      return false;
    }
    return true;
  }

  std::vector<std::string> words_;
  std::size_t at_ = 0;
  ProcessesOptions options_;
};

}  // namespace

int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nothing is left if the test is killed
  return Steps(argc - 1, argv + 1).run();
}
