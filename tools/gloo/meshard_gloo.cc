// Tested in tests/processes/check_gloo.py.
// libmeshard_gloo.so: the functions of meshard/processes/gloo_abi.h, by Gloo's transport over TCP.
// Collectives are made of these messages in meshard/processes/gloo_communicator.cc, because Gloo's
// own ones want connections for each group, and leave open what becomes of NaN and of zeros.
#include <gloo/config.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>
#include <gloo/transport/unbound_buffer.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "meshard/processes/gloo_abi.h"

namespace {

namespace tcp = gloo::transport::tcp;

// Gloo closes all connections when a wait ends by its limit, so the limit never passes: who waits
// for a process that is gone learns it from its closed connection, or ends with the run.
constexpr std::chrono::milliseconds kNoLimit = std::chrono::hours(24 * 365);

/// Gloo begins with the file and line of its source: `[/path/pair.cc:12] Connection closed`.
std::string words_of(const std::exception& failure) {
  std::string text = failure.what();
  if (std::size_t end = text.find("] "); text.starts_with('[') && end != std::string::npos)
    text.erase(0, end + 2);
  return text;
}

/// Blocks SIGPIPE in this thread, or all signals, while it lives: Gloo writes without MSG_NOSIGNAL,
/// and threads inherit what is blocked.
class BlockedSignals {
 public:
  explicit BlockedSignals(bool all) {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t blocked = pipe_;
    if (all) sigfillset(&blocked);
    ::pthread_sigmask(SIG_BLOCK, &blocked, &before_);
  }
  ~BlockedSignals() {
    timespec at_once{};
    if (sigismember(&before_, SIGPIPE) == 0)
      while (::sigtimedwait(&pipe_, nullptr, &at_once) == SIGPIPE) {
      }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

using Message = std::unique_ptr<gloo::transport::UnboundBuffer>;

/// From whom, and of which slot.
using Place = std::pair<int, std::uint64_t>;

/// A message that was started. A thread waits for it, because Gloo cannot be asked.
struct Started {
  Message message;
  bool sends = false;
  Place place;
  // Of a receive: Gloo cannot withdraw one that is given up, so what comes does not go into memory
  // of the caller.
  std::vector<char> memory;
  // The members below are guarded by Waiters::mutex_.
  void* target = nullptr;  // null: given up
  std::uint64_t bytes = 0;
  std::string failure;  // written before `ended`
  std::atomic<bool> ended{false};

  void deliver() {
    if (!sends && target != nullptr && bytes != 0) std::memcpy(target, memory.data(), bytes);
  }
};

/// Owner of threads that wait for messages, as many as there are messages at a time.
class Waiters {
 public:
  void add(std::shared_ptr<Started> message) {
    std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(message));
    if (waiting_.size() > idle_) {
      BlockedSignals blocked(true);
      std::thread([this] { work(); }).detach();
      ++idle_;  // it is about to be
    }
    added_.notify_one();
  }

  /// The next message of its place is for whoever receives there next.
  void give_up(const std::shared_ptr<Started>& message) {
    std::lock_guard lock(mutex_);
    message->target = nullptr;
    if (!message->ended) given_up_[message->place].push_back(message);
  }

  /// A receive that was given up, for a new caller; null: there is none.
  std::shared_ptr<Started> adopt(Place place, void* target, std::uint64_t bytes) {
    std::lock_guard lock(mutex_);
    auto found = given_up_.find(place);
    if (found == given_up_.end()) return nullptr;
    std::shared_ptr<Started> own = found->second.front();
    if (own->memory.size() < bytes)
      throw std::runtime_error("a receive of " + std::to_string(own->memory.size()) +
                               " bytes was given up, and the next one has " +
                               std::to_string(bytes));
    found->second.pop_front();
    if (found->second.empty()) given_up_.erase(found);
    own->target = target;
    own->bytes = bytes;
    if (own->ended && own->failure.empty()) own->deliver();
    return own;
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      added_.wait(lock, [this] { return !waiting_.empty(); });
      std::shared_ptr<Started> own = std::move(waiting_.front());
      waiting_.pop_front();
      --idle_;
      lock.unlock();
      std::string failure;
      try {
        if (own->sends)
          own->message->waitSend(nullptr, kNoLimit);
        else
          own->message->waitRecv(nullptr, kNoLimit);
      } catch (const std::exception& error) {
        failure = words_of(error);
      }
      lock.lock();
      if (failure.empty()) own->deliver();
      own->failure = std::move(failure);
      own->ended.store(true, std::memory_order_release);
      ++idle_;
    }
  }

  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<std::shared_ptr<Started>> waiting_;
  std::map<Place, std::deque<std::shared_ptr<Started>>> given_up_;
  std::size_t idle_ = 0;  // threads that wait for nothing
};

struct GlooState {
  std::shared_ptr<gloo::rendezvous::Context> connections;
  Waiters waiters;
};

GlooState& gloo_state() {
  static auto* state = new GlooState;  // never destroyed: the program may end in any order
  return *state;
}

/// Runs `body` and describes what it throws.
template <class Body>
int guarded(MeshardGlooError* error, Body body) {
  BlockedSignals blocked(false);
  try {
    body(gloo_state());
    return 0;
  } catch (const std::exception& failure) {
    std::snprintf(error->text, sizeof error->text, "%s", words_of(failure).c_str());
    return -1;
  }
}

/// The store of the caller, as Gloo wants it.
class CallersStore : public gloo::rendezvous::Store {
 public:
  explicit CallersStore(const MeshardGlooStore& store) : store_(store) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    if (store_.put(store_.context, key.c_str(), data.data(), data.size()) != 0)
      throw std::runtime_error("cannot put " + key + " into the store of the run");
  }
  std::vector<char> get(const std::string& key) override {
    std::vector<char> value;
    auto receive = [](void* into, const void* data, std::uint64_t size) {
      auto* bytes = static_cast<const char*>(data);
      static_cast<std::vector<char>*>(into)->assign(bytes, bytes + size);
    };
    if (store_.get(store_.context, key.c_str(), receive, &value) != 0)
      throw std::runtime_error(key + " did not come through the store of the run");
    return value;
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const std::string& key : keys) (void)get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override {
    wait(keys);
  }

 private:
  const MeshardGlooStore& store_;
};

int connect(MeshardGlooMember member, MeshardGlooError* error) {
  return guarded(error, [&](GlooState& state) {
    BlockedSignals blocked(true);  // in Gloo's thread
    tcp::attr place;
    if (member.interface_name != nullptr)
      place.iface = member.interface_name;
    else
      place.hostname = member.host;
    std::shared_ptr<gloo::transport::Device> device = tcp::CreateDevice(place);
    auto connections = std::make_shared<gloo::rendezvous::Context>(member.rank, member.size);
    connections->setTimeout(std::chrono::milliseconds(member.connect_milliseconds));
    CallersStore store(member.store);
    connections->connectFullMesh(store, device);
    state.connections = std::move(connections);
  });
}

int disconnect(MeshardGlooError* error) {
  return guarded(error, [](GlooState& state) {
    if (state.connections) state.connections->closeConnections();
  });
}

int library_name(char* name, std::size_t size, MeshardGlooError*) {
  std::snprintf(name, size, "Gloo %d.%d.%d", GLOO_VERSION_MAJOR, GLOO_VERSION_MINOR,
                GLOO_VERSION_PATCH);
  return 0;
}

int exchange(const MeshardGlooMessage* sent, std::uint64_t sent_count,
             const MeshardGlooMessage* received, std::uint64_t received_count,
             MeshardGlooError* error) {
  return guarded(error, [&](GlooState& state) {
    std::vector<Message> receives, sends;
    receives.reserve(received_count);
    sends.reserve(sent_count);
    for (const MeshardGlooMessage* each = received; each != received + received_count; ++each) {
      receives.push_back(state.connections->createUnboundBuffer(each->data, each->bytes));
      receives.back()->recv(each->process, each->slot, 0, each->bytes);
    }
    for (const MeshardGlooMessage* each = sent; each != sent + sent_count; ++each) {
      sends.push_back(state.connections->createUnboundBuffer(each->data, each->bytes));
      sends.back()->send(each->process, each->slot, 0, each->bytes);
    }
    for (const Message& each : receives) each->waitRecv(nullptr, kNoLimit);
    for (const Message& each : sends) each->waitSend(nullptr, kNoLimit);
  });
}

int start_message(MeshardGlooMessage message, int sends, void** started, MeshardGlooError* error) {
  return guarded(error, [&](GlooState& state) {
    const Place place(message.process, message.slot);
    std::shared_ptr<Started> own;
    if (!sends) own = state.waiters.adopt(place, message.data, message.bytes);
    if (!own) {
      own = std::make_shared<Started>();
      own->sends = sends != 0;
      own->place = place;
      own->target = message.data;
      own->bytes = message.bytes;
      if (!sends) own->memory.resize(message.bytes);
      void* data = sends ? message.data : own->memory.data();
      own->message = state.connections->createUnboundBuffer(data, message.bytes);
      if (sends)
        own->message->send(message.process, message.slot, 0, message.bytes);
      else
        own->message->recv(message.process, message.slot, 0, message.bytes);
      state.waiters.add(own);
    }
    *started = new std::shared_ptr<Started>(std::move(own));
  });
}

int message_ended(void* started, int* ended, MeshardGlooError* error) {
  auto* handle = static_cast<std::shared_ptr<Started>*>(started);
  *ended = (*handle)->ended.load(std::memory_order_acquire) ? 1 : 0;
  if (!*ended) return 0;
  std::unique_ptr<std::shared_ptr<Started>> gone(handle);
  std::snprintf(error->text, sizeof error->text, "%s", (*gone)->failure.c_str());
  return (*gone)->failure.empty() ? 0 : -1;
}

int cancel_receive(void* started, MeshardGlooError*) {
  std::unique_ptr<std::shared_ptr<Started>> gone(static_cast<std::shared_ptr<Started>*>(started));
  gloo_state().waiters.give_up(*gone);
  return 0;
}

constexpr MeshardGlooApi kApi = {
    .version = MESHARD_GLOO_VERSION,
    .struct_size = sizeof(MeshardGlooApi),
    .connect = connect,
    .disconnect = disconnect,
    .library_name = library_name,
    .exchange = exchange,
    .start_message = start_message,
    .message_ended = message_ended,
    .cancel_receive = cancel_receive,
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const MeshardGlooApi* meshard_gloo_api(void) {
  return &kApi;
}
