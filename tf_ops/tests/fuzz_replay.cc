// Runs a fuzz target without a fuzzer: on the files that are named, in any
// folder that is named, and on as many random inputs as --random N asks for.
// They are the same on every run.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

void RunFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()),
                         bytes.size());
}

void RunRandom(int64_t count) {
  std::mt19937_64 random(20240101);
  for (int64_t i = 0; i < count; ++i) {
    std::vector<uint8_t> bytes(random() % 400);
    // Small bytes make small shapes, which fit together more often.
    const bool small = random() % 2 == 0;
    for (uint8_t& byte : bytes) {
      byte = static_cast<uint8_t>(random() % (small ? 24 : 256));
    }
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  int64_t inputs = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--random" && i + 1 < argc) {
      const int64_t count = std::strtoll(argv[++i], nullptr, 10);
      RunRandom(count);
      inputs += count;
    } else if (std::filesystem::is_directory(argument)) {
      for (const auto& entry : std::filesystem::directory_iterator(argument)) {
        RunFile(entry.path());
        ++inputs;
      }
    } else if (std::filesystem::is_regular_file(argument)) {
      RunFile(argument);
      ++inputs;
    } else {
      std::fprintf(stderr, "error: %s is no file: name an input\n", argv[i]);
      return 2;
    }
  }
  std::printf("%lld inputs: passed\n", static_cast<long long>(inputs));
  return 0;
}
