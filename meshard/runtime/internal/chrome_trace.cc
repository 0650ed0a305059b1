#include "meshard/runtime/internal/chrome_trace.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/json_writer.h"

namespace meshard::internal {
namespace {

using Track = TraceEvent::Track;

// Processes of the trace of one process, which group tracks of the same kind.
constexpr int kHostProcess = 1, kDeviceProcess = 2, kTransferProcess = 3;
// Transfers of one device may overlap and then need separate tracks.
constexpr int kTracksOfADevice = 1000;

// Writes events and the names of their tracks.
class TraceWriter {
 public:
  TraceWriter() { json_.begin_object().key("traceEvents").begin_array(); }

  void name_process(int process, std::string_view name) {
    metadata("process_name", process, 0, "name", name);
    metadata("process_sort_index", process, 0, "sort_index", process);
  }
  void name_thread(int process, int thread, const std::string& name) {
    if (!named_.emplace(process, thread).second) return;
    metadata("thread_name", process, thread, "name", std::string_view(name));
    metadata("thread_sort_index", process, thread, "sort_index", thread);
  }
  // `shift`: added to the start.
  void add(const TraceEvent& event, int process, int thread, double shift = 0) {
    json_.begin_object();
    json_.member("name", cat(event.category, " ", event.what)).member("cat", event.category);
    json_.member("ph", "X").member("pid", process).member("tid", thread);
    json_.member("ts", event.start + shift).member("dur", event.duration);
    json_.key("args").begin_object();
    if (!event.place.empty()) json_.member("place", event.place);
    if (event.bytes) json_.member("bytes", *event.bytes);
    if (event.failed) json_.member("failed", true);
    json_.end_object().end_object();
  }
  // The writer of the members of `otherData`.
  JsonWriter& end_events(std::uint64_t left_out) {
    json_.end_array();
    json_.member("displayTimeUnit", "ms");
    json_.key("otherData").begin_object();
    return json_.member("producer", "meshard").member("events_left_out", left_out);
  }
  std::string text() {
    json_.end_object().end_object();
    return std::move(json_).text();
  }

 private:
  template <class T>
  void metadata(std::string_view what, int process, int thread, std::string_view key,
                const T& value) {
    json_.begin_object().member("name", what).member("ph", "M");
    json_.member("pid", process).member("tid", thread);
    json_.key("args").begin_object().member(key, value).end_object().end_object();
  }

  JsonWriter json_;
  std::set<std::pair<int, int>> named_;
};

// The tracks of transfers that overlap.
class TransferLanes {
 public:
  // The first track of the device that is free when the transfer starts.
  int lane(const TraceEvent& event) {
    std::vector<double>& free = free_[{event.platform, event.number}];
    std::size_t i = 0;
    while (i < free.size() && free[i] > event.start) ++i;
    if (i == free.size()) free.push_back(0);
    free[i] = event.start + event.duration;
    return static_cast<int>(i);
  }

 private:
  std::map<std::pair<std::string, int>, std::vector<double>>
      free_;  // by device: when each of its tracks becomes free
};

std::string lane_text(int lane) { return lane == 0 ? "" : cat(" (", lane + 1, ")"); }

// The number of each platform.
std::map<std::string, int> platforms_of(const std::vector<TraceEvent>& events) {
  std::map<std::string, int> platforms;
  for (const TraceEvent& event : events)
    if (event.track != Track::kHost)
      platforms.emplace(event.platform, static_cast<int>(platforms.size()));
  if (platforms.empty()) platforms.emplace("", 0);
  return platforms;
}

// The tracks of one process of a run: host threads, then devices, then transfers.
class RunTracks {
 public:
  RunTracks(const ProcessTrace& process, TraceWriter& writer)
      : rank_(process.rank), writer_(writer), platforms_(platforms_of(process.events)) {
    // The numbers of threads have the order of their tracks, so all tracks are known first.
    TransferLanes lanes;
    for (const TraceEvent& event : process.events) tracks_.emplace(key_of(event, lanes), 0);
    int thread = 0;
    for (auto& [key, number] : tracks_) {
      number = ++thread;
      writer.name_thread(rank_, number, name_of(key));
    }
  }
  void add(const TraceEvent& event, double shift) {
    writer_.add(event, rank_, tracks_.at(key_of(event, lanes_)), shift);
  }

 private:
  using Key = std::tuple<Track, std::string, int, int>;  // track, platform, number, lane

  static Key key_of(const TraceEvent& event, TransferLanes& lanes) {
    return {event.track, event.platform, event.number,
            event.track == Track::kTransfer ? lanes.lane(event) : 0};
  }
  std::string name_of(const Key& key) const {
    const auto& [track, platform, number, lane] = key;
    if (track == Track::kHost) return cat("thread ", number);
    std::string device = cat(track == Track::kTransfer ? "transfers of " : "", "device ", number);
    return cat(device, platforms_.size() > 1 ? cat(" of ", platform) : "", lane_text(lane));
  }

  const int rank_;
  TraceWriter& writer_;
  const std::map<std::string, int> platforms_;
  std::map<Key, int> tracks_;
  TransferLanes lanes_;
};

}  // namespace

std::string chrome_trace(const std::vector<TraceEvent>& events, std::uint64_t left_out) {
  TraceWriter writer;
  std::map<std::string, int> platforms = platforms_of(events);
  writer.name_process(kHostProcess, "host");
  for (const auto& [platform, number] : platforms) {
    std::string of = platforms.size() > 1 ? cat(" of ", platform) : std::string();
    writer.name_process(kDeviceProcess + 2 * number, "devices" + of);
    writer.name_process(kTransferProcess + 2 * number, "transfers" + of);
  }
  TransferLanes lanes;
  for (const TraceEvent& event : events) {
    if (event.track == Track::kHost) {
      writer.name_thread(kHostProcess, event.number, cat("thread ", event.number));
      writer.add(event, kHostProcess, event.number);
      continue;
    }
    bool transfer = event.track == Track::kTransfer;
    int lane = transfer ? lanes.lane(event) : 0;
    int thread = transfer ? event.number * kTracksOfADevice + lane : event.number;
    int process = (transfer ? kTransferProcess : kDeviceProcess) + 2 * platforms.at(event.platform);
    writer.name_thread(process, thread, cat("device ", event.number, lane_text(lane)));
    writer.add(event, process, thread);
  }
  writer.end_events(left_out);
  return writer.text();
}

std::string chrome_trace_of_run(const std::vector<ProcessTrace>& processes) {
  TraceWriter writer;
  double begin = std::numeric_limits<double>::infinity();
  std::uint64_t left_out = 0;
  for (const ProcessTrace& process : processes) {
    begin = std::min(begin, process.begin);
    left_out += process.left_out;
  }
  for (const ProcessTrace& process : processes) {
    writer.name_process(process.rank, cat("process ", process.rank, " on ", process.host));
    RunTracks tracks(process, writer);
    for (const TraceEvent& event : process.events) tracks.add(event, process.begin - begin);
  }
  JsonWriter& json = writer.end_events(left_out);
  json.key("processes").begin_array();
  for (const ProcessTrace& process : processes) {
    json.begin_object().member("rank", process.rank).member("host", process.host);
    json.member("pid", process.pid).member("begin_us", process.begin - begin);
    json.member("clock_precision_us", process.precision).end_object();
  }
  json.end_array();
  return writer.text();
}

}  // namespace meshard::internal
