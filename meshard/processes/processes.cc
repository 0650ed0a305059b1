// Tested in tests/processes/check_processes.py.
#include "meshard/processes/processes.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <system_error>
#include <thread>

#include "meshard/base/cat.h"
#include "meshard/base/environment.h"
#include "meshard/base/packed_fields.h"
#include "meshard/base/stall_report.h"
#include "meshard/processes/internal/gloo_meeting.h"
#include "meshard/processes/internal/meeting_point.h"
#include "meshard/processes/internal/member.h"
#include "meshard/processes/internal/member_text.h"
#include "meshard/processes/internal/server.h"
#include "meshard/processes/internal/stores.h"
#include "meshard/processes/launch.h"
#include "meshard/processes/mpi_communicator.h"
#include "meshard/processes/wait_observer.h"

namespace meshard {

using internal::MemberConnection;
using internal::Message;
using internal::MessageKind;

std::string ProcessInfo::to_string() const { return internal::member_text(rank, host, pid); }

class Processes::State {
 public:
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  /// After a failed initialization; else the state lives until the process ends.
  ~State() {
    if (connection_) connection_->close();
    server_.reset();
  }
  State()
      : members_{
            {.rank = 0, .host = internal::host_name(), .pid = ::getpid(), .local_devices = 1}} {}

  Result<void> join(ProcessesOptions options);
  Result<void> barrier(std::string_view name, std::chrono::milliseconds limit,
                       SourceLocation where);
  Result<void> finalize();
  void report_running(int rank, LossKind kind, std::string difference);
  /// The process ends with a status that is not 0.
  void end_with(int status);
  static void leave(int status, void*);
  static inline std::atomic<State*> current_{nullptr};

  int rank_ = 0;
  std::vector<ProcessInfo> members_;
  std::unique_ptr<Store> store_ = std::make_unique<internal::LocalStore>();
  std::unique_ptr<MpiCommunicator> mpi_;
  std::unique_ptr<GlooCommunicator> gloo_;
  Collectives collectives_ = Collectives::kAutomatic;
  std::string why_no_communicator_;
  std::unique_ptr<MemberConnection> connection_;

 private:
  Result<void> connect(internal::MemberOptions options, int size);
  Result<void> join_by_mpi(const Launch& launch);
  Result<void> join_at_address(const Launch& launch);
  Result<void> connect_by_gloo();
  void wait_for_loss();
  Result<std::vector<ProcessInfo>> wait_for_all(int size);
  void lost(const ProcessLoss& loss);
  void report(const ProcessLoss& loss);
  void wait_for_others();

  ProcessesOptions options_;
  internal::LivenessTimes times_;
  int local_devices_ = 1;
  std::unique_ptr<internal::CoordinatorServer> server_;
  int process_ = ::getpid();
  std::once_flag finalized_;
  std::mutex mutex_;  // of the members below
  bool joined_ = false;
  std::vector<ProcessLoss> losses_;
};

namespace {

constexpr std::chrono::milliseconds kTimeToTellOthers{500};
constexpr int kMostLocalDevices = std::numeric_limits<int>::max();
constexpr std::string_view kJoining = "initialize_processes";

/// Writes what the program has printed, unless another thread holds the stream.
void flush_standard_output() {
  if (::ftrylockfile(stdout) != 0) return;
  ::fflush_unlocked(stdout);
  ::funlockfile(stdout);
}

void print_loss(const ProcessLoss& loss, int rank, int size) {
  std::string text =
      cat("[processes] process ", rank, " of ", size, " ends: ", loss.to_string(), "\n");
  flush_standard_output();
  // In one call, so that the lines of several processes do not mix.
  [[maybe_unused]] ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

/// What before_finalize() has registered.
std::mutex& finishing_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}
std::vector<std::function<Result<void>()>>& finishing() {
  static auto* all = new std::vector<std::function<Result<void>()>>;
  return *all;
}

/// Without a library for MPI, processes of its launcher can meet as others do. If the user names
/// one, it is used, or an error.
bool can_only_use_gloo(const Launch& launch) {
  const char* named = ::getenv("MESHARD_MPI_LIBRARY");
  if (named != nullptr && *named != '\0') return false;
  return launch.collectives == Collectives::kAutomatic && !launch.address.empty() &&
         !find_mpi_library(launch.family).ok() && installed_gloo_library().ok();
}

/// The folder of a socket whose place the launcher's variables gave is this user's.
Result<void> make_folder_of_socket(const Launch& launch, const internal::ProcessAddress& address) {
  if (!launch.everywhere || !address.is_unix()) return {};
  const std::string folder = address.path.substr(0, address.path.rfind('/'));
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return {};
  return Error(ErrorCode::kUnavailable,
               cat("[processes] cannot make ", folder,
                   " for the socket of process 0: ", std::generic_category().message(errno)));
}

Result<int> device_count(const ProcessesOptions& options) {
  if (options.local_devices < 0)
    return Error(ErrorCode::kInvalidArgument,
                 cat("[processes] local_devices is ", options.local_devices));
  if (options.local_devices > 0) return options.local_devices;
  MESHARD_ASSIGN_OR_RETURN(std::int64_t count,
                           environment_integer("MESHARD_CPU_DEVICES", 1, 1, kMostLocalDevices));
  return static_cast<int>(count);
}

Result<internal::LivenessTimes> liveness_times(const ProcessesOptions& options) {
  constexpr std::chrono::milliseconds kLeast = std::chrono::seconds(1);  // four signs of life
  internal::LivenessTimes times;
  if (options.silence_limit == std::chrono::milliseconds(0)) {
    std::chrono::duration<double> otherwise = times.silence;
    MESHARD_ASSIGN_OR_RETURN(double seconds, environment_number("MESHARD_PROCESS_SILENCE_SECONDS",
                                                                otherwise.count(), 1, 1e6));
    times.silence = std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
    return times;
  }
  if (options.silence_limit < kLeast)
    return Error(ErrorCode::kInvalidArgument,
                 cat("[processes] silence_limit is ", options.silence_limit.count(),
                     " ms, but must be at least ", kLeast.count(), " ms"));
  times.silence = options.silence_limit;
  return times;
}

}  // namespace

Result<void> Processes::State::join(ProcessesOptions options) {
  options_ = std::move(options);
  MESHARD_RETURN_IF_ERROR(check_environment());  // a variable of the launch may be misspelled
  MESHARD_ASSIGN_OR_RETURN(
      Launch launch, find_launch(
                         options_, [](const char* name) { return ::getenv(name); }, ::geteuid()));
  MESHARD_ASSIGN_OR_RETURN(local_devices_, device_count(options_));
  members_[0].local_devices = local_devices_;
  MESHARD_ASSIGN_OR_RETURN(times_, liveness_times(options_));
  if (launch.kind == LaunchKind::kSingle) return {};
  collectives_ = launch.collectives;
  if (launch.kind == LaunchKind::kAddress || can_only_use_gloo(launch))
    return join_at_address(launch);
  return join_by_mpi(launch);
}

Result<void> Processes::State::join_at_address(const Launch& launch) {
  rank_ = launch.rank;
  MESHARD_ASSIGN_OR_RETURN(internal::ProcessAddress address,
                           internal::ProcessAddress::parse(launch.address));
  if (rank_ == 0) {
    const bool everywhere = launch.everywhere && !internal::is_loopback(address.host);
    if (everywhere) address.host.clear();
    MESHARD_RETURN_IF_ERROR(make_folder_of_socket(launch, address));
    MESHARD_ASSIGN_OR_RETURN(internal::Listener listener, internal::Listener::open(address));
    server_ = internal::CoordinatorServer::start(std::move(listener), launch.secret, launch.count,
                                                 times_);
  }
  internal::MemberOptions member;
  member.addresses = {address};
  member.secret = launch.secret;
  MESHARD_RETURN_IF_ERROR(connect(std::move(member), launch.count));
  if (collectives_ == Collectives::kNone) return {};
  return connect_by_gloo();
}

Result<void> Processes::State::connect_by_gloo() {
  std::vector<std::string> names;
  for (const ProcessInfo& member : members_) names.push_back(member.to_string());
  GlooOptions gloo{.rank = rank_,
                   .size = static_cast<int>(members_.size()),
                   .limit = options_.join_limit,
                   .before_error = [this] { wait_for_loss(); }};
  MESHARD_ASSIGN_OR_RETURN(
      internal::GlooMeeting meeting,
      internal::meet_by_gloo(std::move(gloo), connection_->ends(), *store_, names));
  gloo_ = std::move(meeting.communicator);
  why_no_communicator_ = std::move(meeting.why_not);
  return {};
}

/// A process that dies closes its connections of Gloo at the same time as the one that reports its
/// death, which ends this process with a better message.
void Processes::State::wait_for_loss() {
  const auto deadline = std::chrono::steady_clock::now() + times_.silence + kTimeToTellOthers;
  while (std::chrono::steady_clock::now() < deadline) {
    {
      std::lock_guard lock(mutex_);
      if (!losses_.empty()) break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  // The report ends this process, unless the program has its own way.
  if (!options_.on_loss) std::this_thread::sleep_for(kTimeToTellOthers);
}

Result<void> Processes::State::join_by_mpi(const Launch& launch) {
  MESHARD_ASSIGN_OR_RETURN(mpi_, MpiCommunicator::open(local_devices_, launch.family));
  rank_ = mpi_->rank();
  if (launch.announced != 0 && launch.announced != mpi_->size())
    return Error(
        ErrorCode::kFailedPrecondition,
        cat("[processes] ", launch.variable, " is ", launch.announced, ", but MPI has ",
            mpi_->size(),
            " processes: libmeshard_mpi.so was built for another MPI than that of the launcher"));
  if (mpi_->size() == 1) return {};
  MESHARD_ASSIGN_OR_RETURN(internal::MeetingPoint point, internal::agree_on_meeting_point(*mpi_));
  if (point.listener)
    server_ = internal::CoordinatorServer::start(*std::move(point.listener), point.secret,
                                                 mpi_->size(), times_);
  internal::MemberOptions member;
  member.addresses = std::move(point.addresses);
  member.secret = std::move(point.secret);
  return connect(std::move(member), mpi_->size());
}

Result<void> Processes::State::connect(internal::MemberOptions options, int size) {
  options.rank = rank_;
  options.limit = options_.join_limit;
  options.times = times_;
  options.on_loss = [this](const ProcessLoss& loss) { lost(loss); };
  MESHARD_ASSIGN_OR_RETURN(connection_, MemberConnection::open(std::move(options)));
  Result<std::vector<ProcessInfo>> members = wait_for_all(size);
  if (!members.ok()) {
    connection_->say_bye(1);
    return members.error();
  }
  members_ = *std::move(members);
  store_ = std::make_unique<internal::RemoteStore>(*connection_);
  connection_->set_server(members_[0].host, members_[0].pid);
  connection_->set_activity("");
  std::vector<ProcessLoss> losses;
  {
    std::lock_guard lock(mutex_);
    joined_ = true;
    losses = losses_;
  }
  for (const ProcessLoss& loss : losses) report(loss);  // in the meantime
  return {};
}

Result<std::vector<ProcessInfo>> Processes::State::wait_for_all(int size) {
  connection_->set_activity(kJoining);
  Message request{.kind = MessageKind::kJoin,
                  .number = internal::limit_number(options_.join_limit),
                  .value = to_packed(internal::JoinRequest{internal::host_name(), ::getpid(),
                                                           local_devices_, size})};
  MESHARD_ASSIGN_OR_RETURN(Message reply, connection_->request(std::move(request)));
  std::string words = cat("[processes] not all of ", size, " processes have joined within ",
                          internal::seconds_text(options_.join_limit));
  bool in_time = reply.number != static_cast<int>(ErrorCode::kDeadlineExceeded);
  if (auto error = internal::reply_error(reply, in_time ? "[processes] cannot join" : words))
    return *error;
  MESHARD_ASSIGN_OR_RETURN(std::vector<ProcessInfo> members,
                           from_packed<std::vector<ProcessInfo>>(reply.value, "processes"));
  if (static_cast<int>(members.size()) != size)
    return Error(ErrorCode::kInternal, cat("[processes] a list of ", members.size(), " processes"));
  return members;
}

Result<void> Processes::State::barrier(std::string_view name, std::chrono::milliseconds limit,
                                       SourceLocation where) {
  if (!connection_) return {};
  ObservedWait observed("barrier", name);
  std::string before = connection_->activity(),
              now = cat("barrier \"", name, '"', where.known() ? cat(" at ", where) : "");
  internal::note_program_thread();
  std::optional<internal::AwaitingScope> awaiting;
  if (limit == kNoTimeLimit) {
    std::vector<int> all(members_.size());
    std::iota(all.begin(), all.end(), 0);
    awaiting.emplace(internal::Awaiting{now, {{cat("barrier/", name), 1, std::move(all)}}});
  }
  connection_->set_activity(now);
  Result<Message> reply = connection_->request({.kind = MessageKind::kBarrier,
                                                .number = internal::limit_number(limit),
                                                .name = std::string(name)});
  // Another thread may have entered something else.
  if (connection_->activity() == now) connection_->set_activity(before);
  if (!reply.ok()) return reply.error();
  if (reply->number == static_cast<int>(ErrorCode::kDeadlineExceeded))
    return Error(ErrorCode::kDeadlineExceeded,
                 cat("[barrier] \"", name, "\" was not reached within ",
                     internal::seconds_text(limit), " by\n  ", reply->name));
  if (auto error = internal::reply_error(*reply, cat("[barrier] \"", name, '"'))) return *error;
  return {};
}

void Processes::State::lost(const ProcessLoss& loss) {
  {
    std::lock_guard lock(mutex_);
    losses_.push_back(loss);
    if (!joined_) return;  // connect() reports it
  }
  report(loss);
}

void Processes::State::report(const ProcessLoss& loss) {
  if (options_.on_loss) return options_.on_loss(loss);
  print_loss(loss, rank_, static_cast<int>(members_.size()));
  // The others should hear of the loss, not that process 0 has gone.
  auto deadline = std::chrono::steady_clock::now() + kTimeToTellOthers;
  while (server_ && !server_->others_running().empty() &&
         std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ::_exit(1);
}

void Processes::State::report_running(int rank, LossKind kind, std::string difference) {
  const ProcessInfo& other = members_.at(static_cast<std::size_t>(rank));
  ProcessLoss loss{.rank = rank,
                   .kind = kind,
                   .host = other.host,
                   .pid = other.pid,
                   .difference = std::move(difference)};
  lost(loss);
}

void Processes::State::wait_for_others() {
  internal::StallWatch watch;
  for (std::vector<int> others; !(others = server_->others_running()).empty();) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (!watch.is_due()) continue;
    std::string names;
    for (int rank : others)
      names += cat("\n  ", members_[static_cast<std::size_t>(rank)].to_string());
    internal::report_stall(cat("the end of other processes:", names), watch.waited());
  }
}

Result<void> Processes::State::finalize() {
  Result<void> result;
  if (::getpid() != process_) return result;  // a forked child does not take part
  std::call_once(finalized_, [&] {
    if (connection_) connection_->set_ended();
    bool has_losses = false;
    {
      std::lock_guard lock(mutex_);
      has_losses = !losses_.empty();
    }
    // It waits for all processes, so for ever if one is gone.
    if (mpi_ && !has_losses) result = mpi_->finalize();
    if (gloo_ && !has_losses) result = gloo_->finalize();
    if (!connection_) return;
    connection_->say_bye(0);
    if (server_) wait_for_others();
    connection_->close();
    server_.reset();
  });
  return result;
}

void Processes::State::end_with(int status) {
  if (::getpid() != process_ || !connection_ || connection_->is_own_thread()) return;
  std::call_once(finalized_, [&] {
    connection_->ignore_losses();  // the others may end first
    connection_->say_bye(status);
    connection_->close();
    server_.reset();  // sends what is queued for the others
  });
}

/// Registered with on_exit(): tells the others how this process ends.
void Processes::State::leave(int status, void*) {
  State* state = current_.load();
  if (status != 0) return state->end_with(status);
  [[maybe_unused]] Result<void> result = state->finalize();
}

Result<Processes> initialize_processes(ProcessesOptions options) {
  static std::mutex one_at_a_time;
  std::lock_guard lock(one_at_a_time);
  if (Processes::State::current_.load() != nullptr)
    return Error(ErrorCode::kFailedPrecondition,
                 "[processes] initialize_processes() has been called before");
  auto state = std::make_unique<Processes::State>();
  MESHARD_RETURN_IF_ERROR(state->join(std::move(options)));
  Processes::State::current_.store(state.get());
#ifdef __GLIBC__
  ::on_exit(&Processes::State::leave, nullptr);
#else
  std::atexit([] { Processes::State::leave(0, nullptr); });
#endif
  return Processes(state.release());
}

Processes processes() {
  static auto* single = new Processes::State;
  Processes::State* state = Processes::State::current_.load(std::memory_order_acquire);
  return Processes(state != nullptr ? state : single);
}

int Processes::process_index() const { return state_->rank_; }
int Processes::size() const { return static_cast<int>(state_->members_.size()); }
const std::vector<ProcessInfo>& Processes::members() const { return state_->members_; }
Store& Processes::store() const { return *state_->store_; }
ProcessCommunicator* Processes::communicator() const {
  if (size() == 1 || state_->collectives_ == Collectives::kNone) return nullptr;
  if (state_->mpi_) return state_->mpi_.get();
  return state_->gloo_.get();
}
const std::string& Processes::why_no_communicator() const { return state_->why_no_communicator_; }
Result<void> Processes::barrier(std::string_view name, std::chrono::milliseconds limit,
                                SourceLocation where) const {
  return state_->barrier(name, limit, where);
}
void Processes::entering(std::string_view activity) const {
  if (state_->connection_) state_->connection_->set_activity(activity);
}
void Processes::set_activity_source(ActivitySource source) const {
  if (state_->connection_) state_->connection_->set_activity_source(std::move(source));
}
void Processes::report_out_of_step(int rank, std::string difference) const {
  state_->report_running(rank, LossKind::kOutOfStep, std::move(difference));
}
void Processes::report_given_up(int rank, std::string failure) const {
  state_->report_running(rank, LossKind::kGaveUp, std::move(failure));
}
Result<void> Processes::finalize() const {
  Result<void> finished;
  std::vector<std::function<Result<void>()>> all;
  {
    std::lock_guard lock(finishing_mutex());
    all = finishing();
  }
  for (const std::function<Result<void>()>& finish : all)
    if (Result<void> outcome = finish(); !outcome.ok() && finished.ok())
      finished = std::move(outcome);
  Result<void> left = state_->finalize();
  return left.ok() ? finished : left;
}

void internal::before_finalize(std::function<Result<void>()> finish) {
  std::lock_guard lock(finishing_mutex());
  finishing().push_back(std::move(finish));
}

}  // namespace meshard
