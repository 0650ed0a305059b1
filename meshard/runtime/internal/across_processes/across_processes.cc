// Tested in tests/processes/check_across.py.
#include "meshard/runtime/internal/across_processes/across_processes.h"

#include <algorithm>

#include "meshard/processes/device_communicator.h"

namespace meshard {
namespace {

// Does not own: the communicator lives as long as the process.
std::shared_ptr<Communicator> shared(Communicator& communicator) {
  return {std::shared_ptr<void>(), &communicator};
}

// Messages of the time before a restart of the runtime have other tags.
constexpr int kGenerationsOfTags = 16;

// Begins the error of a process that waits for another one, which has failed.
constexpr std::string_view kOfAnotherProcess = "[processes] another process: ";

std::shared_ptr<const LaunchHistory::Step> step_of(std::string_view what) {
  return std::make_shared<const LaunchHistory::Step>(
      LaunchHistory::Step{fingerprint(what), std::string(what)});
}

}  // namespace

Result<std::unique_ptr<AcrossProcesses>> AcrossProcesses::start(const Platforms& platforms,
                                                                Processes run,
                                                                const pjrt::Client& client) {
  std::unique_ptr<AcrossProcesses> across(new AcrossProcesses(platforms, run, client));
  MESHARD_ASSIGN_OR_RETURN(std::chrono::milliseconds limit, wait_for_processes());
  AcrossProcesses* made = across.get();
  const int tags = run.communicator()->largest_tag() / kGenerationsOfTags;
  BackgroundMessagesOptions messages{
      .first_tag = across->generation() % kGenerationsOfTags * tags,
      .tags = tags,
      .limit = limit,
      .failure_of = [made](int rank) { return made->failure_of(rank); },
      .on_wait =
          [history = across->order_.history()](const std::string* what) {
            if (what)
              history->begin_collective("transfer", cat("transfer of ", *what));
            else
              history->end_collective();
          },
      .on_failure = [made](const Error& error) { made->report_failure(error); }};
  across->messages_ =
      std::make_unique<BackgroundMessages>(*run.communicator(), std::move(messages));
  internal::before_finalize([made]() -> Result<void> {
    made->messages().finish();
    return {};
  });
  std::span<const pjrt::Device* const> devices = client.addressable_devices();
  std::shared_ptr<LaunchHistory> history = across->order_.history();
  std::vector<std::shared_ptr<Communicator>> communicators;
  std::vector<int> counts;
  for (const ProcessInfo& member : run.members()) counts.push_back(member.local_devices);
  if (std::ranges::all_of(counts, [](int count) { return count == 1; }))
    communicators.push_back(shared(across->communicator()));  // a process is its device
  else
    for (auto& each : make_device_communicators(across->communicator(), std::move(counts)))
      communicators.push_back(std::move(each));
  for (std::size_t i = 0; i < devices.size(); ++i) {
    MESHARD_ASSIGN_OR_RETURN(
        auto service,
        CollectiveService::start(client, communicators[i], {devices[i]->plugin_id()}, history));
    across->services_.push_back(std::move(service));
  }
  const std::string launches = across->announcement({}, "launches/");
  run.set_activity_source([history, launches] {
    ProcessActivity doing;
    doing.text = history->activity(doing.since);
    doing.in_collective = history->in_collective_since();
    doing.launches = history->steps(launches);
    return doing;
  });
  across->watch_.emplace(run, history, launches,
                         [made](int rank) { return made->reported_failure(rank); });
  return across;
}

Result<void> AcrossProcesses::in_order(const std::vector<int>& ranks, std::string_view what,
                                       SourceLocation where,
                                       const std::function<Result<void>()>& communicate) {
  return order_.communicate(communicate, {order_.history()->track(ranks), step_of(what)}, where);
}

void AcrossProcesses::record(const std::vector<int>& ranks, std::string_view what,
                             SourceLocation where) {
  order_.history()->add(*order_.history()->track(ranks), step_of(what), where);
}

std::string AcrossProcesses::failure_key(int rank) const {
  return announcement({}, cat("failures/", rank));
}

Result<std::optional<std::string>> AcrossProcesses::reported_failure(int rank) const {
  // Also fails if a process of the run is lost.
  Result<std::string> found = run().store().get(failure_key(rank), std::chrono::milliseconds(1));
  if (found.ok()) return std::optional(*std::move(found));
  if (found.error().code() == ErrorCode::kDeadlineExceeded) return std::optional<std::string>();
  return found.error();
}

std::optional<Error> AcrossProcesses::failure_of(int rank) const {
  Result<std::optional<std::string>> reported = reported_failure(rank);
  if (!reported.ok()) return reported.error();
  if (!*reported) return std::nullopt;
  return Error(ErrorCode::kAborted, cat(kOfAnotherProcess, **reported));
}

void AcrossProcesses::report_failure(const Error& error) {
  std::string_view text = error.message();
  auto at = text.find(kOfAnotherProcess);  // the plugin may have put words before it
  const ProcessInfo& own = run().members()[static_cast<std::size_t>(rank())];
  (void)run().store().put(failure_key(rank()),
                          at == text.npos
                              ? cat(own.to_string(), " has failed: ", error.what())
                              : std::string(text.substr(at + kOfAnotherProcess.size())));
}

void AcrossProcesses::give_up(const Error& error) {
  order_.fail(error);
  messages_->fail(error);
  report_failure(error);  // says more than what the messages may have reported
}

Result<pjrt::Client> AcrossProcesses::partitioner() {
  std::lock_guard lock(mutex_);
  if (!partitioner_) {
    pjrt::NamedValue count{"cpu_device_count", static_cast<std::int64_t>(client().device_count())};
    MESHARD_ASSIGN_OR_RETURN(partitioner_,
                             pjrt::Client::create(client().plugin(), std::span(&count, 1)));
  }
  return *partitioner_;
}

void AcrossProcesses::stop() {
  services_.clear();
  watch_.reset();
  messages_->fail(Error(ErrorCode::kCancelled, "[processes] the runtime was restarted"));
}

}  // namespace meshard
