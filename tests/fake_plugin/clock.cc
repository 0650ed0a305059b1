#include "tests/fake_plugin/clock.h"

#include <algorithm>

#include "tests/fake_plugin/state.h"

namespace fake {

Clock& simulated_clock() {
  static auto* instance = new Clock;
  return *instance;
}

bool Clock::is_on() {
  std::lock_guard lock(mutex_);
  return on_;
}

void Clock::start(bool on) {
  std::lock_guard lock(mutex_);
  on_ = on;
  ++number_;
  host_ = copy_time_ = copy_time_per_byte_ = launch_time_ = 0;
  durations_.clear();
  free_at_.clear();
  runs_.clear();
}

void Clock::set_duration(const std::string& program, double time) {
  std::lock_guard lock(mutex_);
  durations_[program] = time;
}

void Clock::set_copy_time(double fixed, double per_byte) {
  std::lock_guard lock(mutex_);
  copy_time_ = fixed;
  copy_time_per_byte_ = per_byte;
}

void Clock::set_launch_time(double time) {
  std::lock_guard lock(mutex_);
  launch_time_ = time;
}

double Clock::host_time() {
  std::lock_guard lock(mutex_);
  return host_;
}

double Clock::time_of(const Moment& moment) const {
  return moment.clock == number_ ? moment.time : 0;
}

void Clock::set_time(Moment& moment, double time) const {
  moment.time = time;
  moment.clock = number_;
}

bool Clock::is_past(const Moment& moment) {
  std::lock_guard lock(mutex_);
  return !on_ || time_of(moment) <= host_;
}

void Clock::wait_for(const Moment& moment) {
  std::lock_guard lock(mutex_);
  if (on_) host_ = std::max(host_, time_of(moment));
}

void Clock::run(const std::string& program, const std::vector<PJRT_Device*>& devices,
                const std::vector<const Moment*>& arguments,
                const std::vector<std::shared_ptr<Moment>>& done) {
  std::lock_guard lock(mutex_);
  host_ += launch_time_;
  double begin = host_;
  for (const Moment* argument : arguments) begin = std::max(begin, time_of(*argument));
  for (const PJRT_Device* device : devices)
    begin = std::max(begin, free_at_[device->description.id]);
  auto known = durations_.find(program);
  double end = begin + (known == durations_.end() ? 0 : known->second);
  for (const PJRT_Device* device : devices) {
    free_at_[device->description.id] = end;
    runs_.push_back({program, device->description.id, begin, end});
  }
  for (const auto& moment : done) set_time(*moment, end);
}

void Clock::copy(const Moment& source, std::size_t bytes, Moment& done) {
  std::lock_guard lock(mutex_);
  set_time(done, std::max(host_, time_of(source)) + copy_time_ +
                     copy_time_per_byte_ * static_cast<double>(bytes));
}

bool Clock::find_run(int i, FakeRun& run) {
  std::lock_guard lock(mutex_);
  if (i < 0 || i >= static_cast<int>(runs_.size())) return false;
  const Run& found = runs_[static_cast<std::size_t>(i)];
  run = {found.program.c_str(), found.device, found.begin, found.end};
  return true;
}

}  // namespace fake
