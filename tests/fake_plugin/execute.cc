// Launches of the fake plugin: output i is argument i if their types are equal, otherwise zeros.
#include <chrono>
#include <functional>

#include "tests/fake_plugin/clock.h"
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

// Meets the other processes of the program, and gathers the results that are whole arguments.
PJRT_Error* communicate(const PJRT_LoadedExecutable_Execute_Args* args,
                        std::map<size_t, std::string>& gathered) {
  PJRT_LoadedExecutable& executable = *args->executable;
  if (executable.devices.size() == executable.all_devices.size()) return nullptr;
  if (!executable.client->exchange) return nullptr;
  const Program& program = *executable.program;
  bool meets = program.has_collective;
  for (size_t i = 0; i < program.results.size(); ++i) meets |= is_gathered(program, i);
  if (!meets) return nullptr;
  std::vector<int> ids;
  for (const PJRT_Device* device : executable.all_devices) ids.push_back(device->description.id);
  if (PJRT_Error* error =
          executable.client->exchange->meet(ids, executable.all_devices[0]->description.process))
    return error;
  for (size_t i = 0; i < program.results.size(); ++i)
    if (is_gathered(program, i))
      if (PJRT_Error* error = gather(args, i, gathered[i])) return error;
  return nullptr;
}

void fill_outputs(const PJRT_LoadedExecutable_Execute_Args* args, size_t d, PJRT_Device* device,
                  const std::map<size_t, std::string>& gathered, const MomentPtr& done) {
  const Program& program = *args->executable->program;
  for (size_t i = 0; i < program.results.size(); ++i) {
    auto* out = new PJRT_Buffer;
    out->type = program.results[i];
    out->device = device;
    out->ready = done;
    if (i < args->num_args && program.parameters[i] == program.results[i])
      out->data = args->argument_lists[d][i]->data->copy(device);
    else
      out->data = std::make_shared<Bytes>(device, static_cast<size_t>(program.results[i].size()));
    if (auto whole = gathered.find(i); whole != gathered.end())
      memcpy(out->data->data, whole->second.data(), whole->second.size());
    args->output_lists[d][i] = out;
  }
  for (size_t i = 0; i < args->num_args; ++i)
    if (program.alias[i] >= 0 && !kept(args->options, i)) {
      PJRT_Buffer* donated = args->argument_lists[d][i];
      if (donated->external > 0) continue;  // copied; it is not consumed
      // Host memory is reused in place only if the plugin may write it.
      if (donated->data->writable) args->output_lists[d][program.alias[i]]->data = donated->data;
      donated->deleted = true;
    }
}

// The failure that the test asked for; 0: none.
int failure_of(const std::string& program) {
  std::lock_guard lock(control().mutex);
  auto found = control().programs.find(program);
  if (found == control().programs.end()) return 0;
  if (--found->second.launch_in > 0) return 0;
  int code = found->second.code;
  control().programs.erase(found);
  return code;
}

// A launch on the simulated clock. `done` are the moments of the devices, which have failed if an
// argument has.
void simulate(const PJRT_LoadedExecutable_Execute_Args* args,
              const std::vector<PJRT_Device*>& devices, const std::vector<MomentPtr>& done) {
  std::vector<const Moment*> arguments;
  for (size_t d = 0; d < devices.size(); ++d)
    for (size_t i = 0; i < args->num_args; ++i)
      arguments.push_back(args->argument_lists[d][i]->ready.get());
  simulated_clock().run(args->executable->program->name, devices, arguments, done);
  for (size_t d = 0; d < devices.size(); ++d)
    for (size_t i = 0; i < args->num_args; ++i) {
      const Moment& argument = *args->argument_lists[d][i]->ready;
      if (argument.code != 0) done[d]->finish(argument.code, argument.message);
    }
}

// What a test asked of this launch.
struct Asked {
  int run_time, fail_runs, trap;
  bool hold;
  std::vector<Control::Shard> shards;
};

Asked take_asked(const PJRT_LoadedExecutable_Execute_Args* args) {
  std::lock_guard lock(control().mutex);
  if (control().launch_ids.size() < Control::kMostListed) {
    control().launch_ids.push_back(args->options->launch_id);
    control().launch_rows.push_back(static_cast<int>(args->num_devices));
  }
  Asked asked{control().run_time, control().fail_runs, control().trap, control().hold_runs, {}};
  std::erase_if(control().shards, [&](Control::Shard& shard) {
    if (--shard.launch_in > 0) return false;
    asked.shards.push_back(shard);
    return true;
  });
  return asked;
}

PJRT_Error* launch(PJRT_LoadedExecutable_Execute_Args* args) {
  InExecute inside;
  ENTER(PJRT_LoadedExecutable_Execute);
  PJRT_LoadedExecutable* executable = args->executable;
  PJRT_Client* client = executable->client;
  std::vector<PJRT_Device*> devices = executable->devices;
  if (args->execute_device != nullptr) devices = {args->execute_device};
  Asked asked = take_asked(args);
  if (args->options->launch_id == 0) return invalid("launch id 0");
  if (PJRT_Error* error = check(args, devices)) {
    client->wedged |= asked.trap == kFakeWedge && devices.size() > 1;
    return error;
  }
  std::map<size_t, std::string> gathered;
  if (PJRT_Error* error = communicate(args, gathered)) return error;
  raise_to(most_in_flight, ++in_flight);
  auto left = std::make_shared<std::atomic<size_t>>(devices.size());
  std::map<int, std::vector<std::function<void()>>> ends;  // by time
  std::vector<MomentPtr> moments;
  for (size_t d = 0; d < devices.size(); ++d) moments.push_back(std::make_shared<Moment>());
  if (simulated_clock().is_on()) simulate(args, devices, moments);
  if (int code = failure_of(executable->program->name)) asked.fail_runs = code;
  for (size_t d = 0; d < devices.size(); ++d) {
    MomentPtr done = moments[d];
    fill_outputs(args, d, devices[d], gathered, done);
    if (args->device_complete_events != nullptr) args->device_complete_events[d] = event_of(done);
    int code = asked.fail_runs, time = asked.run_time;
    for (const Control::Shard& shard : asked.shards)
      if (shard.device == devices[d]->description.id) {
        code = shard.code != 0 ? shard.code : code;
        time = shard.delay < 0 || time < 0 ? -1 : time + shard.delay;
      }
    ends[time].push_back([done, code, left] {
      if (--*left == 0) --in_flight;
      done->finish(code, code == 0 ? "" : "the run failed as the test asked");
    });
  }
  if (client->wedged && devices.size() > 1) return nullptr;  // and it never completes
  for (auto& [time, calls] : ends) {
    auto end = [calls = std::move(calls)] {
      for (const auto& call : calls) call();
    };
    if (asked.hold || time < 0) {
      std::lock_guard lock(control().mutex);
      control().held.push_back(end);
    } else if (time == 0) {
      end();
    } else {
      std::lock_guard lock(client->mutex);
      client->threads.emplace_back([end, time = time] {
        std::this_thread::sleep_for(std::chrono::microseconds(time));
        end();
      });
    }
  }
  return nullptr;
}

}  // namespace

PJRT_Error* execute(PJRT_LoadedExecutable_Execute_Args* args) {
  PJRT_Error* error = launch(args);
  if (error == nullptr) return nullptr;
  // The caller must not read the outputs of a launch that failed.
  size_t outputs = args->executable->program->results.size();
  for (size_t d = 0; d < args->num_devices; ++d) {
    for (size_t i = 0; i < outputs; ++i) spoil(args->output_lists[d][i]);
    if (args->device_complete_events != nullptr) spoil(args->device_complete_events[d]);
  }
  return error;
}

}  // namespace fake
