// Reads reports that to_json() wrote, also those of older versions.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "meshard/base/whole_file.h"
#include "meshard/report/json.h"
#include "meshard/report/sample_report_testutil.h"

namespace meshard {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

ProgramReport::Parts there_and_back(const ProgramReport::Parts& parts) {
  return read_report(to_json(ProgramReport(parts))).value().parts();
}

TEST(ReadReport, GivesBackEveryPart) {
  for (const ProgramReport::Parts& parts :
       {sample_parts(), sample_gpu_parts(4), large_parts(2000), ProgramReport::Parts{.name = "f"}})
    EXPECT_TRUE(same_report(parts, there_and_back(parts))) << parts.name;
}

TEST(ReadReport, IndentedTextIsTheSame) {
  std::string text = to_json(ProgramReport(sample_parts()), 2);
  EXPECT_TRUE(same_report(sample_parts(), read_report(text).value().parts()));
}

TEST(ReadReport, KeepsEveryDigit) {
  ProgramReport::Parts parts{.name = "f"};
  parts.memory = MemoryUse{.arguments = (std::int64_t{1} << 62) + 1};
  parts.cost.memory_bytes = 1.0 / 3.0;
  EXPECT_TRUE(same_report(parts, there_and_back(parts)));
}

TEST(ReadReport, HostileTextsComeBackAsTheyWere) {
  ProgramReport::Parts parts = hostile_parts(), back = there_and_back(parts);
  std::string expected = parts.name;
  expected.replace(expected.find('\xff'), 1, "\xEF\xBF\xBD");  // not UTF-8
  EXPECT_EQ(back.name, expected);
  EXPECT_EQ(back.collectives[0].origin.places[0].op, expected);
}

// Checks that reading fails without each member that is read. `unread` receives all other members,
// which are derived from these.
void check_missing(const Json& whole, Json::json_pointer at, std::vector<std::string>& unread) {
  const Json& here = whole.at(at);
  if (here.is_array()) {
    if (!here.empty()) check_missing(whole, at / 0, unread);
    return;
  }
  if (!here.is_object()) return;
  for (const auto& member : here.items()) {
    Json without = whole;
    without.at(at).erase(member.key());
    if (read_report(without.dump()).ok()) unread.push_back(member.key());
    check_missing(whole, at / member.key(), unread);
  }
}

TEST(ReadReport, ReadsEveryMemberButTheDerived) {
  Json whole = Json::parse(to_json(ProgramReport(sample_parts())));
  // One element of each list is sufficient.
  for (const char* list :
       {"arguments", "intermediates", "collectives", "timeline", "reshards", "logical_collectives"})
    whole[list].erase(whole[list].begin() + 1, whole[list].end());
  whole["topology"]["devices"].erase(whole["topology"]["devices"].begin() + 1,
                                     whole["topology"]["devices"].end());
  whole["num_captured"] = 1;
  std::vector<std::string> unread;
  check_missing(whole, Json::json_pointer(), unread);
  std::sort(unread.begin(), unread.end());
  unread.erase(std::unique(unread.begin(), unread.end()), unread.end());
  // `across_processes`, `processes`, `rates_known`, `purpose`, `logical_collectives`, `layers`,
  // `via`, `memory_kind` and what tells of the schedule, custom calls and host memory: of reports
  // of a newer meshard. `axes`, `device_ids`, `kind`, `size`: of meshes, whose text is read, and of
  // dimensions, whose spec is read.
  EXPECT_THAT(unread, testing::ElementsAre(
                          "across_processes", "axes", "bound_by", "communication_seconds", "count",
                          "custom_calls", "device_ids", "executions", "exposed_seconds", "fits",
                          "hidden_seconds", "host_arguments", "host_bytes", "host_outputs",
                          "host_temporaries", "host_transfers", "kind", "layer", "layers",
                          "logical_collectives", "measured", "measured_seconds", "memory_kind",
                          "name", "open", "padding_bytes", "phase", "processes", "purpose",
                          "rates_known", "schedule", "seconds", "seconds_in_sequence", "shard",
                          "shard_bytes", "size", "spare", "total", "total_bytes", "via"));
}

TEST(ReadReport, ReadsReportsThatLackLaterMembers) {
  Json older = Json::parse(to_json(ProgramReport(sample_parts())));
  older.erase("processes");
  older.erase("logical_collectives");
  older.erase("layers");
  for (Json& one : older["collectives"]) {
    one.erase("across_processes");
    one.erase("purpose");
    for (Json& place : one["origin"]["places"]) place.erase("via");
  }
  for (const char* member : {"schedule", "custom_calls", "host_transfers", "measured"})
    older.erase(member);
  for (const char* member : {"rates_known", "communication_seconds"})
    older["roofline"].erase(member);
  for (const char* member : {"host_arguments", "host_outputs", "host_temporaries"})
    older["memory"].erase(member);
  for (Json& one : older["arguments"]) one.erase("memory_kind");
  for (Json& one : older["timeline"])
    for (const char* member :
         {"host_bytes", "hidden_seconds", "exposed_seconds", "measured_seconds"})
      one.erase(member);
  ProgramReport::Parts parts = read_report(older.dump()).value().parts();
  EXPECT_EQ(parts.processes, std::nullopt);
  EXPECT_TRUE(parts.roofline->rates_known);
  for (const Collective& one : parts.collectives) {
    EXPECT_FALSE(one.across_processes);
    EXPECT_EQ(one.purpose, CollectivePurpose());
  }
  EXPECT_EQ(parts.logical_collectives, merge_fragments(parts.collectives));
  EXPECT_EQ(parts.schedule, std::nullopt);
  EXPECT_TRUE(parts.custom_calls.empty());
  EXPECT_EQ(parts.host_transfers, std::nullopt);
  EXPECT_DOUBLE_EQ(parts.roofline->link_seconds(), 0.0089 + 0.0215);  // without the bound: the sum
  EXPECT_EQ(parts.memory->host_arguments, 0);
}

// Reports that earlier builds wrote. They have all members of today, so they are written again as
// they were.
TEST(ReadReport, ReadsRecordedReports) {
  for (const char* name : {"sample_2026_11.json", "reshards_v5e_2026_11.json"}) {
    std::string text = read_whole_file(MESHARD_GOLDEN "/reports/" + std::string(name)).value();
    ProgramReport report = read_report(text).value();
    bool is_indented = text.starts_with("{\n");
    EXPECT_EQ(to_json(report, is_indented ? 1 : 0) + (is_indented ? "\n" : ""), text) << name;
  }
}

TEST(ReadReport, RefusesWithThePlace) {
  auto message = [](const char* pointer, const Json& value) {
    Json whole = Json::parse(to_json(ProgramReport(sample_parts())));
    whole.at(Json::json_pointer(pointer)) = value;
    Result<ProgramReport> read = read_report(whole.dump());
    return read.ok() ? "no error" : read.error().message();
  };
  EXPECT_THAT(message("/collectives/1/kind", "all-mirror"),
              HasSubstr("collectives[1].kind: unknown word `all-mirror`"));
  EXPECT_THAT(message("/arguments/2/type", "f33[1]"), HasSubstr("arguments[2].type: "));
  EXPECT_THAT(message("/arguments/0/type", "bf16[4]"),
              HasSubstr("arguments[0]: cannot pad bf16[4] to bf16[4096,32,128]"));
  EXPECT_THAT(message("/arguments/0/sharding/mesh", 5),
              HasSubstr("arguments[0].sharding.mesh: expected a number from 0 to 0, got 5"));
  EXPECT_THAT(message("/arguments/0/sharding/spec", "P(\"nowhere\")"),
              HasSubstr("arguments[0].sharding: "));
  EXPECT_THAT(message("/meshes/0/text", "mesh<"), HasSubstr("meshes[0].text: "));
  EXPECT_THAT(message("/memory/code", 1.5), HasSubstr("memory.code: expected a 64-bit integer"));
  EXPECT_THAT(message("/memory/code", 18446744073709551615u), HasSubstr("memory.code: expected"));
  EXPECT_THAT(message("/topology/devices/3/id", 100000), HasSubstr("topology: "));
  EXPECT_THAT(message("/num_captured", 1000), HasSubstr("num_captured: expected"));
  EXPECT_THAT(message("/version", 2), HasSubstr("unsupported report version 2"));
  EXPECT_THAT(message("/schema", "other"), HasSubstr("this is not a report"));
}

TEST(ReadReport, RefusesWhatIsNoJson) {
  EXPECT_EQ(read_report("{").error().code(), ErrorCode::kDataLoss);
  EXPECT_THAT(read_report("[1]").error().message(), HasSubstr("not a report"));
}

}  // namespace
}  // namespace meshard
