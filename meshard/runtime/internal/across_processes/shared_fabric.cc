// Tested in meshard/runtime/internal/across_processes/agreement_test.cc.
#include "meshard/runtime/internal/across_processes/shared_fabric.h"

#include "meshard/base/cat.h"
#include "meshard/base/environment.h"
#include "meshard/runtime/device_array.h"
#include "meshard/runtime/internal/across_processes/agreement.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/platforms.h"

namespace meshard {

// One process may have all parts and another one not, if they have different numbers of devices.
bool SharedFabric::reads_alone(const DeviceArray& array) const {
  return array.has_all_parts() &&
         (!array.sharding() || is_whole_in_each_process(client(), *array.sharding()));
}

std::string SharedFabric::next_step(const std::vector<int>& ranks) {
  std::lock_guard lock(mutex_);
  std::string channel = cat("meshard/step/", join(ranks, ","), "/", generation_, ".");
  const std::uint64_t number = steps_[ranks]++;
  internal::reach_step(channel, number);
  return cat(channel, number);
}

void SharedFabric::check_equal_data(const HostArray& array, const Mesh& mesh,
                                    SourceLocation where) {
  if (run_.size() == 1 || reach_of(client(), mesh) != Reach::kAcross ||
      !platforms().checks_host_data())
    return;
  constexpr std::size_t kBlock = 4096;
  std::string_view bytes(reinterpret_cast<const char*>(array.bytes()),
                         static_cast<std::size_t>(array.size_in_bytes()));
  const std::vector<int> ranks = processes_of(client(), mesh);
  const std::chrono::milliseconds limit = wait_for_processes().value(where);
  Intention intention{.ranks = ranks,
                      .rank = rank(),
                      .key = next_step(ranks),
                      .fingerprint = fingerprint(cat(array.type(), ";", fingerprint(bytes))),
                      .what = cat("place ", array.type(), where.known() ? cat(" at ", where) : ""),
                      .details = [&] {
                        std::string text = cat(array.type(), "\n");
                        for (std::size_t begin = 0; begin < bytes.size(); begin += kBlock) {
                          std::string_view block = bytes.substr(begin, kBlock);
                          append(text, cat("bytes ", begin, " to ", begin + block.size(),
                                           " with hash ", fingerprint(block), "\n"));
                        }
                        return text;
                      }};
  auto agreed = agree(
      run_.store(), intention, [] { return Result<std::string>(std::string()); }, limit);
  if (!agreed.ok()) throw agreed.error().at(where);
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

std::string SharedFabric::announcement(const std::vector<int>& ranks, std::string_view what) const {
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
