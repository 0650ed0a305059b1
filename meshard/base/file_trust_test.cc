#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "meshard/base/file_cache.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

namespace fs = std::filesystem;

constexpr FileReader kAnn{1000};
constexpr FileReader kRoot{0};

FileFacts trusted_file(uid_t owner, mode_t mode = 0644) {
  return {"/cache/x.so", owner, owner, S_IFREG | mode, true};
}
FileFacts trusted_folder(uid_t owner, mode_t mode = 0755) {
  return {"/cache", owner, owner, S_IFDIR | mode, true};
}
bool trusts(const FileReader& reader, const std::vector<FileFacts>& chain) {
  return judge_trust(chain, reader).ok();
}

TEST(FileTrust, FilesOfThisUserAndOfRoot) {
  EXPECT_TRUE(trusts(kAnn, {trusted_file(1000), trusted_folder(1000), trusted_folder(0)}));
  EXPECT_TRUE(trusts(kAnn, {trusted_file(0), trusted_folder(0)}));
  EXPECT_FALSE(trusts(kAnn, {trusted_file(1001), trusted_folder(1000)}));
  EXPECT_FALSE(trusts(kAnn, {trusted_file(1000), trusted_folder(1001)}));
  EXPECT_FALSE(trusts(kAnn, {trusted_file(65534), trusted_folder(1000)}));
}

// A container in which root runs files that one user of the host installed.
TEST(FileTrust, RootAcceptsOneOtherUser) {
  EXPECT_TRUE(trusts(kRoot, {trusted_file(1000), trusted_folder(1000), trusted_folder(0)}));
  EXPECT_FALSE(trusts(kRoot, {trusted_file(1000), trusted_folder(1001), trusted_folder(0)}));
  EXPECT_FALSE(trusts(kRoot, {trusted_file(1000, 0666), trusted_folder(1000)}));
}

TEST(FileTrust, NobodyElseMayWrite) {
  EXPECT_FALSE(trusts(kAnn, {trusted_file(1000, 0646), trusted_folder(1000)}));
  EXPECT_FALSE(trusts(kAnn, {trusted_file(1000, 0664), trusted_folder(1000)}));
  EXPECT_FALSE(trusts(kAnn, {trusted_file(1000), trusted_folder(1000, 0777)}));
  EXPECT_FALSE(trusts(kAnn, {trusted_file(1000), trusted_folder(1000, 0775)}));
  FileFacts private_group = trusted_folder(1000, 0775);
  private_group.group_has_strangers = false;
  EXPECT_TRUE(trusts(kAnn, {trusted_file(1000), private_group}));
}

TEST(FileTrust, AStickyFolderKeepsFilesOfOthersButIsNoCache) {
  EXPECT_TRUE(trusts(kAnn, {trusted_file(1000), trusted_folder(0, 01777)}));
  EXPECT_FALSE(trusts(kAnn, {trusted_file(1001), trusted_folder(0, 01777)}));
  EXPECT_FALSE(trusts(kAnn, {trusted_folder(0, 01777)}));
}

// In a user namespace, the owner of `/` may be a user outside the namespace.
TEST(FileTrust, FoldersOfUsersOutsideTheNamespace) {
  FileReader inside{1000, true, 65534};
  EXPECT_TRUE(trusts(inside, {trusted_file(1000), trusted_folder(65534)}));
  EXPECT_FALSE(trusts(inside, {trusted_file(65534), trusted_folder(1000)}));
  EXPECT_FALSE(trusts(inside, {trusted_file(1000), trusted_folder(65534, 0777)}));
}

TEST(FileTrust, TheErrorNamesPathOwnerAndMode) {
  auto judged = judge_trust({trusted_file(4999, 0664)}, {4999});
  ASSERT_FALSE(judged.ok());
  EXPECT_TRUE(
      throws_error([&] { judged.value(); }, ErrorCode::kPermissionDenied,
                   {"/cache/x.so", "user 4999", "0664", "group 4999", "MESHARD_TRUST_FILES"}));
}

class FileTrustOnDisk : public testing::Test {
 protected:
  FileTrustOnDisk() {
    std::string name = (fs::temp_directory_path() / "meshard-trust-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    std::ofstream(root_ / "file") << "x";
    ::chmod((root_ / "file").c_str(), 0644);
    ::unsetenv("MESHARD_TRUST_FILES");
  }
  ~FileTrustOnDisk() override { fs::remove_all(root_); }
  fs::path root_;
};

TEST_F(FileTrustOnDisk, ModesOfFileAndFolder) {
  std::string file = (root_ / "file").string();
  if (!check_file_trust(root_.string()).ok())
    GTEST_SKIP() << check_file_trust(root_.string()).error().message();
  EXPECT_TRUE(check_file_trust(file).ok());
  ::chmod(file.c_str(), 0646);
  EXPECT_TRUE(throws_error([&] { check_file_trust(file).value(); }, ErrorCode::kPermissionDenied,
                           {file, "0646", "every user can write it"}));
  ::chmod(file.c_str(), 0644);
  ::chmod(root_.c_str(), 0777);
  EXPECT_TRUE(throws_error([&] { check_file_trust(file).value(); }, ErrorCode::kPermissionDenied,
                           {root_.string(), "0777"}));
  // Files that will be created in such a folder are not safe either.
  EXPECT_FALSE(check_file_trust((root_ / "not" / "there").string()).ok());
  ::setenv("MESHARD_TRUST_FILES", "1", 1);
  EXPECT_TRUE(check_file_trust(file).ok());
  ::unsetenv("MESHARD_TRUST_FILES");
}

TEST_F(FileTrustOnDisk, LinksAreFollowed) {
  if (!check_file_trust(root_.string()).ok())
    GTEST_SKIP() << check_file_trust(root_.string()).error().message();
  fs::create_directory(root_ / "open");
  std::ofstream(root_ / "open/file") << "x";
  ::chmod((root_ / "open").c_str(), 0777);
  fs::create_symlink(root_ / "open/file", root_ / "link");
  EXPECT_FALSE(check_file_trust((root_ / "link").string()).ok());
}

TEST(FileTrust, NoFile) { EXPECT_TRUE(check_file_trust("/no/such/file").ok()); }

}  // namespace
}  // namespace meshard
