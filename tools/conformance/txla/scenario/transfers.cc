#include "tools/conformance/txla/scenario/transfers.h"

#include <algorithm>

#include "meshard/base/cat.h"

namespace meshard::conformance {
namespace {

void add(TransferTotals& totals, const Json& delta) {
  totals.buffers_sent += delta.value("CreateDataHandles", std::uint64_t{0});
  totals.bytes_sent += delta.value("OutboundData.bytes", std::uint64_t{0});
  totals.bytes_read += delta.value("InboundData.bytes", std::uint64_t{0});
}

std::string shown(const TransferTotals& totals) {
  return cat(totals.buffers_sent, " buffers and ", totals.bytes_sent, " bytes sent, ",
             totals.bytes_read, " bytes read");
}

bool is_marked(const Standings& standings, const Json& arg) {
  return arg.is_string() && (standings.of(arg).standing == Standing::kMarked ||
                             standings.of(arg).standing == Standing::kCleared);
}

bool is_zero_or_one(const Json& arg) { return arg.is_number() && (arg == 0 || arg == 1); }

/// Whether the reference transfers for this step exactly what we have to transfer.
bool is_plain(const Json& step, const Json& recorded, const Standings& standings) {
  const std::string& op = step.at("op").get_ref<const std::string&>();
  bool downloads = recorded.at("delta").contains("InboundData.bytes");
  auto brings_nothing = [&](const Json& arg) {
    return is_marked(standings, arg) || is_zero_or_one(arg);
  };
  if (op == "mark") return recorded.at("ok") == true && !downloads;
  if (op == "compute")
    return std::all_of(step.at("args").begin(), step.at("args").end(), brings_nothing);
  if (op == "inplace") return brings_nothing(step.at("t")) && brings_nothing(step.at("arg"));
  if (op == "sync") return !standings.any_on_host();
  return op == "mesh" || op == "host" || op == "clear" || op == "read" || op == "shards" ||
         op == "send_sharded" || op == "spec_apply";
}

/// The number of programs that we may compile in addition to those of the reference. We reshard and
/// transfer values to a mesh on the devices, where the reference goes through the host or has
/// already placed the value everywhere.
std::uint64_t extra_programs(const Json& step, const Json& recorded, const Standings& standings) {
  const std::string& op = step.at("op").get_ref<const std::string&>();
  bool downloads = recorded.at("delta").contains("InboundData.bytes");
  auto lies_anywhere = [&](const Json& arg) {
    return arg.is_string() && standings.of(arg).standing == Standing::kChosen;
  };
  if (step.contains("spec")) return downloads ? 1 : 0;
  if (op == "inplace") return lies_anywhere(step.at("t")) + lies_anywhere(step.at("arg"));
  if (op == "compute")
    return static_cast<std::uint64_t>(
        std::count_if(step.at("args").begin(), step.at("args").end(), lies_anywhere));
  return 0;
}

/// Whether both read shards of equally placed values.
bool reads_alike(const Json& step, const Json& recorded, const Json& ours) {
  if (step.at("op") != "shards" || recorded.at("ok") == false) return true;
  std::string name = step.at("t");
  return recorded.at("state").at(name).at("data_sharding") ==
         ours.at("state").at(name).at("data_sharding");
}

}  // namespace

std::string TransfersJudge::after(const Json& step, const Json& recorded, const Json& ours,
                                  const Standings& standings) {
  add(ours_, ours.at("delta"));
  add(recorded_, recorded.at("delta"));
  our_compiles_ += ours.at("delta").value("UncachedCompile", std::uint64_t{0});
  recorded_compiles_ += recorded.at("delta").value("UncachedCompile", std::uint64_t{0});
  plain_ = plain_ && is_plain(step, recorded, standings);
  bool refused = recorded.at("ok") == false;
  if (refused && ours.at("ok") == true) {
    // If the reference had not rejected the step, it would have cost as much.
    add(recorded_, ours.at("delta"));
    recorded_compiles_ += ours.at("delta").value("UncachedCompile", std::uint64_t{0});
  }
  recorded_compiles_ += extra_programs(step, recorded, standings);
  // Different shards have different numbers of bytes.
  if (refused || !reads_alike(step, recorded, ours)) readable_ = false;
  if (!readable_) ours_.bytes_read = recorded_.bytes_read;
  if (plain_ ? ours_ != recorded_ : !fewer_transfers(ours_, recorded_))
    return cat("in all, ours ", shown(ours_), "; recorded ", shown(recorded_));
  if (our_compiles_ > recorded_compiles_)
    return cat("in all, ours compiled ", our_compiles_, " programs, recorded ", recorded_compiles_);
  return {};
}

}  // namespace meshard::conformance
