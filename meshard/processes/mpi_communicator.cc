// Tested in tests/processes/check_mpi.py.
#include "meshard/processes/mpi_communicator.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/processes/internal/communication_library.h"
#include "meshard/processes/mpi_abi.h"
#include "meshard/processes/narrow_reduction.h"

namespace meshard {
namespace {

constexpr internal::CommunicationLibrary kMpiLibrary{.file = "libmeshard_mpi.so",
                                                     .variable = "MESHARD_MPI_LIBRARY",
                                                     .function = "meshard_mpi_api",
                                                     .wants = "MPI (Debian: libopenmpi-dev)"};
constexpr internal::CommunicationLibrary kMpichLibrary{.file = "libmeshard_mpich.so",
                                                       .variable = "MESHARD_MPI_LIBRARY",
                                                       .function = "meshard_mpi_api",
                                                       .wants = "MPICH (Debian: libmpich-dev)"};

/// By the name that the library has for itself.
MpiFamily family_of(std::string_view name) {
  if (name.starts_with("Open MPI")) return MpiFamily::kOpenMpi;
  for (std::string_view mpich : {"MPICH", "Intel(R) MPI", "MVAPICH"})
    if (name.starts_with(mpich)) return MpiFamily::kMpich;
  return MpiFamily::kAny;
}

std::string_view words_of(MpiFamily family) {
  return family == MpiFamily::kOpenMpi ? "Open MPI" : "MPICH or Intel MPI";
}

Error mpi_error(const MeshardMpiError& error, std::string_view call) {
  return Error(ErrorCode::kUnavailable, cat("[processes] MPI failed in ", call, ": ", error.text));
}

Result<void> done(int status, const MeshardMpiError& error, std::string_view call) {
  if (status != 0) return mpi_error(error, call);
  return {};
}

/// The number of a type that MPI combines itself.
MeshardMpiType mpi_type(DType type) {
  switch (type) {
    case DType::bool_: return kMeshardMpiBool;
    case DType::i8: return kMeshardMpiI8;
    case DType::i16: return kMeshardMpiI16;
    case DType::i32: return kMeshardMpiI32;
    case DType::i64: return kMeshardMpiI64;
    case DType::u8: return kMeshardMpiU8;
    case DType::u16: return kMeshardMpiU16;
    case DType::u32: return kMeshardMpiU32;
    case DType::u64: return kMeshardMpiU64;
    case DType::f32: return kMeshardMpiF32;
    case DType::f64: return kMeshardMpiF64;
    case DType::c64: return kMeshardMpiC64;
    default: return kMeshardMpiC128;
  }
}

static_assert(static_cast<int>(Reduction::kXor) == kMeshardMpiXor);

/// A group of one needs no MPI.
void copy_own(void* out, const void* in, std::size_t bytes) {
  if (bytes != 0 && out != in) std::memcpy(out, in, bytes);
}

Result<const MeshardMpiApi*> open_library(const std::string& path) {
  MESHARD_ASSIGN_OR_RETURN(const void* table,
                           internal::open_communication_library(
                               kMpiLibrary, path, MESHARD_MPI_VERSION, sizeof(MeshardMpiApi)));
  return static_cast<const MeshardMpiApi*>(table);
}

Result<std::string> name_of(const MeshardMpiApi& api) {
  MeshardMpiError error{};
  std::string name(8192, '\0');
  MESHARD_RETURN_IF_ERROR(
      done(api.library_name(name.data(), name.size(), &error), error, "library_name"));
  name.resize(std::strlen(name.c_str()));
  return name;
}

}  // namespace

Result<std::string> find_mpi_library(MpiFamily family) {
  const bool is_mpich = family == MpiFamily::kMpich;
  Result<std::string> best =
      internal::find_communication_library(is_mpich ? kMpichLibrary : kMpiLibrary);
  if (best.ok()) return best;
  Result<std::string> other =
      internal::find_communication_library(is_mpich ? kMpiLibrary : kMpichLibrary);
  return other.ok() ? other : best;
}

Result<std::unique_ptr<MpiCommunicator>> MpiCommunicator::open(int threads, MpiFamily family) {
  MESHARD_ASSIGN_OR_RETURN(MpiLibrary library, installed_mpi_library(family));
  if (family != MpiFamily::kAny && library.family != MpiFamily::kAny && family != library.family)
    return Error(ErrorCode::kFailedPrecondition,
                 cat("[processes] the processes were started by a launcher of ", words_of(family),
                     ", but ", library.path, " was built for ", library.name,
                     ": use the launcher of that, or build meshard where CMake finds ",
                     family == MpiFamily::kMpich ? "MPICH (Debian: libmpich-dev)"
                                                 : "Open MPI (Debian: libopenmpi-dev)"));
  MESHARD_ASSIGN_OR_RETURN(const MeshardMpiApi* api, open_library(library.path));
  MeshardMpiError error{};
  int rank = 0, size = 0;
  MESHARD_RETURN_IF_ERROR(
      done(api->initialize(threads, &rank, &size, &error), error, "initialization"));
  return std::unique_ptr<MpiCommunicator>(new MpiCommunicator(api, rank, size));
}

Result<MpiLibrary> installed_mpi_library(MpiFamily family) {
  MESHARD_ASSIGN_OR_RETURN(std::string path, find_mpi_library(family));
  MESHARD_ASSIGN_OR_RETURN(const MeshardMpiApi* api, open_library(path));
  MESHARD_ASSIGN_OR_RETURN(std::string name, name_of(*api));
  name.resize(std::min(name.find('\n'), name.size()));  // MPICH's goes on with how it was built
  std::replace(name.begin(), name.end(), '\t', ' ');
  const MpiFamily found = family_of(name);
  return MpiLibrary{std::move(path), std::move(name), found};
}

Result<void> MpiCommunicator::finalize() {
  MeshardMpiError error{};
  return done(api_->finalize(&error), error, "finalization");
}

Result<std::string> MpiCommunicator::library_name() const { return name_of(*api_); }

void MpiCommunicator::set_largest_message(std::size_t bytes) { api_->set_largest_message(bytes); }

Result<void> MpiCommunicator::call(std::span<const int> group, const GroupCall& call,
                                   const void* in, void* out) {
  using Kind = GroupCall::Kind;
  MESHARD_RETURN_IF_ERROR(check_call(group, call, rank_, size_));
  if (group.size() == 1) return copy_own(out, in, call.bytes()), Result<void>();
  const bool is_narrow = is_narrow_float(call.type);
  const MeshardMpiGroup ranks{group.data(), static_cast<int>(group.size())};
  const auto op = static_cast<MeshardMpiReduction>(call.op);
  MeshardMpiError error{};
  switch (call.kind) {
    case Kind::kAllReduce:
      if (is_narrow)
        return all_reduce_by_exchange(*this, group, call.op, call.type, in, out, call.count);
      return done(api_->all_reduce(ranks, op, mpi_type(call.type), in, out, call.count, &error),
                  error, "all-reduce");
    case Kind::kReduceScatter:
      if (is_narrow)
        return reduce_scatter_by_exchange(*this, group, call.op, call.type, in, out, call.count);
      return done(api_->reduce_scatter(ranks, op, mpi_type(call.type), in, out, call.count, &error),
                  error, "reduce-scatter");
    case Kind::kAllGather:
      return done(api_->all_gather(ranks, in, out, call.count, &error), error, "all-gather");
    case Kind::kAllToAll:
      return done(api_->all_to_all(ranks, in, out, call.count, &error), error, "all-to-all");
    case Kind::kBroadcast: break;
  }
  auto root = static_cast<int>(std::ranges::find(group, call.root) - group.begin());
  return done(api_->broadcast(ranks, root, out, call.count, &error), error, "broadcast");
}

Result<void> MpiCommunicator::permute(int to, int from, const void* in, void* out,
                                      std::size_t bytes) {
  MESHARD_RETURN_IF_ERROR(check_permute(to, from, rank_, size_));
  if (to == rank_) return copy_own(out, in, bytes), Result<void>();
  if (from < 0 && bytes != 0 && out != nullptr) std::memset(out, 0, bytes);
  MeshardMpiError error{};
  return done(api_->permute(to, from, in, out, bytes, &error), error, "permute");
}

Result<void> MpiCommunicator::exchange(std::span<const OutgoingMessage> sent,
                                       std::span<const IncomingMessage> received) {
  std::vector<MeshardMpiMessage> out, in;
  for (const OutgoingMessage& each : sent) {
    MESHARD_RETURN_IF_ERROR(check_message(each.process, each.tag, rank_, size_));
    out.push_back({each.process, each.tag, const_cast<void*>(each.data), each.bytes});
  }
  for (const IncomingMessage& each : received) {
    MESHARD_RETURN_IF_ERROR(check_message(each.process, each.tag, rank_, size_));
    in.push_back({each.process, each.tag, each.data, each.bytes});
  }
  MeshardMpiError error{};
  return done(api_->exchange(out.data(), out.size(), in.data(), in.size(), &error), error,
              "exchange");
}

namespace {

class StartedByMpi final : public StartedMessage {
 public:
  StartedByMpi(const MeshardMpiApi* api, void* raw) : api_(api), raw_(raw) {}
  Result<bool> has_ended() override {
    MeshardMpiError error{};
    int ended = 0;
    MESHARD_RETURN_IF_ERROR(done(api_->message_ended(raw_, &ended, &error), error, "a message"));
    return ended != 0;
  }
  void cancel() override {
    MeshardMpiError error{};
    (void)api_->cancel_receive(raw_, &error);
  }

 private:
  const MeshardMpiApi* api_;
  void* raw_;
};

Result<std::unique_ptr<StartedMessage>> started(const MeshardMpiApi* api, MeshardMpiMessage message,
                                                bool sends) {
  MeshardMpiError error{};
  void* raw = nullptr;
  MESHARD_RETURN_IF_ERROR(
      done(api->start_message(message, sends ? 1 : 0, &raw, &error), error, "a message"));
  return std::unique_ptr<StartedMessage>(new StartedByMpi(api, raw));
}

}  // namespace

Result<std::unique_ptr<StartedMessage>> MpiCommunicator::start_send(
    const OutgoingMessage& message) {
  MESHARD_RETURN_IF_ERROR(check_message(message.process, message.tag, rank_, size_));
  return started(
      api_, {message.process, message.tag, const_cast<void*>(message.data), message.bytes}, true);
}

Result<std::unique_ptr<StartedMessage>> MpiCommunicator::start_receive(
    const IncomingMessage& message) {
  MESHARD_RETURN_IF_ERROR(check_message(message.process, message.tag, rank_, size_));
  return started(api_, {message.process, message.tag, message.data, message.bytes}, false);
}

int MpiCommunicator::largest_tag() const { return api_->largest_tag(); }

}  // namespace meshard
