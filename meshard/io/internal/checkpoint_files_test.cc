#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "meshard/io/internal/checkpoint_index.h"
#include "meshard/io/io_testutil.h"

namespace meshard::io::internal {
namespace {

using CheckpointFilesTest = InFolder;

constexpr const char* kId = "0123456789abcdef";

TEST_F(CheckpointFilesTest, NamesFollowThePath) {
  CheckpointFiles plain("a/run.safetensors"), bare("step100"),
      index("a/run.safetensors.index.json");
  EXPECT_EQ(plain.one_file(), "a/run.safetensors");
  EXPECT_EQ(plain.index(), "a/run.safetensors.index.json");
  EXPECT_EQ(plain.folder() + plain.piece_file(kId, 0, 4),
            "a/run-0123456789abcdef-00001-of-00004.safetensors");
  EXPECT_EQ(bare.piece_file(kId, 123456, 200000),
            "step100-0123456789abcdef-123457-of-200000.safetensors");
  EXPECT_EQ(bare.folder(), "");
  EXPECT_EQ(index.one_file(), "a/run.safetensors");
  for (const std::string& path : {in_folder(""), in_folder("new/")})
    EXPECT_EQ(CheckpointFiles(path).one_file(), path + "model.safetensors");
  EXPECT_TRUE(CheckpointFiles(in_folder("")).names_folder());
  EXPECT_FALSE(plain.names_folder());
  EXPECT_EQ(CheckpointFiles("./a/../b").key(), CheckpointFiles("b").key());
  EXPECT_NE(CheckpointFiles("a").key(), CheckpointFiles("b").key());
}

TEST_F(CheckpointFilesTest, OnlyFilesOfItsWritersAreRecognized) {
  CheckpointFiles files("a/run.safetensors");
  for (const char* name : {"run-0123456789abcdef-00001-of-00004.safetensors",
                           "run-0123456789abcdef-100001-of-200000.safetensors",
                           "run-0123456789abcdef-00001-of-00004.safetensors.part-12-0"})
    EXPECT_TRUE(files.is_piece_file(name)) << name;
  for (const char* name :
       {"run.safetensors", "run.safetensors.index.json", "run-00001-of-00004.safetensors",
        "runs-0123456789abcdef-00001-of-00004.safetensors",
        "run-0123456789abcdeg-00001-of-00004.safetensors",
        "run-0123456789abcdef-1-of-00004.safetensors", "run-0123456789abcdef-00001-of-00004.bin",
        "run-0123456789abcdef-00001-of-00004.safetensors.bak", ""})
    EXPECT_FALSE(files.is_piece_file(name)) << name;
  EXPECT_NE(new_save_id(), new_save_id());
  EXPECT_TRUE(files.is_piece_file(files.piece_file(new_save_id(), 1, 2)));
}

TEST_F(CheckpointFilesTest, WhatNobodyNeedsIsRemoved) {
  CheckpointFiles files(in_folder("run.safetensors"));
  std::string named = files.piece_file(kId, 0, 4), old = files.piece_file(kId, 1, 4),
              locked = files.piece_file(kId, 2, 4),
              part = files.piece_file(kId, 3, 4) + ".part-1-0";
  for (const std::string& name : {named, old, locked, part, std::string("run-other.safetensors"),
                                  std::string("run.safetensors.part-1-0"),
                                  std::string("run.safetensors.index.json.part-1-0")})
    written(name, "x");
  written("run.safetensors.index.json", "{\"weight_map\":{\"w\":\"" + named + "\"}}");
  int file = ::open(in_folder(locked).c_str(), O_RDWR);
  ASSERT_EQ(::flock(file, LOCK_EX), 0);
  auto left = [&] {
    std::set<std::string> names;
    for (const auto& each : std::filesystem::directory_iterator(folder_))
      names.insert(each.path().filename().string());
    return names;
  };
  std::set<std::string> kept{named, locked, "run-other.safetensors", "run.safetensors.index.json"};
  files.remove_unused({});
  EXPECT_EQ(left(), kept);
  files.remove_unused({locked});  // whoever writes it is at work
  EXPECT_EQ(left(), kept);
  ::close(file);
  written("run.safetensors.index.json", "not an index");
  files.remove_unused({});  // which files are needed is unknown
  EXPECT_EQ(left(), kept);
  std::filesystem::remove(in_folder("run.safetensors.index.json"));
  files.remove_unused({});
  EXPECT_EQ(left(), std::set<std::string>{"run-other.safetensors"});
}

}  // namespace
}  // namespace meshard::io::internal
