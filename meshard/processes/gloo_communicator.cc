// Tested in tests/processes/check_gloo.py.
#include "meshard/processes/gloo_communicator.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/processes/gloo_abi.h"
#include "meshard/processes/internal/communication_library.h"
#include "meshard/processes/internal/handshake.h"
#include "meshard/processes/narrow_reduction.h"

namespace meshard {
namespace {

constexpr internal::CommunicationLibrary kGlooLibrary{
    .file = "libmeshard_gloo.so",
    .variable = "MESHARD_GLOO_LIBRARY",
    .function = "meshard_gloo_api",
    .wants = "Gloo (Debian: libgloo-dev, or libgloo0 to run only)"};

// Slots: which messages may meet. The upper bits are the kind of a message.
constexpr std::uint64_t kCollectives = std::uint64_t{1} << 60;
constexpr std::uint64_t kExchanged = std::uint64_t{2} << 60;
constexpr std::uint64_t kStarted = std::uint64_t{3} << 60;

/// Messages of different sizes never meet: Gloo ends the process that receives more than it asked
/// for. In a program whose processes are out of step, they wait instead, and are named.
std::uint64_t slot_of(std::uint64_t kind, std::uint64_t id, std::size_t bytes) {
  std::uint64_t mixed = (id + 1) * 0x9E3779B97F4A7C15U ^ (bytes + 1) * 0xC2B2AE3D27D4EB4FU;
  mixed ^= mixed >> 29;
  return kind + (mixed & ((std::uint64_t{1} << 60) - 1));
}

/// Members call the collectives of all their groups in the same order, so a slot could serve all of
/// them. With one for each group, a program that breaks this hangs instead of mixing values.
std::uint64_t slot_of_group(std::span<const int> group, std::size_t bytes) {
  std::uint64_t hash = 0;
  for (int rank : group) hash = hash * 31 + static_cast<std::uint64_t>(rank) + 1;
  return slot_of(kCollectives, hash, bytes);
}

Result<const MeshardGlooApi*> open_gloo(std::string& path) {
  MESHARD_ASSIGN_OR_RETURN(path, internal::find_communication_library(kGlooLibrary));
  MESHARD_ASSIGN_OR_RETURN(const void* table,
                           internal::open_communication_library(
                               kGlooLibrary, path, MESHARD_GLOO_VERSION, sizeof(MeshardGlooApi)));
  return static_cast<const MeshardGlooApi*>(table);
}

Result<void> gloo_done(int status, const MeshardGlooError& error, std::string_view call) {
  if (status == 0) return {};
  return Error(ErrorCode::kUnavailable, cat("[processes] Gloo failed in ", call, ": ", error.text));
}

Result<std::string> gloo_name(const MeshardGlooApi& api) {
  MeshardGlooError error{};
  std::string name(1024, '\0');
  MESHARD_RETURN_IF_ERROR(
      gloo_done(api.library_name(name.data(), name.size(), &error), error, "library_name"));
  name.resize(std::strlen(name.c_str()));
  return name;
}

template <class Tagged>
std::uint64_t slot_of_tag(std::uint64_t kind, const Tagged& message) {
  return slot_of(kind, static_cast<std::uint64_t>(message.tag), message.bytes);
}

std::byte* at(void* data, std::size_t offset) { return static_cast<std::byte*>(data) + offset; }
/// What is sent is only read.
void* at(const void* data, std::size_t offset) {
  return static_cast<std::byte*>(const_cast<void*>(data)) + offset;
}

void copy_block(void* out, const void* in, std::size_t bytes) {
  if (bytes != 0 && out != in) std::memcpy(out, in, bytes);
}

/// The functions of the caller's store, and what failed in them.
struct StoreAccess {
  Store& store;
  std::chrono::milliseconds limit;
  std::optional<Error> failure = {};

  int take(const Result<void>& outcome) {
    if (outcome.ok()) return 0;
    failure = outcome.error();
    return -1;
  }
};

MeshardGlooStore functions_of(StoreAccess& access) {
  auto put = [](void* context, const char* key, const void* data, std::uint64_t size) {
    auto* own = static_cast<StoreAccess*>(context);
    return own->take(own->store.put(cat("gloo/", key), {static_cast<const char*>(data), size}));
  };
  auto get = [](void* context, const char* key, void (*receive)(void*, const void*, std::uint64_t),
                void* into) {
    auto* own = static_cast<StoreAccess*>(context);
    Result<std::string> value = own->store.get(cat("gloo/", key), own->limit);
    if (!value.ok()) return own->take(value.error());
    receive(into, value->data(), value->size());
    return 0;
  };
  return {.context = &access, .put = put, .get = get};
}

}  // namespace

Result<GlooLibrary> installed_gloo_library() {
  GlooLibrary library;
  MESHARD_ASSIGN_OR_RETURN(const MeshardGlooApi* api, open_gloo(library.path));
  MESHARD_ASSIGN_OR_RETURN(library.name, gloo_name(*api));
  return library;
}

Result<std::unique_ptr<GlooCommunicator>> GlooCommunicator::open(GlooOptions options,
                                                                 Store& store) {
  std::string path;
  MESHARD_ASSIGN_OR_RETURN(const MeshardGlooApi* api, open_gloo(path));
  StoreAccess access{store, options.limit};
  const char* interface_name = ::secure_getenv("GLOO_SOCKET_IFNAME");
  if (interface_name != nullptr && *interface_name == '\0') interface_name = nullptr;
  MeshardGlooError error{};
  int status =
      api->connect({.rank = options.rank,
                    .size = options.size,
                    .host = options.host.c_str(),
                    .interface_name = interface_name,
                    .connect_milliseconds = static_cast<std::uint64_t>(options.limit.count()),
                    .store = functions_of(access)},
                   &error);
  if (status != 0 && access.failure) return *access.failure;
  MESHARD_RETURN_IF_ERROR(gloo_done(status, error,
                                    cat("connecting process ", options.rank, " at ",
                                        interface_name ? interface_name : options.host.c_str())));
  auto made = std::unique_ptr<GlooCommunicator>(new GlooCommunicator(api, std::move(options)));
  MESHARD_RETURN_IF_ERROR(made->prove_secret());
  return made;
}

/// Each process sends each other a challenge, and answers with a code of it: whoever has connected
/// to the port of a process before the right one is refused.
Result<void> GlooCommunicator::prove_secret() {
  constexpr std::size_t kCode = 32;
  const int size = options_.size, rank = options_.rank;
  const auto members = static_cast<std::size_t>(size);
  MESHARD_ASSIGN_OR_RETURN(std::string challenges, internal::random_bytes(members * kCode));
  std::string received(members * kCode, '\0'), answers = received, proofs = received;
  std::vector<int> all(members);
  std::iota(all.begin(), all.end(), 0);
  MESHARD_RETURN_IF_ERROR(all_to_all(all, challenges.data(), received.data(), kCode));
  auto code = [&](const std::string& from, int other, int prover) {
    return internal::hmac_sha256(
        options_.secret,
        cat("gloo ", prover, ' ', from.substr(static_cast<std::size_t>(other) * kCode, kCode)));
  };
  for (int other = 0; other < size; ++other)
    answers.replace(static_cast<std::size_t>(other) * kCode, kCode, code(received, other, rank));
  MESHARD_RETURN_IF_ERROR(all_to_all(all, answers.data(), proofs.data(), kCode));
  for (int other = 0; other < size; ++other)
    if (other != rank &&
        !internal::equal_codes(proofs.substr(static_cast<std::size_t>(other) * kCode, kCode),
                               code(challenges, other, other)))
      return Error(ErrorCode::kUnauthenticated, cat("[processes] the program connected as process ",
                                                    other, " does not know the secret of the run"));
  return {};
}

Result<void> GlooCommunicator::finalize() {
  std::vector<int> all(static_cast<std::size_t>(options_.size));
  std::iota(all.begin(), all.end(), 0);
  std::vector<char> here(all.size());
  char own = 1;
  // What was sent to a process that closes its end first would be lost.
  MESHARD_RETURN_IF_ERROR(all_gather(all, &own, here.data(), 1));
  MeshardGlooError error{};
  return gloo_done(api_->disconnect(&error), error, "finalization");
}

Result<std::string> GlooCommunicator::library_name() const { return gloo_name(*api_); }

Result<void> GlooCommunicator::move(std::span<const MeshardGlooMessage> sent,
                                    std::span<const MeshardGlooMessage> received,
                                    std::string_view what) {
  MeshardGlooError error{};
  int status = api_->exchange(sent.data(), sent.size(), received.data(), received.size(), &error);
  if (status != 0 && options_.before_error) options_.before_error();
  return gloo_done(status, error, what);
}

Result<void> GlooCommunicator::call(std::span<const int> group, const GroupCall& call,
                                    const void* in, void* out) {
  using Kind = GroupCall::Kind;
  MESHARD_RETURN_IF_ERROR(check_call(group, call, options_.rank, options_.size));
  if (group.size() == 1) return copy_block(out, in, call.bytes()), Result<void>();
  if (call.count == 0) return {};
  switch (call.kind) {
    case Kind::kAllReduce:
      return all_reduce_by_exchange(*this, group, call.op, call.type, in, out, call.count);
    case Kind::kReduceScatter:
      return reduce_scatter_by_exchange(*this, group, call.op, call.type, in, out, call.count);
    case Kind::kAllGather:
    case Kind::kAllToAll: return all_gather_or_to_all(group, call, in, out);
    case Kind::kBroadcast: break;
  }
  return broadcast_by_tree(group, call, out);
}

Result<void> GlooCommunicator::all_gather_or_to_all(std::span<const int> group,
                                                    const GroupCall& call, const void* in,
                                                    void* out) {
  const bool gathers = call.kind == GroupCall::Kind::kAllGather;
  const std::size_t bytes = call.bytes();
  const std::uint64_t slot = slot_of_group(group, bytes);
  const auto own = static_cast<std::size_t>(std::ranges::find(group, rank()) - group.begin());
  std::vector<MeshardGlooMessage> sent, received;
  for (std::size_t step = 1; step < group.size(); ++step) {  // not all to the same one at once
    const std::size_t to = (own + step) % group.size();
    const std::size_t from = (own + group.size() - step) % group.size();
    sent.push_back({group[to], slot, at(in, gathers ? 0 : to * bytes), bytes});
    received.push_back({group[from], slot, at(out, from * bytes), bytes});
  }
  copy_block(at(out, own * bytes), at(in, gathers ? 0 : own * bytes), bytes);
  return move(sent, received, gathers ? "all-gather" : "all-to-all");
}

/// By a binomial tree: in each round, everyone that has the data sends it to one more.
Result<void> GlooCommunicator::broadcast_by_tree(std::span<const int> group, const GroupCall& call,
                                                 void* data) {
  const std::size_t members = group.size();
  const auto position = [&](int rank) {
    return static_cast<std::size_t>(std::ranges::find(group, rank) - group.begin());
  };
  const std::size_t root = position(call.root);
  const std::size_t own = (position(rank()) + members - root) % members;  // 0 is the root
  const std::uint64_t slot = slot_of_group(group, call.bytes());
  auto message = [&](std::size_t other) {
    return MeshardGlooMessage{group[(other + root) % members], slot, data, call.bytes()};
  };
  std::size_t round = 1;
  if (own != 0) {
    while (round * 2 <= own) round *= 2;  // the highest bit of `own`: who sent it is without it
    MeshardGlooMessage from = message(own - round);
    MESHARD_RETURN_IF_ERROR(move({}, {&from, 1}, "broadcast"));
    round *= 2;
  }
  std::vector<MeshardGlooMessage> sent;
  for (; own + round < members; round *= 2) sent.push_back(message(own + round));
  return sent.empty() ? Result<void>() : move(sent, {}, "broadcast");
}

Result<void> GlooCommunicator::permute(int to, int from, const void* in, void* out,
                                       std::size_t bytes) {
  MESHARD_RETURN_IF_ERROR(check_permute(to, from, options_.rank, options_.size));
  if (to == rank()) return copy_block(out, in, bytes), Result<void>();
  if (from < 0 && bytes != 0 && out != nullptr) std::memset(out, 0, bytes);
  if (bytes == 0) return {};
  std::vector<MeshardGlooMessage> sent, received;
  const std::uint64_t slot = slot_of_group({}, bytes);
  if (to >= 0) sent.push_back({to, slot, at(in, 0), bytes});
  if (from >= 0) received.push_back({from, slot, out, bytes});
  return move(sent, received, "permute");
}

Result<void> GlooCommunicator::exchange(std::span<const OutgoingMessage> sent,
                                        std::span<const IncomingMessage> received) {
  std::vector<MeshardGlooMessage> out, in;
  for (const OutgoingMessage& each : sent) {
    MESHARD_RETURN_IF_ERROR(check_message(each.process, each.tag, rank(), size()));
    out.push_back({each.process, slot_of_tag(kExchanged, each), at(each.data, 0), each.bytes});
  }
  for (const IncomingMessage& each : received) {
    MESHARD_RETURN_IF_ERROR(check_message(each.process, each.tag, rank(), size()));
    in.push_back({each.process, slot_of_tag(kExchanged, each), each.data, each.bytes});
  }
  return move(out, in, "exchange");
}

namespace {

class StartedByGloo final : public StartedMessage {
 public:
  StartedByGloo(const MeshardGlooApi* api, const GlooOptions& options, void* raw)
      : api_(api), options_(options), raw_(raw) {}
  Result<bool> has_ended() override {
    MeshardGlooError error{};
    int ended = 0;
    int status = api_->message_ended(raw_, &ended, &error);
    if (status != 0 && options_.before_error) options_.before_error();
    MESHARD_RETURN_IF_ERROR(gloo_done(status, error, "a message"));
    return ended != 0;
  }
  void cancel() override {
    MeshardGlooError error{};
    (void)api_->cancel_receive(raw_, &error);
  }

 private:
  const MeshardGlooApi* api_;
  const GlooOptions& options_;
  void* raw_;
};

Result<std::unique_ptr<StartedMessage>> started_by_gloo(const MeshardGlooApi* api,
                                                        const GlooOptions& options,
                                                        MeshardGlooMessage message, bool sends) {
  MeshardGlooError error{};
  void* raw = nullptr;
  int status = api->start_message(message, sends ? 1 : 0, &raw, &error);
  if (status != 0 && options.before_error) options.before_error();
  MESHARD_RETURN_IF_ERROR(gloo_done(status, error, "a message"));
  return std::unique_ptr<StartedMessage>(new StartedByGloo(api, options, raw));
}

}  // namespace

Result<std::unique_ptr<StartedMessage>> GlooCommunicator::start_send(
    const OutgoingMessage& message) {
  MESHARD_RETURN_IF_ERROR(check_message(message.process, message.tag, rank(), size()));
  return started_by_gloo(
      api_, options_,
      {message.process, slot_of_tag(kStarted, message), at(message.data, 0), message.bytes}, true);
}

Result<std::unique_ptr<StartedMessage>> GlooCommunicator::start_receive(
    const IncomingMessage& message) {
  MESHARD_RETURN_IF_ERROR(check_message(message.process, message.tag, rank(), size()));
  return started_by_gloo(
      api_, options_,
      {message.process, slot_of_tag(kStarted, message), message.data, message.bytes}, false);
}

int GlooCommunicator::largest_tag() const { return std::numeric_limits<int>::max(); }

}  // namespace meshard
