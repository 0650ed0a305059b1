// meshard-reference: writes docs/reference, or checks that it is up to date.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "meshard/base/error.h"
#include "meshard/ops/definition/op_table.h"
#include "tools/reference/op_page.h"
#include "tools/reference/quirk_page.h"

namespace {

namespace fs = std::filesystem;

// File name -> text.
std::map<std::string, std::string> all_pages() {
  std::map<std::string, std::string> pages = {{"README.md", meshard::tool::index_page()},
                                              {"composites.md", meshard::tool::composites_page()},
                                              {"quirks.md", meshard::tool::quirks_page()}};
  for (const meshard::OpDef* op : meshard::all_ops())
    pages[std::string(op->name) + ".md"] = meshard::tool::op_page(*op);
  return pages;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Prints the pages of `folder` that are out of date; returns their number.
int check(const fs::path& folder) {
  auto pages = all_pages();
  int wrong = 0;
  auto say = [&](const std::string& name, const char* what) {
    std::printf("%s: %s\n", (folder / name).c_str(), what);
    ++wrong;
  };
  for (const auto& [name, text] : pages) {
    if (!fs::exists(folder / name))
      say(name, "missing");
    else if (read(folder / name) != text)
      say(name, "out of date");
  }
  if (fs::is_directory(folder))
    for (const auto& entry : fs::directory_iterator(folder))
      if (!pages.count(entry.path().filename()))
        say(entry.path().filename(), "does not belong to an op");
  if (wrong) std::printf("`./dev docs` rewrites these pages\n");
  return wrong;
}

bool write(const fs::path& folder) {
  auto pages = all_pages();
  fs::create_directories(folder);
  for (const auto& [name, text] : pages) {
    std::ofstream file(folder / name, std::ios::binary);
    if (!(file << text).flush()) {
      std::fprintf(stderr, "cannot write %s\n", (folder / name).c_str());
      return false;
    }
  }
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".md" && !pages.count(entry.path().filename()))
      std::printf("%s does not belong to an op; delete it\n", entry.path().c_str());
  std::printf("%zu pages\n", pages.size());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::string first = argc > 1 ? argv[1] : "";
  try {
    if (argc == 3 && first == "--check") return check(argv[2]) == 0 ? 0 : 1;
    if (argc == 2 && !first.starts_with("-")) return write(argv[1]) ? 0 : 1;
  } catch (const std::exception& error) {  // an Error, or an error of the file system
    std::fprintf(stderr, "meshard-reference: %s\n", error.what());
    return 1;
  }
  std::fprintf(stderr, "usage: meshard-reference FOLDER | meshard-reference --check FOLDER\n");
  return 2;
}
