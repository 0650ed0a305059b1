// Tested in meshard/report/json_test.cc.
#include "meshard/report/json_times.h"

namespace meshard {
namespace {

void write_transfer_time(JsonWriter& json, const TransferTime& time) {
  json.member("hidden_seconds", time.hidden_seconds);
  json.member("exposed_seconds", time.exposed_seconds);
}

void write_communication(JsonWriter& json, const std::vector<CommunicationTime>& all) {
  json.key("communication").begin_array();
  for (const CommunicationTime& one : all) {
    json.begin_object().member("kind", one.kind).member("axes", one.axes);
    json.member("collectives", one.collectives).member("executions", one.executions);
    write_transfer_time(json, one.time);
    json.end_object();
  }
  json.end_array();
}

void write_schedule(JsonWriter& json, const Schedule& schedule) {
  json.begin_object().member("seconds", schedule.seconds);
  json.member("busy_seconds", schedule.busy_seconds).key("links").begin_object();
  write_transfer_time(json, schedule.links);
  json.end_object().key("host").begin_object();
  write_transfer_time(json, schedule.host);
  json.end_object();
  write_communication(json, schedule.communication);
  json.end_object();
}

void write_measured(JsonWriter& json, const MeasuredRun& run) {
  json.begin_object().member("devices", run.devices).member("runs", run.runs);
  json.member("seconds", run.seconds).key("links").begin_object();
  write_transfer_time(json, run.links);
  json.end_object();
  write_communication(json, run.communication);
  json.member("matched_events", run.matched_events);
  json.member("unmatched_events", run.unmatched_events).key("unmatched").begin_array();
  for (const std::string& name : run.unmatched) json.value(name);
  json.end_array().end_object();
}

void write_custom_call(JsonWriter& json, const CustomCallUse& use) {
  json.begin_object().member("name", use.name).member("target", use.target);
  json.member("count", use.count).member("executions", use.executions);
  json.member("operand_bytes", use.operand_bytes).member("result_bytes", use.result_bytes);
  json.member("source", to_string(use.source)).member("flops", use.flops);
  json.member("memory_bytes", use.memory_bytes).member("link_bytes", use.link_bytes);
  json.member("communicates", use.communicates).member("place", use.place).end_object();
}

void write_host_transfers(JsonWriter& json, const HostTransfers& moved) {
  json.begin_object().member("from_host", moved.from_host).member("to_host", moved.to_host);
  json.member("executions", moved.executions).member("seconds", moved.seconds).end_object();
}

template <class T>
void write_optional(JsonWriter& json, std::string_view name, const std::optional<T>& maybe,
                    void (*write)(JsonWriter&, const T&)) {
  json.key(name);
  if (maybe) {
    write(json, *maybe);
  } else {
    json.value(nullptr);
  }
}

}  // namespace

void write_times(JsonWriter& json, const ProgramReport::Parts& parts) {
  write_optional(json, "schedule", parts.schedule, write_schedule);
  json.key("custom_calls").begin_array();
  for (const CustomCallUse& use : parts.custom_calls) write_custom_call(json, use);
  json.end_array();
  write_optional(json, "host_transfers", parts.host_transfers, write_host_transfers);
  write_optional(json, "measured", parts.measured, write_measured);
}

}  // namespace meshard
