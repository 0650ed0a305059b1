#include "meshard/pjrt/plugin_hash.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>

#include "meshard/base/cat.h"
#include "meshard/base/part_file.h"
#include "meshard/base/sha256.h"

namespace meshard::pjrt {
namespace {

constexpr std::string_view kHeader = "meshard fetched 1";

std::optional<FetchedRecord> describe(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return std::nullopt;
  return FetchedRecord{"", about.st_size,
                       std::int64_t{about.st_mtim.tv_sec} * 1000000000 + about.st_mtim.tv_nsec,
                       about.st_uid};
}

Result<std::string> sha256_of_file(const std::string& path) {
  std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "rbe"), std::fclose);
  if (!file) return Error(ErrorCode::kUnavailable, cat("[plugin] cannot read ", path));
  Sha256 hash;
  std::string bytes(1 << 20, '\0');
  while (std::size_t count = std::fread(bytes.data(), 1, bytes.size(), file.get()))
    hash.add(std::string_view(bytes).substr(0, count));
  if (std::ferror(file.get()) != 0)
    return Error(ErrorCode::kUnavailable, cat("[plugin] cannot read ", path));
  return hash.digits();
}

// Replaces the record atomically. In a read-only folder the old record stays, and the next load
// hashes the file again.
void replace_record(const std::string& path, const FetchedRecord& record) {
  PartFile part = PartFile::create(path, 0644);
  std::string text = record.to_string();
  if (part.file() >= 0 &&
      ::write(part.file(), text.data(), text.size()) == static_cast<ssize_t>(text.size()))
    (void)part.commit();
}

}  // namespace

Result<FetchedRecord> FetchedRecord::parse(std::string_view text) {
  FetchedRecord record;
  std::istringstream lines{std::string(text)};
  std::string header, names[4];
  std::getline(lines, header);
  lines >> names[0] >> record.sha256 >> names[1] >> record.size >> names[2] >> record.time >>
      names[3] >> record.owner;
  bool whole = lines && header == kHeader && names[0] == "sha256" && names[1] == "size" &&
               names[2] == "time" && names[3] == "owner" && record.sha256.size() == 64;
  if (!whole)
    return Error(ErrorCode::kDataLoss, "[plugin] the record of a fetched file is damaged");
  return record;
}

std::string FetchedRecord::to_string() const {
  return cat(kHeader, "\nsha256 ", sha256, "\nsize ", size, "\ntime ", time, "\nowner ", owner,
             "\n");
}

Result<FetchedState> check_fetched_file(const std::string& path) {
  std::string record_path = path + ".fetched";
  std::ifstream file(record_path, std::ios::binary);
  if (!file) return FetchedState::kNoRecord;
  constexpr const char* kAgain = "; remove both and fetch it again with `meshard fetch`";
  auto record = FetchedRecord::parse(std::string(std::istreambuf_iterator<char>(file), {}));
  if (!record.ok())
    return Error(ErrorCode::kDataLoss, cat("[plugin] ", record_path, " is damaged", kAgain));
  auto found = describe(path);
  if (!found) return Error(ErrorCode::kNotFound, cat("[plugin] there is no file ", path));
  found->sha256 = record->sha256;
  if (*found == *record) return FetchedState::kUnchanged;
  MESHARD_ASSIGN_OR_RETURN(std::string hash, sha256_of_file(path));
  if (hash != record->sha256)
    return Error(ErrorCode::kDataLoss,
                 cat("[plugin] ", path, " changed since it was fetched: its SHA-256 is ", hash,
                     ", ", record_path, " says ", record->sha256, kAgain));
  replace_record(record_path, *found);
  return FetchedState::kHashChecked;
}

}  // namespace meshard::pjrt
