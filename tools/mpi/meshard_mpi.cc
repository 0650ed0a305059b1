// Tested in tests/processes/check_mpi.py.
// libmeshard_mpi.so: the functions of meshard/processes/mpi_abi.h, by MPI.
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "meshard/processes/mpi_abi.h"
#include "tools/mpi/elements.h"

namespace {

using namespace meshard::mpi;

constexpr std::uint64_t kLargestMessage = std::uint64_t{1} << 30;  // counts of MPI are int

/// A communicator of a group. Calls on one communicator must not overlap.
struct GroupCommunicator {
  MPI_Comm comm = MPI_COMM_NULL;
  std::mutex mutex;
};

struct MpiState;

/// An exchange that a thread waits for.
struct PendingExchange {
  std::vector<MPI_Request> requests;
  int status = MPI_SUCCESS;
  bool has_ended = false;  // guarded by MpiState::pending_mutex

  /// Whether it has ended, with success or not.
  bool ask(MpiState& state);
};

/// The pieces of a message that was started.
struct StartedPieces {
  std::vector<MPI_Request> requests;
};

struct MpiState {
  std::mutex mutex;       // of the map
  std::mutex serialized;  // held in every call if MPI does not allow several threads
  std::map<std::vector<int>, std::unique_ptr<GroupCommunicator>> groups;
  MPI_Comm all = MPI_COMM_NULL;
  MPI_Comm messages = MPI_COMM_NULL;  // those of exchange(), whose tags are its callers'
  int largest_tag = 32767;
  std::mutex pending_mutex;  // of the next three
  std::condition_variable asked;
  std::vector<PendingExchange*> pending;
  bool is_asking = false;            // a thread asks MPI
  MPI_Comm started = MPI_COMM_NULL;  // messages of start_message()
  std::mutex started_mutex;          // of the next two
  std::set<StartedPieces*> sends;    // those that have not ended
  bool has_ended = false;
  int rank = 0;
  int size = 1;
  bool started_here = false;
  bool several_threads = false;
  bool is_crowded = false;  // on some machine, threads that wait share a core
  std::uint64_t largest = kLargestMessage;
  MPI_Op float_min = MPI_OP_NULL;
  MPI_Op float_max = MPI_OP_NULL;
  MPI_Op byte_sum = MPI_OP_NULL;
  MPI_Op short_sum = MPI_OP_NULL;
};

MpiState& mpi_state() {
  static auto* state = new MpiState;  // never destroyed: the program may end in any order
  return *state;
}

/// What a thread does between two looks at what MPI has not ended. Where threads share a core, it
/// lets the others have it: it sleeps for a fraction of the time that it has waited.
class Pauses {
 public:
  explicit Pauses(const MpiState& state) : is_crowded_(state.is_crowded) {}

  void take() {
    const Clock::duration pause = is_crowded_ ? (Clock::now() - begin_) / 4 : Clock::duration{};
    if (pause < kShortest)
      ::sched_yield();
    else
      std::this_thread::sleep_for(std::min<Clock::duration>(pause, kLongest));
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::microseconds kShortest{50};
  static constexpr std::chrono::microseconds kLongest{1000};

  const bool is_crowded_;
  const Clock::time_point begin_ = Clock::now();
};

bool PendingExchange::ask(MpiState& state) {
  std::unique_lock<std::mutex> turn(state.serialized, std::defer_lock);
  if (!state.several_threads) turn.lock();
  int done = 0;
  status =
      MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
  return done != 0 || status != MPI_SUCCESS;
}

/// Runs `body`, in turn with other threads if MPI wants it, and describes what it throws. A body
/// that waits for several threads receives the lock that is its turn.
template <class Body>
int guarded(MeshardMpiError* error, Body body) {
  MpiState& state = mpi_state();
  std::unique_lock<std::mutex> turn(state.serialized, std::defer_lock);
  if (!state.several_threads) turn.lock();
  try {
    body(state);
    return 0;
  } catch (const MpiFailure& failure) {
    char own[MPI_MAX_ERROR_STRING] = {};
    int size = 0;
    MPI_Error_string(failure.code, own, &size);
    std::snprintf(error->text, sizeof error->text, "%.*s", size, own);
    return failure.code;
  } catch (const std::exception& failure) {
    std::snprintf(error->text, sizeof error->text, "%s", failure.what());
    return -1;
  }
}

MPI_Op operation_of(MeshardMpiReduction op, MeshardMpiType type, const MpiState& state) {
  bool is_bool = type == kMeshardMpiBool;
  bool is_float = type == kMeshardMpiF32 || type == kMeshardMpiF64;
  switch (op) {
    case kMeshardMpiSum:
      if (type == kMeshardMpiI8 || type == kMeshardMpiU8) return state.byte_sum;
      if (type == kMeshardMpiI16 || type == kMeshardMpiU16) return state.short_sum;
      return is_bool ? MPI_BOR : MPI_SUM;
    case kMeshardMpiProduct: return is_bool ? MPI_BAND : MPI_PROD;
    case kMeshardMpiMin: return is_float ? state.float_min : MPI_MIN;
    case kMeshardMpiMax: return is_float ? state.float_max : MPI_MAX;
    case kMeshardMpiAnd: return MPI_BAND;
    case kMeshardMpiOr: return MPI_BOR;
    case kMeshardMpiXor: return MPI_BXOR;
  }
  throw MpiFailure{MPI_ERR_OP};
}

bool is_everyone(const std::vector<int>& ranks, int size) {
  if (static_cast<int>(ranks.size()) != size) return false;
  for (int i = 0; i < size; ++i)
    if (ranks[static_cast<std::size_t>(i)] != i) return false;
  return true;
}

/// The communicator of a group, made at its first use by its members only. The members' positions
/// are their ranks in it.
GroupCommunicator& communicator_of(MeshardMpiGroup group, MpiState& state) {
  std::vector<int> ranks(group.ranks, group.ranks + group.size);
  std::lock_guard lock(state.mutex);
  std::unique_ptr<GroupCommunicator>& entry = state.groups[ranks];
  if (entry) return *entry;
  auto made = std::make_unique<GroupCommunicator>();
  if (is_everyone(ranks, state.size)) {
    made->comm = state.all;
  } else {
    std::uint32_t tag = 0;  // of this group, should several be made at once
    for (int rank : ranks) tag = tag * 31 + static_cast<std::uint32_t>(rank) + 1;
    MPI_Group all = MPI_GROUP_NULL, members = MPI_GROUP_NULL;
    check(MPI_Comm_group(state.all, &all));
    check(MPI_Group_incl(all, group.size, ranks.data(), &members));
    check(MPI_Comm_create_group(state.all, members, static_cast<int>(tag % 32768), &made->comm));
    check(MPI_Comm_set_errhandler(made->comm, MPI_ERRORS_RETURN));
    MPI_Group_free(&members);
    MPI_Group_free(&all);
  }
  entry = std::move(made);
  return *entry;
}

/// Waits until a request has ended.
void wait_for(MPI_Request& request, const MpiState& state) {
  if (!state.is_crowded) return check(MPI_Wait(&request, MPI_STATUS_IGNORE));
  Pauses pauses(state);
  for (int has_ended = 0;; pauses.take()) {
    check(MPI_Test(&request, &has_ended, MPI_STATUS_IGNORE));
    if (has_ended) return;
  }
}

/// Waits until all members of a group are here, before a collective operation. Open MPI waits for
/// them in a busy loop, so this is done first if others need the core.
void meet(const GroupCommunicator& members, const MpiState& state) {
  if (!state.is_crowded) return;
  MPI_Request arrival = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(members.comm, &arrival));
  wait_for(arrival, state);
}

/// Bytes at a stride: one element is `size` bytes, the next begins `stride` bytes later.
class StridedType {
 public:
  StridedType(std::uint64_t size, std::uint64_t stride) {
    MPI_Datatype bytes = MPI_DATATYPE_NULL;
    check(MPI_Type_contiguous(static_cast<int>(size), MPI_BYTE, &bytes));
    int status = MPI_Type_create_resized(bytes, 0, static_cast<MPI_Aint>(stride), &type_);
    MPI_Type_free(&bytes);
    check(status);
    check(MPI_Type_commit(&type_));
  }
  ~StridedType() { MPI_Type_free(&type_); }
  StridedType(const StridedType&) = delete;
  StridedType& operator=(const StridedType&) = delete;
  MPI_Datatype get() const { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

const char* bytes_at(const void* data, std::uint64_t offset) {
  return static_cast<const char*>(data) + offset;
}
char* bytes_at(void* data, std::uint64_t offset) { return static_cast<char*>(data) + offset; }

/// Calls `step(begin, count)` for pieces of at most `most`.
template <class Step>
void in_pieces(std::uint64_t count, std::uint64_t most, Step step) {
  most = std::clamp<std::uint64_t>(most, 1, INT_MAX);
  for (std::uint64_t begin = 0; begin < count; begin += most)
    step(begin, std::min(most, count - begin));
}

// Open MPI polls in a busy loop, which is slow if another process waits for the core. It reads the
// variable when it starts. If it is 0, it stays 0, and nothing is regarded as crowded.
constexpr const char* kYieldWhenIdle = "OMPI_MCA_mpi_yield_when_idle";

bool is_crowded_here(int threads) {
  const char* local = std::getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
  if (local == nullptr) local = std::getenv("MPI_LOCALNRANKS");  // MPICH, Intel MPI
  const char* yields = std::getenv(kYieldWhenIdle);
  return local != nullptr && std::atol(local) * threads > ::sysconf(_SC_NPROCESSORS_ONLN) &&
         (yields == nullptr || std::strcmp(yields, "0") != 0);
}

int initialize(int threads, int* rank, int* size, MeshardMpiError* error) {
  return guarded(error, [&](MpiState& state) {
    int started = 0, level = MPI_THREAD_SINGLE;
    int is_crowded = is_crowded_here(threads);
    check(MPI_Initialized(&started));
    if (!started) {
      if (is_crowded) ::setenv(kYieldWhenIdle, "1", 0);
      check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level));
      state.started_here = true;
    } else {
      check(MPI_Query_thread(&level));
    }
    state.several_threads = level == MPI_THREAD_MULTIPLE;
    if (state.all == MPI_COMM_NULL) {
      for (MPI_Comm* comm : {&state.all, &state.messages, &state.started}) {
        check(MPI_Comm_dup(MPI_COMM_WORLD, comm));
        check(MPI_Comm_set_errhandler(*comm, MPI_ERRORS_RETURN));
      }
      // In all processes, because all members of a group must meet or none.
      check(MPI_Allreduce(MPI_IN_PLACE, &is_crowded, 1, MPI_INT, MPI_MAX, state.all));
      state.is_crowded = is_crowded != 0;
      int* largest = nullptr;
      int known = 0;
      check(MPI_Comm_get_attr(state.messages, MPI_TAG_UB, &largest, &known));
      if (known) state.largest_tag = *largest;
      check(MPI_Op_create(&float_min, 1, &state.float_min));
      check(MPI_Op_create(&float_max, 1, &state.float_max));
      check(MPI_Op_create(&wrapping_sum<std::uint8_t>, 1, &state.byte_sum));
      check(MPI_Op_create(&wrapping_sum<std::uint16_t>, 1, &state.short_sum));
    }
    check(MPI_Comm_rank(state.all, &state.rank));
    check(MPI_Comm_size(state.all, &state.size));
    *rank = state.rank;
    *size = state.size;
  });
}

// A process that has failed may never receive what was sent to it.
constexpr std::chrono::seconds kLongestSend{5};

/// Lets the sends end that were started. @pre no other thread is in a function of started messages
void end_sends(MpiState& state) {
  auto deadline = std::chrono::steady_clock::now() + kLongestSend;
  for (StartedPieces* each : state.sends)
    for (int done = 0; !done && std::chrono::steady_clock::now() < deadline;)
      if (MPI_Testall(static_cast<int>(each->requests.size()), each->requests.data(), &done,
                      MPI_STATUSES_IGNORE) != MPI_SUCCESS)
        break;
}

int finalize(MeshardMpiError* error) {
  return guarded(error, [&](MpiState& state) {
    int ended = 0;
    check(MPI_Finalized(&ended));
    std::lock_guard lock(state.started_mutex);
    if (!ended && !std::exchange(state.has_ended, true)) end_sends(state);
    if (state.started_here && !ended) check(MPI_Finalize());
  });
}

int library_name(char* name, std::size_t size, MeshardMpiError* error) {
  return guarded(error, [&](MpiState&) {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    check(MPI_Get_library_version(text, &length));
    std::snprintf(name, size, "%.*s", length, text);
  });
}

void set_largest_message(std::uint64_t bytes) {
  mpi_state().largest = bytes == 0 ? kLargestMessage : std::min(bytes, kLargestMessage);
}

int all_reduce(MeshardMpiGroup group, MeshardMpiReduction op, MeshardMpiType type, const void* in,
               void* out, std::uint64_t count, MeshardMpiError* error) {
  return guarded(error, [&](MpiState& state) {
    GroupCommunicator& members = communicator_of(group, state);
    std::lock_guard lock(members.mutex);
    meet(members, state);
    MPI_Datatype datatype = datatype_of(type);
    std::uint64_t size = bytes_of(datatype);
    in_pieces(count, state.largest / size, [&](std::uint64_t begin, std::uint64_t piece) {
      const void* from = in == out ? MPI_IN_PLACE : bytes_at(in, begin * size);
      check(MPI_Allreduce(from, bytes_at(out, begin * size), static_cast<int>(piece), datatype,
                          operation_of(op, type, state), members.comm));
    });
  });
}

int reduce_scatter(MeshardMpiGroup group, MeshardMpiReduction op, MeshardMpiType type,
                   const void* in, void* out, std::uint64_t count, MeshardMpiError* error) {
  return guarded(error, [&](MpiState& state) {
    GroupCommunicator& members = communicator_of(group, state);
    std::lock_guard lock(members.mutex);
    meet(members, state);
    MPI_Datatype datatype = datatype_of(type);
    std::uint64_t size = bytes_of(datatype), parts = static_cast<std::uint64_t>(group.size);
    std::uint64_t most = state.largest / size / parts;
    std::vector<char> packed;  // the same piece of all blocks, if there are several pieces
    in_pieces(count, most, [&](std::uint64_t begin, std::uint64_t piece) {
      const void* from = in;
      if (piece != count) {
        packed.resize(parts * piece * size);
        for (std::uint64_t i = 0; i < parts; ++i)
          std::memcpy(&packed[i * piece * size], bytes_at(in, (i * count + begin) * size),
                      piece * size);
        from = packed.data();
      }
      check(MPI_Reduce_scatter_block(from, bytes_at(out, begin * size), static_cast<int>(piece),
                                     datatype, operation_of(op, type, state), members.comm));
    });
  });
}

int all_gather(MeshardMpiGroup group, const void* in, void* out, std::uint64_t bytes,
               MeshardMpiError* error) {
  return guarded(error, [&](MpiState& state) {
    GroupCommunicator& members = communicator_of(group, state);
    std::lock_guard lock(members.mutex);
    meet(members, state);
    std::uint64_t most = state.largest / static_cast<std::uint64_t>(group.size);
    in_pieces(bytes, most, [&](std::uint64_t begin, std::uint64_t piece) {
      int count = static_cast<int>(piece);
      if (piece == bytes) {
        check(MPI_Allgather(in, count, MPI_BYTE, out, count, MPI_BYTE, members.comm));
      } else {
        StridedType blocks(piece, bytes);
        check(MPI_Allgather(bytes_at(in, begin), count, MPI_BYTE, bytes_at(out, begin), 1,
                            blocks.get(), members.comm));
      }
    });
  });
}

int all_to_all(MeshardMpiGroup group, const void* in, void* out, std::uint64_t bytes,
               MeshardMpiError* error) {
  return guarded(error, [&](MpiState& state) {
    GroupCommunicator& members = communicator_of(group, state);
    std::lock_guard lock(members.mutex);
    meet(members, state);
    std::uint64_t most = state.largest / static_cast<std::uint64_t>(group.size);
    in_pieces(bytes, most, [&](std::uint64_t begin, std::uint64_t piece) {
      int count = static_cast<int>(piece);
      if (piece == bytes) {
        check(MPI_Alltoall(in, count, MPI_BYTE, out, count, MPI_BYTE, members.comm));
      } else {
        StridedType blocks(piece, bytes);
        check(MPI_Alltoall(bytes_at(in, begin), 1, blocks.get(), bytes_at(out, begin), 1,
                           blocks.get(), members.comm));
      }
    });
  });
}

int broadcast(MeshardMpiGroup group, int root, void* data, std::uint64_t bytes,
              MeshardMpiError* error) {
  return guarded(error, [&](MpiState& state) {
    GroupCommunicator& members = communicator_of(group, state);
    std::lock_guard lock(members.mutex);
    meet(members, state);
    in_pieces(bytes, state.largest, [&](std::uint64_t begin, std::uint64_t piece) {
      check(
          MPI_Bcast(bytes_at(data, begin), static_cast<int>(piece), MPI_BYTE, root, members.comm));
    });
  });
}

int permute(int to, int from, const void* in, void* out, std::uint64_t bytes,
            MeshardMpiError* error) {
  return guarded(error, [&](MpiState& state) {
    constexpr int kTag = 1;
    in_pieces(bytes, state.largest, [&](std::uint64_t begin, std::uint64_t piece) {
      const int count = static_cast<int>(piece);
      MPI_Request receive = MPI_REQUEST_NULL, send = MPI_REQUEST_NULL;
      if (from >= 0)
        check(MPI_Irecv(bytes_at(out, begin), count, MPI_BYTE, from, kTag, state.all, &receive));
      if (to >= 0)
        check(MPI_Isend(bytes_at(in, begin), count, MPI_BYTE, to, kTag, state.all, &send));
      wait_for(receive, state);
      wait_for(send, state);
    });
  });
}

/// Calls `post(message, begin, count)` for each piece of each message.
template <class Post>
void post_in_pieces(const MeshardMpiMessage* messages, std::uint64_t count, const MpiState& state,
                    Post post) {
  for (const MeshardMpiMessage* each = messages; each != messages + count; ++each) {
    if (each->bytes == 0) post(*each, 0, 0);
    in_pieces(each->bytes, state.largest, [&](std::uint64_t begin, std::uint64_t piece) {
      post(*each, begin, static_cast<int>(piece));
    });
  }
}

void check_tags(const MeshardMpiMessage* messages, std::uint64_t count, const MpiState& state) {
  for (std::uint64_t i = 0; i < count; ++i)
    if (messages[i].tag > state.largest_tag) throw MpiFailure{MPI_ERR_TAG};
}

/// Waits until all requests of an exchange have ended. One thread at a time asks MPI, for all
/// threads that wait: with four threads in MPI_Waitall, Open MPI 4.1.4 takes over 100 times as
/// long.
void wait_for_end(PendingExchange& own, MpiState& state) {
  Pauses pauses(state);
  std::unique_lock lock(state.pending_mutex);
  state.pending.push_back(&own);
  while (!own.has_ended) {
    if (state.is_asking) {
      state.asked.wait(lock);
      continue;
    }
    state.is_asking = true;
    const std::vector<PendingExchange*> all = state.pending;
    lock.unlock();
    std::vector<PendingExchange*> ended;
    for (PendingExchange* each : all)
      if (each->ask(state)) ended.push_back(each);
    if (ended.empty()) pauses.take();
    lock.lock();
    for (PendingExchange* each : ended) {
      each->has_ended = true;
      std::erase(state.pending, each);
    }
    state.is_asking = false;
    if (!ended.empty()) state.asked.notify_all();  // one of the others asks next
  }
}

int exchange(const MeshardMpiMessage* sent, std::uint64_t sent_count,
             const MeshardMpiMessage* received, std::uint64_t received_count,
             MeshardMpiError* error) {
  PendingExchange own;
  int status = guarded(error, [&](MpiState& state) {
    // Before anything is sent: a started message needs its memory until it has ended.
    check_tags(sent, sent_count, state);
    check_tags(received, received_count, state);
    auto next = [&] { return &own.requests.emplace_back(MPI_REQUEST_NULL); };
    post_in_pieces(received, received_count, state,
                   [&](const MeshardMpiMessage& each, std::uint64_t begin, int count) {
                     check(MPI_Irecv(bytes_at(each.data, begin), count, MPI_BYTE, each.process,
                                     each.tag, state.messages, next()));
                   });
    post_in_pieces(sent, sent_count, state,
                   [&](const MeshardMpiMessage& each, std::uint64_t begin, int count) {
                     check(MPI_Isend(bytes_at(each.data, begin), count, MPI_BYTE, each.process,
                                     each.tag, state.messages, next()));
                   });
  });
  if (status != 0) return status;
  wait_for_end(own, mpi_state());
  return guarded(error, [&](MpiState&) { check(own.status); });
}

/// guarded(), unless MPI has ended.
template <class Body>
int guarded_until_end(MeshardMpiError* error, Body body) {
  return guarded(error, [&](MpiState& state) {
    std::lock_guard lock(state.started_mutex);
    if (state.has_ended) throw MpiFailure{MPI_ERR_OTHER};
    body(state);
  });
}

int start_message(MeshardMpiMessage message, int sends, void** started, MeshardMpiError* error) {
  return guarded_until_end(error, [&](MpiState& state) {
    check_tags(&message, 1, state);
    auto own = std::make_unique<StartedPieces>();
    auto start = [&](const MeshardMpiMessage& each, std::uint64_t begin, int count) {
      auto* next = &own->requests.emplace_back(MPI_REQUEST_NULL);
      void* data = bytes_at(each.data, begin);
      check(sends ? MPI_Isend(data, count, MPI_BYTE, each.process, each.tag, state.started, next)
                  : MPI_Irecv(data, count, MPI_BYTE, each.process, each.tag, state.started, next));
    };
    post_in_pieces(&message, 1, state, start);
    if (sends) state.sends.insert(own.get());
    *started = own.release();
  });
}

int message_ended(void* started, int* ended, MeshardMpiError* error) {
  return guarded_until_end(error, [&](MpiState& state) {
    auto* own = static_cast<StartedPieces*>(started);
    int status = MPI_Testall(static_cast<int>(own->requests.size()), own->requests.data(), ended,
                             MPI_STATUSES_IGNORE);
    if (status == MPI_SUCCESS && !*ended) return;
    state.sends.erase(own);
    delete own;
    check(status);
  });
}

int cancel_receive(void* started, MeshardMpiError* error) {
  return guarded_until_end(error, [&](MpiState&) {
    std::unique_ptr<StartedPieces> own(static_cast<StartedPieces*>(started));
    for (MPI_Request& request : own->requests) {
      if (request == MPI_REQUEST_NULL) continue;
      check(MPI_Cancel(&request));
      check(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
  });
}

int largest_tag(void) { return mpi_state().largest_tag; }

constexpr MeshardMpiApi kApi = {
    .version = MESHARD_MPI_VERSION,
    .struct_size = sizeof(MeshardMpiApi),
    .initialize = initialize,
    .finalize = finalize,
    .library_name = library_name,
    .set_largest_message = set_largest_message,
    .all_reduce = all_reduce,
    .reduce_scatter = reduce_scatter,
    .all_gather = all_gather,
    .all_to_all = all_to_all,
    .broadcast = broadcast,
    .permute = permute,
    .exchange = exchange,
    .start_message = start_message,
    .message_ended = message_ended,
    .cancel_receive = cancel_receive,
    .largest_tag = largest_tag,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const MeshardMpiApi* meshard_mpi_api(void) {
  return &kApi;
}
