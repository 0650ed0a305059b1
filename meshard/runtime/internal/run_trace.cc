// Tested in tests/processes/check_across.py.
#include "meshard/runtime/internal/run_trace.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/processes/clock_offset.h"

namespace meshard::internal {
namespace {

// Values of the store have at most 256 MiB.
constexpr std::size_t kPiece = std::size_t{32} << 20;

double in_microseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

// Sends when process 0 asks, so that it has the events of one process at a time in the store.
Result<void> send_trace(Store& store, const std::string& key, const std::string& bytes) {
  MESHARD_RETURN_IF_ERROR(store.get(key + "/asked"));
  std::size_t pieces = (bytes.size() + kPiece - 1) / kPiece;
  for (std::size_t i = 0; i < pieces; ++i)
    MESHARD_RETURN_IF_ERROR(store.put(cat(key, "/", i), bytes.substr(i * kPiece, kPiece)));
  return store.put(key + "/pieces", cat(pieces));
}

Result<ProcessTrace> receive_trace(Store& store, const std::string& key) {
  MESHARD_RETURN_IF_ERROR(store.put(key + "/asked", ""));
  MESHARD_ASSIGN_OR_RETURN(std::string count, store.get(key + "/pieces"));
  std::size_t pieces = 0;
  std::from_chars(count.data(), count.data() + count.size(), pieces);
  std::string bytes;
  for (std::size_t i = 0; i < pieces; ++i) {
    MESHARD_ASSIGN_OR_RETURN(std::string piece, store.get(cat(key, "/", i)));
    bytes += piece;
    MESHARD_RETURN_IF_ERROR(store.put(cat(key, "/", i), ""));  // frees its memory
  }
  return ProcessTrace::from_bytes(bytes);
}

Result<void> collect_and_write(const Processes& run, const std::string& prefix, ProcessTrace own,
                               const std::string& path) {
  std::vector<ProcessTrace> all;
  all.push_back(std::move(own));
  for (int rank = 1; rank < run.size(); ++rank) {
    MESHARD_ASSIGN_OR_RETURN(ProcessTrace trace, receive_trace(run.store(), cat(prefix, rank)));
    all.push_back(std::move(trace));
  }
  return write_trace_file(path, chrome_trace_of_run(all));
}

}  // namespace

Result<void> write_trace_of_run(const Processes& run, ProcessTrace trace, const std::string& path) {
  static std::atomic<int> calls{0};
  std::string prefix = cat("meshard/trace/", calls++, "/"), result = prefix + "result";
  const ProcessInfo& self = run.members()[static_cast<std::size_t>(run.rank())];
  trace.rank = run.rank();
  trace.host = self.host;
  trace.pid = self.pid;
  MESHARD_ASSIGN_OR_RETURN(ClockOffset clock, clock_offset(run));
  trace.begin += in_microseconds(clock.offset);
  trace.precision = in_microseconds(clock.precision);
  if (run.rank() != 0) {
    MESHARD_RETURN_IF_ERROR(send_trace(run.store(), cat(prefix, run.rank()), trace.to_bytes()));
    MESHARD_ASSIGN_OR_RETURN(std::string failure, run.store().get(result));
    if (failure.empty()) return {};
    return Error(ErrorCode::kUnavailable, cat("[trace] in process 0: ", failure));
  }
  Result<void> written = collect_and_write(run, prefix, std::move(trace), path);
  MESHARD_RETURN_IF_ERROR(run.store().put(result, written.ok() ? "" : written.error().message()));
  return written;
}

Result<void> write_trace_file(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  int reason = errno;
  if (file && std::fclose(file) != 0 && written) {
    written = false;
    reason = errno;
  }
  if (written) return {};
  return Error(ErrorCode::kUnavailable,
               cat("[trace] cannot write ", path, ": ", std::strerror(reason)));
}

}  // namespace meshard::internal
