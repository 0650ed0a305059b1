// Access to the fake plugin from a test: its plugin handle and its control functions.
#pragma once
#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "meshard/pjrt/plugin.h"
#include "tests/fake_plugin/control.h"

namespace meshard {

/// The control functions of the fake plugin at `path`, found by name in the library, which is
/// loaded if necessary.
struct FakeControl {
  explicit FakeControl(const std::string& path) : library_(::dlopen(path.c_str(), RTLD_NOW)) {
    if (library_ == nullptr) throw std::runtime_error(::dlerror());
#define MESHARD_FIND(name) find(name, "fake_" #name)
    MESHARD_FIND(reset);
    MESHARD_FIND(set_trap);
    MESHARD_FIND(set_platform);
    MESHARD_FIND(set_version);
    MESHARD_FIND(set_table_size);
    MESHARD_FIND(remove_entry);
    MESHARD_FIND(reverse_devices);
    MESHARD_FIND(set_grid);
    MESHARD_FIND(fail_at);
    MESHARD_FIND(set_delay);
    MESHARD_FIND(set_run_time);
    MESHARD_FIND(fail_runs);
    MESHARD_FIND(fail_shard);
    MESHARD_FIND(delay_shard);
    MESHARD_FIND(hold_runs);
    MESHARD_FIND(fail_ready_event);
    MESHARD_FIND(fail_transfer);
    MESHARD_FIND(set_zero_copy);
    MESHARD_FIND(set_processes);
    MESHARD_FIND(simulate);
    MESHARD_FIND(set_duration);
    MESHARD_FIND(set_copy_time);
    MESHARD_FIND(set_launch_time);
    MESHARD_FIND(host_time);
    MESHARD_FIND(run);
    MESHARD_FIND(fail_program);
    MESHARD_FIND(call_count);
    MESHARD_FIND(external_references);
    MESHARD_FIND(invalid_calls);
    MESHARD_FIND(most_in_flight);
    MESHARD_FIND(most_launchers);
    MESHARD_FIND(launch_id);
    MESHARD_FIND(launch_rows);
    MESHARD_FIND(live_objects);
#undef MESHARD_FIND
  }

  /// The plugin's table itself, for Plugin::adopt.
  const PJRT_Api* api() const {
    return reinterpret_cast<const PJRT_Api* (*)()>(::dlsym(library_, "GetPjrtApi"))();
  }

  decltype(&fake_reset) reset;
  decltype(&fake_set_trap) set_trap;
  decltype(&fake_set_platform) set_platform;
  decltype(&fake_set_version) set_version;
  decltype(&fake_set_table_size) set_table_size;
  decltype(&fake_remove_entry) remove_entry;
  decltype(&fake_reverse_devices) reverse_devices;
  decltype(&fake_set_grid) set_grid;
  decltype(&fake_fail_at) fail_at;
  decltype(&fake_set_delay) set_delay;
  decltype(&fake_set_run_time) set_run_time;
  decltype(&fake_fail_runs) fail_runs;
  decltype(&fake_fail_shard) fail_shard;
  decltype(&fake_delay_shard) delay_shard;
  decltype(&fake_hold_runs) hold_runs;
  decltype(&fake_fail_ready_event) fail_ready_event;
  decltype(&fake_fail_transfer) fail_transfer;
  decltype(&fake_set_zero_copy) set_zero_copy;
  decltype(&fake_set_processes) set_processes;
  decltype(&fake_simulate) simulate;
  decltype(&fake_set_duration) set_duration;
  decltype(&fake_set_copy_time) set_copy_time;
  decltype(&fake_set_launch_time) set_launch_time;
  decltype(&fake_host_time) host_time;
  decltype(&fake_run) run;
  decltype(&fake_fail_program) fail_program;
  decltype(&fake_call_count) call_count;
  decltype(&fake_external_references) external_references;
  decltype(&fake_invalid_calls) invalid_calls;
  decltype(&fake_most_in_flight) most_in_flight;
  decltype(&fake_most_launchers) most_launchers;
  decltype(&fake_launch_id) launch_id;
  decltype(&fake_launch_rows) launch_rows;
  decltype(&fake_live_objects) live_objects;

 private:
  template <class Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(library_, name));
    if (function == nullptr) throw std::runtime_error(::dlerror());
  }
  void* library_;
};

}  // namespace meshard
