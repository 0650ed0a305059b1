#include "meshard/io/save.h"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <set>
#include <utility>

#include "meshard/io/file.h"
#include "meshard/io/internal/checkpoint_index.h"
#include "meshard/io/internal/joint_save.h"
#include "meshard/io/internal/save_items.h"
#include "meshard/io/internal/save_queue.h"
#include "meshard/processes/processes.h"

namespace meshard::io {
namespace internal {
namespace {

using Metadata = std::map<std::string, std::string>;
using Named = std::span<const NamedTensors>;
using Outcome = std::shared_ptr<SaveOutcome>;

bool is_joint(const SaveOptions& options) {
  return processes().size() > 1 && !options.this_process_only;
}

Result<void> write_one_file(const CheckpointFiles& files, const SaveItems& items,
                            const Metadata& metadata, SourceLocation where) {
  if (files.names_folder() && ::mkdir(files.folder().c_str(), 0777) != 0 && errno != EEXIST)
    return system_error("create", files.folder());
  MESHARD_ASSIGN_OR_RETURN(NewFile file, write_items(files.one_file(), items, metadata, where));
  MESHARD_RETURN_IF_ERROR(file.commit());
  std::set<std::string> replaced;
  if (files.index_counts()) {
    if (Result<CheckpointIndex> old = CheckpointIndex::read(files.index()); old.ok())
      for (const auto& [name, bytes] : old->files) replaced.insert(name);
    // Until now, the index has been the checkpoint.
    if (::unlink(files.index().c_str()) != 0) return system_error("remove", files.index());
    MESHARD_RETURN_IF_ERROR(flush_folder_of(files.index()));
  }
  files.remove_unused(replaced);
  return {};
}

Outcome add_joint(const std::string& path, JointSave save) {
  static std::atomic<int> saves{0};
  save.number = saves++;
  std::string key = save.files.key();
  auto shared = std::make_shared<JointSave>(std::move(save));
  return SaveQueue::of_process().add(path, std::move(key), true,
                                     [shared](const SaveQueue::AllHaveCome& all_have_come) {
                                       return save_jointly(std::move(*shared), all_have_come);
                                     });
}

Outcome begin_joint(const std::string& path, Named tensors, const Metadata& metadata, bool take,
                    SourceLocation where) {
  JointSave save{CheckpointFiles(path), metadata, 0, SaveItems{}, where};
  try {
    SaveItems items = items_of_process(tensors, processes().rank(), kOwnFile, where);
    if (take) items.take(where);
    save.items = std::move(items);
  } catch (const Error& error) {
    save.items = error;
  }
  return add_joint(path, std::move(save));
}

Outcome begin_alone(const std::string& path, Named tensors, const Metadata& metadata,
                    SourceLocation where) {
  CheckpointFiles files(path);
  auto items = std::make_shared<SaveItems>();
  try {
    *items = items_of_one_file(tensors, where);
    items->take(where);
  } catch (const Error& error) {
    return SaveQueue::of_process().add_failed(path, error.at(where));
  }
  std::string key = files.key();
  return SaveQueue::of_process().add(
      path, std::move(key), false,
      [files = std::move(files), items, metadata, where](const SaveQueue::AllHaveCome&) {
        Result<void> written = write_one_file(files, *items, metadata, where);
        return written.ok() ? written : written.error().at(where);
      });
}

}  // namespace

Result<void> save_in_order(const std::string& path, Named tensors, const Metadata& metadata,
                           const SaveOptions& options, SourceLocation where) {
  if (is_joint(options)) {
    Result<void> saved = begin_joint(path, tensors, metadata, false, where)->wait();
    return saved.ok() ? saved : saved.error().at(where);
  }
  CheckpointFiles files(path);
  SaveQueue::of_process().wait_for(files.key());
  try {
    Result<void> written =
        write_one_file(files, items_of_one_file(tensors, where), metadata, where);
    return written.ok() ? written : written.error().at(where);
  } catch (const Error& error) {
    return error.at(where);
  }
}

Saving save_in_order_async(const std::string& path, Named tensors, const Metadata& metadata,
                           const SaveOptions& options, SourceLocation where) {
  SaveQueue::of_process().wait_for_all();
  return Saving(is_joint(options) ? begin_joint(path, tensors, metadata, true, where)
                                  : begin_alone(path, tensors, metadata, where));
}

Saving save_failed(const std::string& path, Error error, const SaveOptions& options,
                   SourceLocation where) {
  if (!is_joint(options)) return Saving(SaveQueue::of_process().add_failed(path, error.at(where)));
  return Saving(add_joint(path, {CheckpointFiles(path), {}, 0, std::move(error), where}));
}

}  // namespace internal

namespace {

std::vector<internal::NamedTensors> named(const std::map<std::string, Tensor>& tensors) {
  std::vector<internal::NamedTensors> out;
  for (const auto& [name, tensor] : tensors) out.push_back({{name}, tensor, 0});
  return out;
}

}  // namespace

bool Saving::done() const { return !outcome_ || outcome_->done(); }

Result<void> Saving::wait() const { return outcome_ ? outcome_->wait() : Result<void>(); }

Result<void> save(const std::string& path, const std::map<std::string, Tensor>& tensors,
                  const std::map<std::string, std::string>& metadata, const SaveOptions& options,
                  SourceLocation where) {
  return internal::save_in_order(path, named(tensors), metadata, options, where);
}

Saving save_async(const std::string& path, const std::map<std::string, Tensor>& tensors,
                  const std::map<std::string, std::string>& metadata, const SaveOptions& options,
                  SourceLocation where) {
  return internal::save_in_order_async(path, named(tensors), metadata, options, where);
}

}  // namespace meshard::io
