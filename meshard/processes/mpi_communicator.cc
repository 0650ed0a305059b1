// Tested in tests/processes/check_mpi.py.
#include "meshard/processes/mpi_communicator.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/base/file_cache.h"
#include "meshard/processes/mpi_abi.h"
#include "meshard/processes/narrow_reduction.h"

namespace meshard {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMpiLibrary = "libmeshard_mpi.so";

void add_library_places(const fs::path& file, std::vector<fs::path>& places) {
  fs::path folder = file.parent_path();
  places.push_back(folder / kMpiLibrary);
  places.push_back(folder / ".." / "lib" / kMpiLibrary);
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

// Never closed: MPI has threads.
Result<const MeshardMpiApi*> open_library(const std::string& path) {
  MESHARD_RETURN_IF_ERROR(check_file_trust(path));
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Error(ErrorCode::kUnavailable, cat("[processes] cannot load ", path, ": ", ::dlerror()));
  auto function = reinterpret_cast<MeshardMpiApiFunction>(::dlsym(library, "meshard_mpi_api"));
  const MeshardMpiApi* api = function != nullptr ? function() : nullptr;
  if (api == nullptr || api->version != MESHARD_MPI_VERSION ||
      api->struct_size < sizeof(MeshardMpiApi))
    return Error(
        ErrorCode::kFailedPrecondition,
        cat("[processes] ", path, " belongs to another version of meshard: its interface is ",
            api != nullptr ? cat("version ", api->version) : std::string("unknown"),
            ", this library wants version ", MESHARD_MPI_VERSION));
  return api;
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

Result<std::string> find_mpi_library() {
  if (const char* named = ::secure_getenv("MESHARD_MPI_LIBRARY");
      named != nullptr && *named != '\0') {
    if (::access(named, R_OK) == 0) return std::string(named);
    return Error(ErrorCode::kNotFound,
                 cat("[processes] MESHARD_MPI_LIBRARY=", named, " cannot be read"));
  }
  std::vector<fs::path> places;
  std::error_code ignored;
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&find_mpi_library), &info) != 0 &&
      info.dli_fname != nullptr)
    add_library_places(fs::absolute(info.dli_fname, ignored), places);
  add_library_places(fs::read_symlink("/proc/self/exe", ignored), places);
#ifdef MESHARD_LIBRARY_FOLDER
  places.push_back(fs::path(MESHARD_LIBRARY_FOLDER) / kMpiLibrary);
#endif
  std::string searched;
  for (const fs::path& place : places) {
    if (fs::is_regular_file(place, ignored)) return place.lexically_normal().string();
    searched += cat("\n  ", place.lexically_normal().string());
  }
  return Error(
      ErrorCode::kNotFound,
      cat("[processes] cannot find libmeshard_mpi.so, which meshard builds where CMake finds "
          "MPI (Debian: libopenmpi-dev); set MESHARD_MPI_LIBRARY to its path. Searched",
          searched));
}

Result<std::unique_ptr<MpiCommunicator>> MpiCommunicator::open(int threads) {
  MESHARD_ASSIGN_OR_RETURN(std::string path, find_mpi_library());
  MESHARD_ASSIGN_OR_RETURN(const MeshardMpiApi* api, open_library(path));
  MeshardMpiError error{};
  int rank = 0, size = 0;
  MESHARD_RETURN_IF_ERROR(
      done(api->initialize(threads, &rank, &size, &error), error, "initialization"));
  return std::unique_ptr<MpiCommunicator>(new MpiCommunicator(api, rank, size));
}

Result<MpiLibrary> installed_mpi_library() {
  MESHARD_ASSIGN_OR_RETURN(std::string path, find_mpi_library());
  MESHARD_ASSIGN_OR_RETURN(const MeshardMpiApi* api, open_library(path));
  MESHARD_ASSIGN_OR_RETURN(std::string name, name_of(*api));
  std::replace(name.begin(), name.end(), '\n', ' ');
  return MpiLibrary{std::move(path), std::move(name)};
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
