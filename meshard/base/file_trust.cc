#include "meshard/base/file_trust.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "meshard/base/cat.h"

namespace meshard {
namespace {

namespace fs = std::filesystem;

std::string account_name(uid_t user) {
  std::vector<char> space(1 << 14);
  passwd entry{}, *found = nullptr;
  if (::getpwuid_r(user, &entry, space.data(), space.size(), &found) != 0 || found == nullptr)
    return "";
  return entry.pw_name;
}

std::string owner_text(uid_t user) {
  std::string name = account_name(user);
  return name.empty() ? cat("user ", user) : cat("user ", name, " (", user, ")");
}

std::string mode_text(mode_t mode) {
  char digits[16];
  std::snprintf(digits, sizeof digits, "%04o", static_cast<unsigned>(mode & 07777));
  return digits;
}

// Checks both the group's member list and the accounts that have it as their primary group.
bool has_strangers(gid_t group, uid_t owner) {
  std::vector<char> space(1 << 16);
  struct group entry {};
  struct group* found = nullptr;
  if (::getgrgid_r(group, &entry, space.data(), space.size(), &found) != 0 || found == nullptr)
    return true;
  std::string own_name = account_name(owner), reader_name = account_name(::geteuid());
  auto is_trusted = [&](std::string_view name) {
    return name == "root" || name == own_name || name == reader_name;
  };
  for (char** member = entry.gr_mem; *member != nullptr; ++member)
    if (!is_trusted(*member)) return true;
  std::unique_ptr<FILE, int (*)(FILE*)> accounts(std::fopen("/etc/passwd", "re"), std::fclose);
  if (!accounts) return true;
  std::vector<char> account_space(1 << 14);
  passwd account{}, *next = nullptr;
  while (::fgetpwent_r(accounts.get(), &account, account_space.data(), account_space.size(),
                       &next) == 0)
    if (account.pw_gid == group && !is_trusted(account.pw_name)) return true;
  return false;
}

std::optional<FileFacts> facts_of(const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return std::nullopt;
  FileFacts facts{path, about.st_uid, about.st_gid, about.st_mode, true};
  if ((about.st_mode & S_IWGRP) != 0)
    facts.group_has_strangers = has_strangers(about.st_gid, about.st_uid);
  return facts;
}

// A user namespace that does not map all users shows the owner of every unmapped user's file as one
// overflow uid.
FileReader this_reader() {
  FileReader reader{::geteuid()};
  std::ifstream map("/proc/self/uid_map");
  unsigned inside = 0, outside = 0, count = 0;
  if (map >> inside >> outside >> count)
    reader.has_unmapped_users = !(inside == 0 && outside == 0 && count == 4294967295u);
  std::ifstream("/proc/sys/kernel/overflowuid") >> reader.unmapped_user;
  return reader;
}

Error untrusted(const FileFacts& facts, std::string_view why) {
  return Error(ErrorCode::kPermissionDenied,
               cat("[files] ", facts.path, " is not trusted: ", why, "; it belongs to ",
                   owner_text(facts.owner), " and has mode ", mode_text(facts.mode),
                   ". Change its owner or mode, or set MESHARD_TRUST_FILES=1 if this file system "
                   "has no owners"));
}

}  // namespace

Result<void> judge_trust(const std::vector<FileFacts>& chain, const FileReader& reader) {
  std::optional<uid_t> installer;
  for (const FileFacts& facts : chain) {
    bool unmapped = reader.has_unmapped_users && facts.owner == reader.unmapped_user &&
                    S_ISDIR(facts.mode) && &facts != &chain.front();
    if (facts.owner != 0 && facts.owner != reader.user && !unmapped) {
      if (reader.user != 0) return untrusted(facts, "another user owns it");
      if (installer && *installer != facts.owner)
        return untrusted(facts, cat("its owner differs from ", owner_text(*installer),
                                    ", who owns files in it"));
      installer = facts.owner;
    }
    bool sticky_folder = S_ISDIR(facts.mode) && (facts.mode & S_ISVTX) != 0;
    if (sticky_folder && &facts != &chain.front()) continue;
    if ((facts.mode & S_IWOTH) != 0) return untrusted(facts, "every user can write it");
    if ((facts.mode & S_IWGRP) != 0 && facts.group_has_strangers)
      return untrusted(facts, cat("the members of group ", facts.group, " can write it"));
  }
  return {};
}

Result<void> check_file_trust(const std::string& path) {
  // Not in a setuid program: the caller would choose what it trusts.
  if (const char* all = ::secure_getenv("MESHARD_TRUST_FILES"); all && std::string_view(all) == "1")
    return {};
  std::error_code error;
  fs::path real = fs::weakly_canonical(fs::absolute(path, error), error);
  std::vector<FileFacts> chain;
  for (fs::path at = real;; at = at.parent_path()) {
    if (auto facts = facts_of(at.string())) chain.push_back(*std::move(facts));
    if (at == at.parent_path()) break;
  }
  if (error || chain.empty())
    return Error(ErrorCode::kNotFound,
                 cat("[files] cannot resolve the path ", path, ": ", error.message()));
  return judge_trust(chain, this_reader());
}

}  // namespace meshard
