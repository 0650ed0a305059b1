// Tested in meshard/runtime/internal/agreement_test.cc.
#include "meshard/runtime/internal/process_steps.h"

#include "meshard/base/cat.h"
#include "meshard/base/environment.h"

namespace meshard {

std::string ProcessSteps::next_step(const std::vector<int>& ranks) {
  std::lock_guard lock(mutex_);
  std::string channel = cat("meshard/step/", join(ranks, ","), "/", generation_, ".");
  const std::uint64_t number = steps_[ranks]++;
  internal::reach_step(channel, number);
  return cat(channel, number);
}

internal::SharedStep shared_step(std::string_view key, const std::vector<int>& ranks) {
  internal::SharedStep step{std::string(key), 0, ranks};
  const std::size_t dot = key.rfind('.');
  if (dot == key.npos) return step;
  step.channel.resize(dot + 1);
  for (char digit : key.substr(dot + 1))
    step.number = step.number * 10 + static_cast<std::uint64_t>(digit - '0');
  return step;
}

std::string ProcessSteps::announcement(const std::vector<int>& ranks, std::string_view what) const {
  return cat("meshard/program/", join(ranks, ","), "/", generation_, "/", what);
}

Result<std::chrono::milliseconds> wait_for_processes() {
  MESHARD_ASSIGN_OR_RETURN(std::int64_t seconds,
                           environment_integer("MESHARD_PROCESS_WAIT_SECONDS", 600, 1, 1'000'000));
  return std::chrono::milliseconds(std::chrono::seconds(seconds));
}

std::string names_of_processes(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "process " : "processes ";
  for (std::size_t i = 0; i < ranks.size(); ++i)
    append(text, cat(i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ", ranks[i]));
  return text;
}

}  // namespace meshard
