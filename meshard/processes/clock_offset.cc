#include "meshard/processes/clock_offset.h"

#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <string>

#include "meshard/base/cat.h"
#include "meshard/processes/internal/member_text.h"

namespace meshard {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kRounds = 8;  // the shortest of them counts

std::int64_t now() { return Clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

// Equal in processes whose steady clocks are the same. Empty: not known.
std::string clock_identity() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  struct stat ns {};
  if (!std::getline(file, boot) || ::stat("/proc/self/ns/time", &ns) != 0) return "";
  return cat(boot, " ", ns.st_ino);
}

std::string key_of(int call, int rank, std::string_view what, int round) {
  return cat("meshard/clock/", call, "/", rank, "/", what, "/", round);
}

// In process 0.
Result<void> answer(const Processes& run, int call, int rank) {
  for (int round = 0; round < kRounds; ++round) {
    MESHARD_RETURN_IF_ERROR(run.store().get(key_of(call, rank, "ask", round)));
    MESHARD_RETURN_IF_ERROR(run.store().put(key_of(call, rank, "time", round), cat(now())));
  }
  return {};
}

Result<ClockOffset> ask(const Processes& run, int call) {
  internal::ClockReading best;
  for (int round = 0; round < kRounds; ++round) {
    internal::ClockReading reading{.asked = now()};
    MESHARD_RETURN_IF_ERROR(run.store().put(key_of(call, run.rank(), "ask", round), ""));
    MESHARD_ASSIGN_OR_RETURN(std::string answered,
                             run.store().get(key_of(call, run.rank(), "time", round)));
    reading.received = now();
    MESHARD_ASSIGN_OR_RETURN(reading.answered, internal::read_number(answered));
    if (round == 0 || reading.round_trip() < best.round_trip()) best = reading;
  }
  return best.offset();
}

std::string time_of(std::chrono::nanoseconds time) {
  std::int64_t ns = time.count(), size = ns < 0 ? -ns : ns;
  if (size < 10'000'000) return cat(ns / 1000, " us");
  if (size < 10'000'000'000) return cat(ns / 1'000'000, " ms");
  return cat(ns / 1'000'000'000, " s");
}

}  // namespace

ClockOffset internal::ClockReading::offset() const {
  std::int64_t half = round_trip() / 2;
  return {.offset = std::chrono::nanoseconds(answered - (asked + half)),
          .precision = std::chrono::nanoseconds(round_trip() - half)};
}

std::string ClockOffset::to_string() const {
  return cat(time_of(offset), " +- ", time_of(precision));
}

Result<ClockOffset> clock_offset(const Processes& run, SameClock same) {
  static std::atomic<int> calls{0};
  int call = calls++;
  if (run.size() == 1) return ClockOffset{};
  std::string identity = same == SameClock::kTrusted ? clock_identity() : "";
  std::string prefix = cat("meshard/clock/", call, "/identity/");
  MESHARD_RETURN_IF_ERROR(run.store().put(cat(prefix, run.rank()), identity));
  MESHARD_ASSIGN_OR_RETURN(std::string first, run.store().get(cat(prefix, 0)));
  const auto is_same = [&](const std::string& other) { return !other.empty() && other == first; };
  if (run.rank() != 0) return is_same(identity) ? ClockOffset{} : ask(run, call);
  for (int rank = 1; rank < run.size(); ++rank) {
    MESHARD_ASSIGN_OR_RETURN(std::string other, run.store().get(cat(prefix, rank)));
    if (!is_same(other)) MESHARD_RETURN_IF_ERROR(answer(run, call, rank));
  }
  return ClockOffset{};
}

}  // namespace meshard
