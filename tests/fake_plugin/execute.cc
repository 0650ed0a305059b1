// Launches of the fake: output i is argument i if their types are equal, else zeros.
#include <chrono>

#include "tests/fake_plugin/control.h"
#include "tests/fake_plugin/state.h"

namespace fake {
namespace {

struct InExecute {
  InExecute() { raise_to(most_launchers, ++launchers); }
  ~InExecute() { --launchers; }
};

bool kept(const PJRT_ExecuteOptions* options, size_t parameter) {
  for (size_t i = 0; i < options->num_non_donatable_input_indices; ++i)
    if (options->non_donatable_input_indices[i] == static_cast<int64_t>(parameter)) return true;
  return false;
}

PJRT_Error* check(const PJRT_LoadedExecutable_Execute_Args* args,
                  const std::vector<PJRT_Device*>& devices) {
  const Program& program = *args->executable->program;
  if (args->num_devices != devices.size()) return invalid("wrong number of argument lists");
  if (args->num_args != program.parameters.size()) return invalid("wrong number of arguments");
  for (size_t d = 0; d < devices.size(); ++d)
    for (size_t i = 0; i < args->num_args; ++i) {
      const PJRT_Buffer* buffer = args->argument_lists[d][i];
      if (buffer == nullptr) return invalid("null argument");
      if (buffer->deleted) return invalid("buffer has been deleted or donated");
      if (buffer->device != devices[d]) return invalid("argument on the wrong device");
      if (!(buffer->type == program.parameters[i])) return invalid("argument of the wrong type");
      for (size_t j = 0; j < i; ++j)
        if (buffer == args->argument_lists[d][j] &&
            ((program.alias[i] >= 0 && !kept(args->options, i)) ||
             (program.alias[j] >= 0 && !kept(args->options, j))))
          return invalid("a donated buffer is given twice");
    }
  return nullptr;
}

void fill_outputs(const PJRT_LoadedExecutable_Execute_Args* args, size_t d, PJRT_Device* device,
                  const MomentPtr& done) {
  const Program& program = *args->executable->program;
  for (size_t i = 0; i < program.results.size(); ++i) {
    auto* out = new PJRT_Buffer;
    out->type = program.results[i];
    out->device = device;
    out->ready = done;
    if (i < args->num_args && program.parameters[i] == program.results[i])
      out->data = std::make_shared<std::vector<char>>(*args->argument_lists[d][i]->data);
    else
      out->data =
          std::make_shared<std::vector<char>>(static_cast<size_t>(program.results[i].size()));
    args->output_lists[d][i] = out;
  }
  for (size_t i = 0; i < args->num_args; ++i)
    if (program.alias[i] >= 0 && !kept(args->options, i)) {
      PJRT_Buffer* donated = args->argument_lists[d][i];
      args->output_lists[d][program.alias[i]]->data = donated->data;
      donated->deleted = true;
    }
}

}  // namespace

PJRT_Error* execute(PJRT_LoadedExecutable_Execute_Args* args) {
  InExecute inside;
  if (PJRT_Error* error = enter("PJRT_LoadedExecutable_Execute")) return error;
  PJRT_LoadedExecutable* executable = args->executable;
  PJRT_Client* client = executable->client;
  std::vector<PJRT_Device*> devices = executable->devices;
  if (args->execute_device != nullptr) devices = {args->execute_device};
  int run_time, fail_runs, trap;
  {
    std::lock_guard lock(control().mutex);
    control().launch_ids.push_back(args->options->launch_id);
    control().launch_rows.push_back(static_cast<int>(args->num_devices));
    run_time = control().run_time;
    fail_runs = control().fail_runs;
    trap = control().trap;
  }
  if (args->options->launch_id == 0) return invalid("launch id 0");
  if (PJRT_Error* error = check(args, devices)) {
    client->wedged |= trap == kFakeWedge && devices.size() > 1;
    return error;
  }
  raise_to(most_in_flight, ++in_flight);
  auto done = std::make_shared<Moment>();
  for (size_t d = 0; d < devices.size(); ++d) {
    fill_outputs(args, d, devices[d], done);
    if (args->device_complete_events != nullptr) {
      args->device_complete_events[d] = new PJRT_Event;
      args->device_complete_events[d]->moment = done;
    }
  }
  auto finish = [done, fail_runs] {
    --in_flight;
    done->finish(fail_runs, fail_runs == 0 ? "" : "the run failed as the test asked");
  };
  if (client->wedged && devices.size() > 1) return nullptr;  // and never completes
  if (run_time == 0) {
    finish();
    return nullptr;
  }
  std::lock_guard lock(client->mutex);
  client->threads.emplace_back([finish, run_time] {
    std::this_thread::sleep_for(std::chrono::microseconds(run_time));
    finish();
  });
  return nullptr;
}

}  // namespace fake
