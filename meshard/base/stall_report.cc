#include "meshard/base/stall_report.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/environment.h"

namespace meshard {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr double kDefaultSeconds = 60;
// A wait checks at least this often whether it can still complete.
constexpr milliseconds kLongestSlice = seconds(1);

milliseconds time_from_environment() {
  Result<double> time = environment_number("MESHARD_STALL_SECONDS", kDefaultSeconds, 0, 1e9);
  // Waits are also made where nothing may throw.
  if (!time.ok()) (void)std::fputs(cat("meshard: ", time.error().what(), "\n").c_str(), stderr);
  return milliseconds(static_cast<std::int64_t>((time.ok() ? *time : kDefaultSeconds) * 1000));
}

void write(const Stall& stall) {
  if (log_level() == LogLevel::kOff) return;
  std::string line = cat("meshard: ", stall.to_string(), "\n");
  (void)std::fputs(line.c_str(), stderr);
}

struct Settings {
  std::mutex mutex;
  StallHandler handler = write;
  std::atomic<std::int64_t> time{time_from_environment().count()};
  std::atomic<std::string (*)()> detail{nullptr};
};

Settings& settings() {
  // Never destroyed: waits may outlive static objects.
  static Settings* instance = new Settings();
  return *instance;
}

}  // namespace

std::string Stall::to_string() const {
  return where.known() ? cat(where.to_string(), ": ", text) : text;
}

void set_stall_handler(StallHandler handler) {
  Settings& all = settings();
  std::lock_guard lock(all.mutex);
  all.handler = std::move(handler);
}

milliseconds stall_time() { return milliseconds(settings().time.load(std::memory_order_relaxed)); }

void set_stall_time(milliseconds time) {
  settings().time.store(std::max<std::int64_t>(0, time.count()), std::memory_order_relaxed);
}

namespace internal {

void set_stall_detail(std::string (*detail)()) { settings().detail = detail; }

void report_stall(const std::string& what, milliseconds waited) {
  Settings& all = settings();
  Stall stall{cat("[wait] waiting for ", std::chrono::duration_cast<seconds>(waited).count(),
                  " s for ", what),
              WaitPlace::current()};
  if (auto detail = all.detail.load()) stall.text += detail();
  StallHandler handler;
  {
    std::lock_guard lock(all.mutex);
    handler = all.handler;
  }
  // Called without the lock: a handler may itself wait or set another handler.
  if (handler) handler(stall);
}

milliseconds StallWatch::slice() const {
  if (limit_ == milliseconds(0)) return kLongestSlice;
  return std::clamp(limit_ / 4, milliseconds(1), kLongestSlice);
}

bool StallWatch::is_due() {
  if (reported_ || limit_ == milliseconds(0) || waited() < limit_) return false;
  reported_ = true;
  return true;
}

milliseconds StallWatch::waited() const {
  return std::chrono::duration_cast<milliseconds>(Clock::now() - begun_);
}

}  // namespace internal
}  // namespace meshard
