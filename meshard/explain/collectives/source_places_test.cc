#include "meshard/explain/collectives/source_places.h"

#include <gtest/gtest.h>

namespace meshard {
namespace {

const char* const kFlax = "/opt/venv/lib/python3.12/site-packages/flax/linen/linear.py";

HloMetadata metadata_of(const HloModule& module, std::int64_t frame) {
  const HloFrame& one = module.frames[static_cast<std::size_t>(frame - 1)];
  return {.op_name = "jit(step)/add",
          .source_file = one.file,
          .source_line = one.line,
          .stack_frame = frame};
}

HloModule module_with(std::vector<HloFrame> frames) {
  HloModule module;
  module.frames = std::move(frames);
  return module;
}

TEST(SourcePlaces, LibraryFiles) {
  EXPECT_TRUE(is_library_file(kFlax));
  EXPECT_TRUE(is_library_file("/usr/lib/python3/dist-packages/numpy/core.py"));
  EXPECT_TRUE(is_library_file("/usr/lib/python3.12/functools.py"));
  EXPECT_TRUE(is_library_file("/home/me/jax/jax/_src/lax/lax.py"));
  EXPECT_TRUE(is_library_file("<frozen runpy>"));
  EXPECT_FALSE(is_library_file("/home/me/train.py"));
  EXPECT_FALSE(is_library_file("train.py"));
  EXPECT_FALSE(is_library_file("/home/me/lib/model.py"));
}

TEST(SourcePlaces, TheInnermostFrameOfTheUser) {
  // main calls the model, which calls flax.
  HloModule module = module_with({{"/home/me/train.py", "main", 88, 0},
                                  {"/home/me/model.py", "Block.__call__", 15, 1},
                                  {kFlax, "Dense.__call__", 287, 2}});
  SourcePlaces places(module);
  EXPECT_EQ(places.of(metadata_of(module, 3)), (SourcePlace{"model.py:15", "linear.py:287"}));
  EXPECT_EQ(places.of(metadata_of(module, 2)), (SourcePlace{"model.py:15", ""}));
}

TEST(SourcePlaces, WithoutAFrameOfTheUserTheInnermostLine) {
  HloModule module = module_with({{kFlax, "Dense.__call__", 287, 0}});
  EXPECT_EQ(SourcePlaces(module).of(metadata_of(module, 1)), (SourcePlace{"linear.py:287", ""}));
  EXPECT_EQ(SourcePlaces().of(metadata_of(module, 1)), (SourcePlace{"linear.py:287", ""}));
  EXPECT_EQ(SourcePlaces(module).of({}), SourcePlace());
}

TEST(SourcePlaces, ACycleOfFramesEnds) {
  HloModule module = module_with({{kFlax, "a", 1, 2}, {kFlax, "b", 2, 1}});
  EXPECT_EQ(SourcePlaces(module).of(metadata_of(module, 1)), (SourcePlace{"linear.py:1", ""}));
}

TEST(SourcePlaces, FilesWithOneNameAreToldApart) {
  HloModule module = module_with({{"/p/a/layers.py", "", 1, 0},
                                  {"/p/b/layers.py", "", 2, 0},
                                  {"/q/b/layers.py", "", 3, 0},
                                  {"/p/train.py", "", 4, 0}});
  SourcePlaces places(module);
  EXPECT_EQ(places.of(metadata_of(module, 1)).place, "p/a/layers.py:1");
  EXPECT_EQ(places.of(metadata_of(module, 2)).place, "p/b/layers.py:2");
  EXPECT_EQ(places.of(metadata_of(module, 3)).place, "q/b/layers.py:3");
  EXPECT_EQ(places.of(metadata_of(module, 4)).place, "train.py:4");
}

}  // namespace
}  // namespace meshard
