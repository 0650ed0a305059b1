// Runs a fuzz program without libFuzzer: on every file of a folder, then on mutations of them.
// usage: x_fuzz CORPUS_FOLDER. MESHARD_TEST_SEED=n selects other mutations.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

constexpr int kMutations = 20000;

void run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

/// Changes, inserts, overwrites, removes or repeats a piece; sometimes copies a piece of another
/// input.
std::string mutate(const std::vector<std::string>& corpus, std::mt19937_64& random) {
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  static const std::string kUseful = "0123456789-,:()[]{}\"=?abxz_ \n";
  std::string text = corpus[below(corpus.size())];
  for (std::size_t step = below(4) + 1; step > 0; --step) {
    const std::size_t at = below(text.size() + 1);
    switch (below(6)) {
      case 0: text.insert(at, 1, kUseful[below(kUseful.size())]); break;
      case 1: text.erase(at, below(3) + 1); break;
      case 2: text.insert(at, text.substr(at, below(8) + 1)); break;
      case 3: text.insert(at, 1, static_cast<char>(below(256))); break;
      case 4:  // in place, so that lengths in a binary message stay valid
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      default: text.insert(at, corpus[below(corpus.size())].substr(0, below(8) + 1)); break;
    }
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> corpus;
  if (argc == 2) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(argv[1])) files.push_back(entry);
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
      std::ifstream in(file, std::ios::binary);
      corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
  }
  if (corpus.empty()) {
    std::fprintf(stderr, "usage: %s CORPUS_FOLDER (with at least one file)\n", argv[0]);
    return 2;
  }
  const char* seed = std::getenv("MESHARD_TEST_SEED");
  std::mt19937_64 random(seed == nullptr ? 20240229 : std::strtoull(seed, nullptr, 10));
  for (const std::string& input : corpus) run(input);
  for (int i = 0; i < kMutations; ++i) run(mutate(corpus, random));
  std::printf("%zu inputs and %d mutations\n", corpus.size(), kMutations);
  return 0;
}
