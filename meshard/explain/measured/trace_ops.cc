#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/gunzip.h"
#include "meshard/base/json_reader.h"
#include "meshard/explain/measured/measured_run.h"
#include "meshard/pjrt/wire.h"

namespace meshard {
namespace {

constexpr double kMicrosecond = 1e-6;

std::string text_in(const JsonValue* object, std::string_view name) {
  const JsonValue* found = object ? object->find(name) : nullptr;
  bool readable =
      found && (found->is(JsonValue::Kind::kString) || found->is(JsonValue::Kind::kNumber));
  return readable ? found->text : std::string();
}

double number_in_event(const JsonValue& event, std::string_view name) {
  std::string text = text_in(&event, name);
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// The text of the JSON object that starts at `at`; none if it is cut off.
std::optional<std::string_view> object_at(std::string_view text, std::size_t at) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = at; i < text.size(); ++i) {
    char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) return text.substr(at, i + 1 - at);
  }
  return std::nullopt;
}

// The position after the bracket that opens the array of events; none if there is none.
std::optional<std::size_t> first_event(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n", kKey = "\"traceEvents\"";
  std::size_t at = text.find_first_not_of(kSpace);
  if (at == std::string_view::npos) return std::nullopt;
  if (text[at] == '{') {
    at = text.find(kKey, at);
    if (at == std::string_view::npos) return std::nullopt;
    at = text.find_first_not_of(kSpace, at + kKey.size());
    if (at == std::string_view::npos || text[at] != ':') return std::nullopt;
    at = text.find_first_not_of(kSpace, at + 1);
  }
  if (at == std::string_view::npos || text[at] != '[') return std::nullopt;
  return at + 1;
}

class TraceReader {
 public:
  Result<std::vector<TraceOp>> read(std::string_view text) {
    std::optional<std::size_t> at = first_event(text);
    if (!at) return damaged("it has no `traceEvents`");
    while (true) {
      std::size_t next = text.find_first_not_of(" \t\r\n,", *at);
      if (next == std::string_view::npos || text[next] != '{') break;
      std::optional<std::string_view> event = object_at(text, next);
      if (!event) break;
      Result<JsonValue> read = read_json(*event, "trace");
      if (!read.ok()) return damaged(read.error().message());
      add(*read);
      at = next + event->size();
    }
    return ops();
  }

 private:
  using Thread = std::pair<std::string, std::string>;  // process, thread
  struct Event {
    TraceOp op;
    Thread thread;
    bool has_op = false, has_device = false;
  };

  static Error damaged(const std::string& why) {
    return Error(ErrorCode::kDataLoss, cat("[trace] not a trace in the Trace Event Format: ", why));
  }

  void add(const JsonValue& event) {
    std::string phase = text_in(&event, "ph"), name = text_in(&event, "name");
    Thread thread{text_in(&event, "pid"), text_in(&event, "tid")};
    const JsonValue* args = event.find("args");
    if (phase == "M" && name == "process_name") processes_[thread.first] = text_in(args, "name");
    if (phase == "M" && name == "thread_name") threads_[thread] = text_in(args, "name");
    if (phase != "X") return;
    Event made{.op = {.op = text_in(args, "hlo_op"),
                      .module = text_in(args, "hlo_module"),
                      .device = text_in(args, "device_ordinal"),
                      .run = text_in(args, "run_id"),
                      .start = number_in_event(event, "ts") * kMicrosecond,
                      .seconds = number_in_event(event, "dur") * kMicrosecond},
               .thread = std::move(thread)};
    made.has_op = !made.op.op.empty();
    made.has_device = !made.op.device.empty();
    if (!made.has_op) made.op.op = std::move(name);
    events_.push_back(std::move(made));
  }

  std::vector<TraceOp> ops() {
    std::vector<TraceOp> found;
    for (Event& event : events_) {
      if (!event.has_op) {
        auto thread = threads_.find(event.thread);
        if (thread == threads_.end() || thread->second != "XLA Ops") continue;
      }
      auto process = processes_.find(event.thread.first);
      std::string place = process == processes_.end() ? event.thread.first : process->second;
      event.op.device = event.has_device ? cat(place, " ", event.op.device) : place;
      found.push_back(std::move(event.op));
    }
    return found;
  }

  std::map<std::string, std::string> processes_;
  std::map<Thread, std::string> threads_;
  std::vector<Event> events_;
};

using pjrt::WireField;
using pjrt::WireReader;

constexpr double kPicosecond = 1e-12, kNanosecond = 1e-9;

// Calls `take` with each field of a message. False if the bytes are damaged.
template <class Take>
bool each_field(std::string_view message, const Take& take) {
  WireReader reader(message);
  while (std::optional<WireField> field = reader.next()) take(*field);
  return reader.ok();
}

// Of an event, or of all events with one name.
struct Statistics {
  std::string op, module, device, run;
};

struct EventName {
  std::string name, shown;
  Statistics statistics;
};

// The names that the numbers in a plane stand for.
class Names {
 public:
  bool read(std::string_view plane) {
    std::vector<std::string_view> events;
    bool whole = each_field(plane, [&](const WireField& field) {
      if (field.number == 4) events.push_back(field.bytes);
      if (field.number == 5) ok_ = ok_ && add_statistic(field.bytes);
    });
    // After the names of the statistics, which they have.
    for (std::string_view entry : events) ok_ = ok_ && add_event(entry);
    return whole && ok_;
  }

  const EventName* event(std::int64_t number) const {
    auto found = events_.find(number);
    return found == events_.end() ? nullptr : &found->second;
  }

  // Adds a statistic to those of an event. False if the bytes are damaged.
  bool add(std::string_view statistic, Statistics& to) const {
    std::int64_t number = 0;
    std::string text;
    bool whole = each_field(statistic, [&](const WireField& field) {
      switch (field.number) {
        case 1: number = field.as_int(); break;
        case 3: text = std::to_string(field.value); break;
        case 4: text = std::to_string(field.as_int()); break;
        case 5: text = field.bytes; break;
        case 7:
          if (auto found = statistics_.find(field.as_int()); found != statistics_.end())
            text = found->second;
          break;
        default: break;
      }
    });
    auto name = statistics_.find(number);
    if (name == statistics_.end()) return whole;
    if (name->second == "hlo_op") to.op = text;
    if (name->second == "hlo_module") to.module = text;
    if (name->second == "device_ordinal") to.device = text;
    if (name->second == "run_id") to.run = text;
    return whole;
  }

 private:
  // An entry of a map: a number and its message.
  static bool read_entry(std::string_view entry, std::int64_t& number, std::string_view& message) {
    return each_field(entry, [&](const WireField& field) {
      if (field.number == 1) number = field.as_int();
      if (field.number == 2) message = field.bytes;
    });
  }

  bool add_statistic(std::string_view entry) {
    std::int64_t number = 0;
    std::string_view message;
    return read_entry(entry, number, message) && each_field(message, [&](const WireField& field) {
             if (field.number == 2) statistics_[number] = field.bytes;
           });
  }

  bool add_event(std::string_view entry) {
    std::int64_t number = 0;
    std::string_view message;
    if (!read_entry(entry, number, message)) return false;
    EventName made;
    bool ok = true;
    bool whole = each_field(message, [&](const WireField& field) {
      if (field.number == 2) made.name = field.bytes;
      if (field.number == 4) made.shown = field.bytes;
      if (field.number == 5) ok = ok && add(field.bytes, made.statistics);
    });
    events_[number] = std::move(made);
    return whole && ok;
  }

  bool ok_ = true;
  std::unordered_map<std::int64_t, std::string> statistics_;
  std::unordered_map<std::int64_t, EventName> events_;
};

// A device, or the host's threads, each of which is a line.
class PlaneReader {
 public:
  explicit PlaneReader(std::int64_t origin) : origin_(origin) {}

  bool read(std::string_view plane, std::vector<TraceOp>& to) {
    if (!names_.read(plane)) return false;
    std::vector<std::string_view> lines;
    bool whole = each_field(plane, [&](const WireField& field) {
      if (field.number == 2) name_ = field.bytes;
      if (field.number == 3) lines.push_back(field.bytes);
    });
    for (std::string_view line : lines) whole = whole && read_line(line, to);
    return whole;
  }

 private:
  bool read_line(std::string_view line, std::vector<TraceOp>& to) const {
    double start = 0;
    bool has_ops = false;
    std::vector<std::string_view> events;
    bool whole = each_field(line, [&](const WireField& field) {
      if (field.number == 2 || field.number == 11) has_ops = has_ops || field.bytes == "XLA Ops";
      if (field.number == 3) start = static_cast<double>(field.as_int() - origin_) * kNanosecond;
      if (field.number == 4) events.push_back(field.bytes);
    });
    for (std::string_view event : events) whole = whole && read_event(event, start, has_ops, to);
    return whole;
  }

  bool read_event(std::string_view event, double start, bool has_ops,
                  std::vector<TraceOp>& to) const {
    TraceOp made{.op = {}, .module = {}, .device = {}, .run = {}, .start = start};
    std::int64_t number = 0;
    std::vector<std::string_view> own;
    bool whole = each_field(event, [&](const WireField& field) {
      if (field.number == 1) number = field.as_int();
      if (field.number == 2) made.start += static_cast<double>(field.as_int()) * kPicosecond;
      if (field.number == 3) made.seconds = static_cast<double>(field.as_int()) * kPicosecond;
      if (field.number == 4) own.push_back(field.bytes);
    });
    const EventName* name = names_.event(number);
    Statistics statistics = name ? name->statistics : Statistics();
    for (std::string_view one : own) whole = whole && names_.add(one, statistics);
    if (!whole) return false;
    made.op = std::move(statistics.op);
    if (made.op.empty()) {
      if (!has_ops || !name) return true;
      made.op = name->shown.empty() ? name->name : name->shown;
    }
    made.module = std::move(statistics.module);
    made.device = statistics.device.empty() ? name_ : cat(name_, " ", statistics.device);
    made.run = std::move(statistics.run);
    to.push_back(std::move(made));
    return true;
  }

  std::int64_t origin_;
  Names names_;
  std::string name_;
};

// The nanosecond of the first line. Lines start at times since 1970, too many for the precision of
// a double.
std::int64_t origin_of(std::string_view space) {
  std::optional<std::int64_t> first;
  each_field(space, [&](const WireField& plane) {
    if (plane.number != 1) return;
    each_field(plane.bytes, [&](const WireField& line) {
      if (line.number != 3) return;
      each_field(line.bytes, [&](const WireField& field) {
        if (field.number == 3) first = std::min(first.value_or(field.as_int()), field.as_int());
      });
    });
  });
  return first.value_or(0);
}

}  // namespace

Result<std::vector<TraceOp>> read_trace_ops(std::string_view bytes) {
  std::string text;
  if (is_gzip(bytes)) {
    MESHARD_ASSIGN_OR_RETURN(text, gunzip(bytes));
    bytes = text;
  }
  // The first characters of a JSON text do not begin a field of an XSpace. A line break does, but
  // then the number of bytes would have to be right.
  return may_be_xspace(bytes) ? read_xspace_ops(bytes) : TraceReader().read(bytes);
}

bool may_be_xspace(std::string_view bytes) {
  bool known = true, any = false;
  bool whole = each_field(bytes, [&](const WireField& field) {
    known = known && field.number >= 1 && field.number <= 4 && field.type == 2;
    any = true;
  });
  return whole && known && any;
}

Result<std::vector<TraceOp>> read_xspace_ops(std::string_view bytes) {
  std::vector<TraceOp> ops;
  const std::int64_t origin = origin_of(bytes);
  bool ok = true;
  bool whole = each_field(bytes, [&](const WireField& field) {
    if (field.number == 1) ok = ok && PlaneReader(origin).read(field.bytes, ops);
  });
  if (!whole || !ok) return Error(ErrorCode::kDataLoss, "[trace] a damaged XSpace (*.xplane.pb)");
  return ops;
}

}  // namespace meshard
