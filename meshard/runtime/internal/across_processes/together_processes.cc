// Tested in tests/processes/check_plugin.py.
#include "meshard/runtime/internal/across_processes/together_processes.h"

#include <algorithm>

#include "meshard/base/packed_fields.h"
#include "meshard/base/stall_report.h"
#include "meshard/runtime/internal/across_processes/agreement.h"
#include "meshard/runtime/internal/across_processes/load_across.h"
#include "meshard/runtime/internal/device_assignment.h"
#include "meshard/runtime/internal/load_program.h"
#include "meshard/runtime/loaded_program.h"

namespace meshard {
namespace {

constexpr std::string_view kNone = "none";

std::string text_of(const std::optional<Sharding>& sharding) {
  return sharding ? sharding->to_string() : std::string(kNone);
}

// The shardings or the error of those who have compiled a program.
struct AnnouncedShardings {
  std::vector<std::string> arguments, results;
  int code = 0;  // of the error; 0: none
  std::string message;
  MESHARD_FIELDS(arguments, results, code, message)
};

std::string announced(const Result<ChosenShardings>& chosen) {
  AnnouncedShardings sent;
  if (chosen.ok()) {
    for (const auto& sharding : chosen->arguments) sent.arguments.push_back(text_of(sharding));
    for (const auto& sharding : chosen->results) sent.results.push_back(text_of(sharding));
  } else {
    sent.code = static_cast<int>(chosen.error().code());
    sent.message = chosen.error().message();
  }
  return to_packed(sent);
}

Result<ChosenShardings> read_announced(std::string_view bytes) {
  MESHARD_ASSIGN_OR_RETURN(AnnouncedShardings got,
                           from_packed<AnnouncedShardings>(bytes, "processes"));
  if (got.code != 0) return Error(static_cast<ErrorCode>(got.code), got.message);
  ChosenShardings chosen;
  for (auto [texts, shardings] :
       {std::pair(&got.arguments, &chosen.arguments), std::pair(&got.results, &chosen.results)})
    for (const std::string& text : *texts) {
      shardings->emplace_back();
      if (text != kNone) {
        MESHARD_ASSIGN_OR_RETURN(shardings->back(), Sharding::parse(text));
      }
    }
  return chosen;
}

Result<ChosenShardings> shardings_from_others(SharedFabric& steps, const std::vector<int>& ranks,
                                              const LoweredModule& lowered) {
  if (lowered.mesh->size() == 1) return shardings_on_one_device(lowered);
  MESHARD_ASSIGN_OR_RETURN(std::chrono::milliseconds limit, wait_for_processes());
  std::string key = steps.announcement(ranks, cat(program_fingerprint(lowered)));
  // They may themselves wait for each other before they compile.
  Result<std::string> got = steps.run().store().get(key, 2 * limit);
  if (got.ok()) return read_announced(*got);
  if (got.error().code() != ErrorCode::kDeadlineExceeded) return got.error();
  return Error(ErrorCode::kDeadlineExceeded,
               cat("[processes] ", names_of_processes(ranks), " have not compiled \"", lowered.name,
                   "\" within ", 2 * limit.count() / 1000, " s"));
}

// A program whose devices are all of other processes.
class ProgramElsewhere final : public LoadedProgram {
 public:
  ProgramElsewhere(const Platforms& platforms, const pjrt::Client& client, LoweredModule lowered,
                   ChosenShardings chosen, std::vector<std::uint32_t> donated)
      : LoadedProgram(platforms, client, std::move(lowered), std::nullopt, std::move(chosen),
                      std::move(donated)) {}
  Result<pjrt::Launch> launch(Arrays arguments, std::span<Tensor> results, SourceLocation where,
                              bool) const override {
    return skip(arguments, results, where);
  }
};

// @pre some devices are of other processes
Result<std::shared_ptr<const LoadedProgram>> load_together(const Platforms& platforms,
                                                           SharedFabric& steps,
                                                           const ProgramToLoad& what) {
  const pjrt::Client& client = steps.client();
  LoweredModule& lowered = what.lowered;
  const SourceLocation where = what.where;
  const std::vector<int> ranks = processes_of(client, *lowered.mesh);
  if (reach_of(client, *lowered.mesh) == Reach::kElsewhere) {
    MESHARD_ASSIGN_OR_RETURN(ChosenShardings chosen, shardings_from_others(steps, ranks, lowered));
    return std::shared_ptr<const LoadedProgram>(std::make_shared<ProgramElsewhere>(
        platforms, client, std::move(lowered), std::move(chosen), what.program.donated));
  }
  steps.run().entering(cat("load of \"", lowered.name, "\", ", where));
  MESHARD_ASSIGN_OR_RETURN(std::chrono::milliseconds limit, wait_for_processes());
  const Fingerprint identity = program_fingerprint(lowered);
  Intention intention{.ranks = ranks,
                      .rank = steps.rank(),
                      .key = steps.next_step(ranks),
                      .fingerprint = identity,
                      .what = intention_text(lowered, where),
                      .details = [&] { return text_with_sources(lowered, what.program.graph); }};
  Store& store = steps.run().store();
  auto nothing = [] { return Result<std::string>(std::string()); };
  MESHARD_RETURN_IF_ERROR(agree(store, intention, nothing, limit));
  Result<std::shared_ptr<const LoadedProgram>> loaded = compile_and_load(
      platforms, client, DiskCache("", 0), std::move(lowered), what.devices, where);
  if (steps.rank() == ranks.front() && static_cast<int>(ranks.size()) < steps.run().size()) {
    Result<ChosenShardings> chosen =
        loaded.ok() ? Result<ChosenShardings>((*loaded)->shardings()) : loaded.error();
    MESHARD_RETURN_IF_ERROR(store.put(steps.announcement(ranks, cat(identity)), announced(chosen)));
  }
  steps.run().entering("");
  return loaded;
}

}  // namespace

std::shared_ptr<const LoadedProgram> TogetherProcesses::load(const ProgramToLoad& what) {
  if (!what.lowered.mesh) return what.load_here();
  const Mesh& mesh = *what.lowered.mesh;
  const bool is_known = run().size() > 1;
  if (reach_of(client(), mesh) != Reach::kHere) {
    if (!is_known)
      throw Error(ErrorCode::kFailedPrecondition,
                  cat("[runtime] ", mesh,
                      " has devices of other processes, which this one has not joined: call "
                      "initialize_processes()"),
                  what.where);
    auto loaded = load_together(platforms(), *this, what);
    return loaded.ok() ? *std::move(loaded) : throw loaded.error().at(what.where);
  }
  std::shared_ptr<const LoadedProgram> loaded = what.load_here();
  // On one device, the compiler has nothing to choose.
  if (is_known && mesh.size() > 1) {
    const std::string key = announcement({rank()}, cat(program_fingerprint(what.lowered)));
    run().store().put(key, announced(loaded->shardings())).value(what.where);
  }
  return loaded;
}

bool TogetherProcesses::gather(const DeviceArray& source, int, void*, SourceLocation where) {
  if (!source.buffers())
    throw Error(
        ErrorCode::kFailedPrecondition,
        cat("[tensor] the value ", source.type(), " on ", source.placement(), " is on devices of ",
            names_of_processes(processes_of(client(), source.sharding()->mesh())),
            " only; read it there"),
        where);
  if (!source.is_current())
    throw Error(ErrorCode::kFailedPrecondition,
                cat("[tensor] parts of the value ", source.type(), " on ", source.placement(),
                    " are in other processes, and were before the runtime was restarted"),
                where);
  return false;
}

}  // namespace meshard
