#include "meshard/base/advice.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/environment.h"

namespace meshard {
namespace {

constexpr std::size_t kMostAdvice = 1000;

void write_if_asked(const Advice& advice) {
  const char* asked = std::getenv("MESHARD_ADVICE");
  if (log_level() < LogLevel::kWarning && (!asked || std::string_view(asked) != "1")) return;
  std::string line = cat("meshard: ", advice.to_string(), "\n");
  (void)std::fputs(line.c_str(), stderr);
}

struct Given {
  std::mutex mutex;
  AdviceHandler handler = write_if_asked;
  std::vector<Advice> all;
  std::set<std::tuple<std::string, std::string, std::uint32_t>> known;
};

Given& given() {
  // Never destroyed: tensors with static storage may be recorded during process exit.
  static Given* instance = new Given();
  return *instance;
}

}  // namespace

std::string Advice::to_string() const {
  return where.known() ? cat(where.to_string(), ": ", text) : text;
}

void set_advice_handler(AdviceHandler handler) {
  Given& all = given();
  std::lock_guard lock(all.mutex);
  all.handler = std::move(handler);
}

std::vector<Advice> all_advice() {
  Given& all = given();
  std::lock_guard lock(all.mutex);
  return all.all;
}

void internal::advise(Advice advice) {
  Given& all = given();
  AdviceHandler handler;
  {
    std::lock_guard lock(all.mutex);
    if (all.all.size() == kMostAdvice ||
        !all.known.emplace(advice.topic, advice.where.file, advice.where.line).second)
      return;
    all.all.push_back(advice);
    handler = all.handler;
  }
  // Called without the lock: a handler may call all_advice() or set another handler.
  if (handler) handler(advice);
}

}  // namespace meshard
