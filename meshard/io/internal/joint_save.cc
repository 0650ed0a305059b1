// Tested in tests/processes/check_checkpoints.py.
#include "meshard/io/internal/joint_save.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "meshard/base/cat.h"
#include "meshard/base/packed_fields.h"
#include "meshard/io/file.h"
#include "meshard/io/internal/joint_step.h"
#include "meshard/processes/processes.h"

namespace meshard::io::internal {
namespace {

// The keys are used again by each save: a process puts its next report only after the last barrier
// of the save before, and process 0 has read all reports by then.
constexpr std::string_view kIdKey = "meshard/save/id";
constexpr std::string_view kOutcomeKey = "meshard/save/outcome";
std::string report_key(int rank) { return cat("meshard/save/", rank); }

// What a process tells process 0.
struct Report {
  std::string path = {}, index = {};
  std::vector<std::string> tensors = {};
  // The code and the message of an error.
  std::optional<std::pair<int, std::string>> failure = {};
  MESHARD_FIELDS(path, index, tensors, failure)

  void fail(const Error& error) {
    failure.emplace(static_cast<int>(error.code()), error.message());
  }
};

Result<Report> report_at(const Processes& run, std::string_view key) {
  MESHARD_ASSIGN_OR_RETURN(std::string bytes, run.store().get(key));
  return from_packed<Report>(bytes, "report of a save");
}

// Why two processes do not save the same; empty if they do.
std::string difference(const Report& first, const Report& other) {
  if (first.path != other.path)
    return cat("it saves to ", other.path, ", and process 0 to ", first.path);
  for (std::size_t i = 0; i < std::max(first.tensors.size(), other.tensors.size()); ++i) {
    auto text = [&](const Report& report) {
      return i < report.tensors.size() ? report.tensors[i] : "nothing more";
    };
    if (text(first) != text(other))
      return cat("it saves ", text(other), ", where process 0 saves ", text(first));
  }
  return {};
}

// The index of the files that all processes have written.
Result<CheckpointIndex> index_of_all(Processes run, const JointSave& save) {
  CheckpointIndex all;
  all.metadata = save.metadata;
  std::vector<Report> reports;
  for (int rank = 0; rank < run.size(); ++rank) {
    MESHARD_ASSIGN_OR_RETURN(Report report, report_at(run, report_key(rank)));
    reports.push_back(std::move(report));
  }
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    auto of_process = [&](ErrorCode code, std::string_view what) {
      return Error(code, cat("[io] ", save.files.one_file(), " was not saved, because of ",
                             run.members()[rank].to_string(), ": ", what));
    };
    const Report& report = reports[rank];
    if (report.failure)
      return of_process(static_cast<ErrorCode>(report.failure->first), report.failure->second);
    if (std::string other = difference(reports[0], report); !other.empty())
      return of_process(ErrorCode::kFailedPrecondition, other);
    MESHARD_ASSIGN_OR_RETURN(CheckpointIndex own,
                             CheckpointIndex::parse_of_writer(report.index, "report of a save"));
    for (const auto& [name, bytes] : own.files) {
      std::string path = save.files.folder() + name;
      struct stat about {};
      if (::stat(path.c_str(), &about) != 0)
        return of_process(ErrorCode::kFailedPrecondition,
                          cat("process 0 does not see its file ", path, ": ", std::strerror(errno),
                              "; all processes must save to a file system that they share"));
      if (static_cast<std::uint64_t>(about.st_size) != bytes)
        return of_process(ErrorCode::kDataLoss, cat("its file ", path, " has ", about.st_size,
                                                    " bytes, and it wrote ", bytes));
    }
    MESHARD_RETURN_IF_ERROR(all.merge(own));
  }
  MESHARD_RETURN_IF_ERROR(all.check_parts(save.files.one_file()));
  return all;
}

// Makes the files the checkpoint, and removes what it replaces.
Result<void> publish(const JointSave& save, const CheckpointIndex& index) {
  std::set<std::string> replaced;
  if (Result<CheckpointIndex> old = CheckpointIndex::read(save.files.index()); old.ok())
    for (const auto& [name, bytes] : old->files) replaced.insert(name);
  std::string text = index.to_json();
  MESHARD_ASSIGN_OR_RETURN(NewFile file, NewFile::create(save.files.index(), text.size()));
  std::memcpy(file.data(), text.data(), text.size());
  MESHARD_RETURN_IF_ERROR(file.commit());
  ::unlink(save.files.one_file().c_str());  // the index counts already
  save.files.remove_unused(replaced);
  return {};
}

class JointSaver {
 public:
  JointSaver(JointSave save, Processes run) : save_(std::move(save)), run_(run) {}

  Result<void> run(const std::function<void()>& all_have_come) {
    MESHARD_RETURN_IF_ERROR(meet());
    all_have_come();
    Report report = write();
    MESHARD_RETURN_IF_ERROR(run_.store().put(report_key(run_.rank()), to_packed(report)));
    MESHARD_RETURN_IF_ERROR(run_.barrier(step("written")));
    if (run_.rank() == 0) MESHARD_RETURN_IF_ERROR(decide());
    MESHARD_RETURN_IF_ERROR(run_.barrier(step("published")));
    MESHARD_ASSIGN_OR_RETURN(Report outcome, report_at(run_, kOutcomeKey));
    if (!outcome.failure) return {};
    if (file_) ::unlink(path_.c_str());  // it is not part of a checkpoint
    // A process that fails now ends the others, perhaps before they have removed their files.
    [[maybe_unused]] Result<void> met = run_.barrier(step("removed"));
    return Error(static_cast<ErrorCode>(outcome.failure->first), outcome.failure->second,
                 save_.where);
  }

 private:
  std::string step(std::string_view what) const {
    return cat("checkpoint ", save_.files.one_file(), " (save ", save_.number, "): ", what);
  }

  Result<void> meet() {
    if (run_.rank() == 0) MESHARD_RETURN_IF_ERROR(run_.store().put(kIdKey, new_save_id()));
    // The name is the same for all paths, so processes that save to different ones meet, and get an
    // error that says so.
    MESHARD_RETURN_IF_ERROR(meet_all(cat("save ", save_.number, " of all processes"),
                                     cat("save of ", save_.files.one_file()), save_.where));
    MESHARD_ASSIGN_OR_RETURN(id_, run_.store().get(kIdKey));
    return {};
  }

  Report write() {
    Report report{.path = save_.files.one_file()};
    if (auto* error = std::get_if<Error>(&save_.items)) {
      report.fail(*error);
      return report;
    }
    SaveItems& items = std::get<SaveItems>(save_.items);
    report.tensors = items.tensors;
    if (Result<void> done = write_file(items); !done.ok()) {
      report.fail(done.error());
    } else {
      report.index = items.index.to_json();
    }
    items = {};
    return report;
  }

  Result<void> write_file(SaveItems& items) {
    if (save_.files.names_folder() && ::mkdir(save_.files.folder().c_str(), 0777) != 0 &&
        errno != EEXIST)
      return system_error("create", save_.files.folder());
    if (items.items.empty()) return {};  // nothing of this process
    std::string name = save_.files.piece_file(id_, run_.rank(), run_.size());
    path_ = save_.files.folder() + name;
    Result<NewFile> file =
        caught([&] { return write_items(path_, items, save_.metadata, save_.where); });
    if (!file) return file.error();
    file_.emplace(*std::move(file));
    MESHARD_RETURN_IF_ERROR(file_->commit());
    for (auto& [tensor, where] : items.index.whole) where = name;
    for (auto& [tensor, split] : items.index.split)
      for (auto& [box, part] : split.parts) part.file = name;
    items.index.files[name] = file_->bytes();
    return {};
  }

  // Process 0: the outcome, for all.
  Result<void> decide() {
    Result<CheckpointIndex> index = index_of_all(run_, save_);
    Result<void> published = index.ok() ? publish(save_, *index) : Result<void>(index.error());
    Report outcome;
    if (!published.ok()) outcome.fail(published.error());
    return run_.store().put(kOutcomeKey, to_packed(outcome));
  }

  JointSave save_;
  Processes run_;
  std::string id_, path_;
  std::optional<NewFile> file_;  // locked until the index names it
};

}  // namespace

Result<void> save_jointly(JointSave save, const std::function<void()>& all_have_come) {
  return JointSaver(std::move(save), processes()).run(all_have_come);
}

}  // namespace meshard::io::internal
