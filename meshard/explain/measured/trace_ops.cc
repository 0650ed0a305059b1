#include "meshard/explain/measured/trace_ops.h"

#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include "meshard/base/cat.h"
#include "meshard/base/gunzip.h"
#include "meshard/base/json_reader.h"
#include "meshard/explain/measured/xplane.h"

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

}  // namespace meshard
