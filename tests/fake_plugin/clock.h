// A simulated clock: programs and copies take simulated time, and nothing waits.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pjrt/pjrt_c_api.h"
#include "tests/fake_plugin/control.h"

namespace fake {

struct Moment;

/// Times are in microseconds since the clock was started. Each device runs its programs in the
/// order of their launches. A program begins when it has been launched, its devices have ended
/// their previous ones, and its arguments are ready; its devices begin together. A copy between
/// devices begins when its source is ready, beside the programs. The host's time advances by its
/// calls, and to the time of what it waits for.
class Clock {
 public:
  bool is_on();
  /// Starts at time 0, without durations and runs; or stops.
  void start(bool on);
  void set_duration(const std::string& program, double time);
  void set_copy_time(double fixed, double per_byte);
  void set_launch_time(double time);
  double host_time();
  /// Whether the host's time has come to that of the moment.
  bool is_past(const Moment& moment);
  /// The host waits for the moment.
  void wait_for(const Moment& moment);

  /// A launch on these devices. Sets the times of the moments `done`.
  void run(const std::string& program, const std::vector<PJRT_Device*>& devices,
           const std::vector<const Moment*>& arguments,
           const std::vector<std::shared_ptr<Moment>>& done);
  /// A copy between devices. Sets the time of `done`.
  void copy(const Moment& source, std::size_t bytes, Moment& done);
  /// Run `i` of those since the start; false if there is none.
  bool find_run(int i, FakeRun& run);

 private:
  struct Run {
    std::string program;
    int device;
    double begin, end;
  };
  double time_of(const Moment& moment) const;
  void set_time(Moment& moment, double time) const;

  std::mutex mutex_;
  bool on_ = false;
  int number_ = 0;  // how often it was started
  double host_ = 0, copy_time_ = 0, copy_time_per_byte_ = 0, launch_time_ = 0;
  std::map<std::string, double> durations_;
  std::map<int, double> free_at_;  // by device id
  std::deque<Run> runs_;           // their names stay where they are
};
Clock& simulated_clock();

}  // namespace fake
