// How the fabrics' kinds of programs are launched: LoadedProgram::launch_by() and its parts.
#pragma once
#include <mutex>
#include <span>
#include <vector>

#include "meshard/base/threads.h"
#include "meshard/runtime/counters.h"
#include "meshard/runtime/internal/event_recorder.h"
#include "meshard/runtime/internal/program_here.h"
#include "meshard/runtime/internal/released_arrays.h"
#include "meshard/runtime/internal/wait_at_exit.h"
#include "meshard/runtime/loaded_program.h"

namespace meshard {

namespace internal {

// Reused between calls: with hundreds of parameters on several devices these arrays are large.
struct LaunchScratch {
  std::vector<const pjrt::BufferList*> given;
  std::vector<pjrt::BufferList> made;  // empty lists between calls
};

inline LaunchScratch& launch_scratch() { return thread_instance<LaunchScratch>(); }

}  // namespace internal

// Inlined into launch(), as a return from it would take longer than the rest of it
// (pjrt/launch.cc).
template <class Execute, class Recorded>
[[gnu::always_inline]] inline Result<pjrt::Launch> LoadedProgram::launch_by(
    int id, const Execute& execute, const Recorded& recorded, Arrays arguments,
    std::span<Tensor> results, SourceLocation where, bool track) const {
  std::vector<const pjrt::BufferList*>& given = internal::launch_scratch().given;
  given.clear();
  for (const DeviceArray* argument : arguments) given.push_back(&argument->buffers());
  std::vector<pjrt::BufferList>& made = internal::launch_scratch().made;
  if (made.size() < results.size()) made.resize(results.size());
  std::span<pjrt::BufferList> taken(made.data(), results.size());
  std::unique_lock<std::mutex> checking;
  if (lowered_.nan_checks) [[unlikely]]
    checking = lowered_.nan_checks->begin();
  const pjrt::LaunchOptions options{
      .track = track || lowered_.nan_checks, .where = where, .id = id};
  // Recorded on all devices at once: if it were recorded device by device, the completion events
  // would be available
  // only after the last launch.
  Result<pjrt::Launch> launched =
      internal::records_events()
          ? launch_recorded([&](const pjrt::LaunchOptions& o) { return recorded(given, taken, o); },
                            options)
          : execute(given, taken, options);
  if (!launched.ok()) [[unlikely]]
    return launched;
  internal::wait_at_exit(internal::count(internal::counters().launches));
  for (std::uint32_t i : donated_) arguments[i]->set_donated_at(where);

  take_results(taken, results, where);
  if (lowered_.nan_checks && launched->await().ok()) [[unlikely]]
    internal::throw_found_nan(lowered_, where);
  return launched;
}

// One program's calls are either asked whether they have ended, or not.
inline Result<pjrt::Launch> ProgramHere::launch_together(Lists given, Made made,
                                                         const pjrt::LaunchOptions& options) const {
  const auto execute = [&](const pjrt::LaunchOptions& with) {
    return executable().execute(given, made, with);
  };
  Result<pjrt::Launch> launch =
      executable().devices().size() == 1 ? ends_.ask(options, execute) : execute(options);
  internal::ReleasedArrays::of_thread().give_up();  // while the devices run
  return launch;
}

}  // namespace meshard
