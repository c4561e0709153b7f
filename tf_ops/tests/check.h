// What the test programs share: checks that name the case, random cases from a
// seed, and threads.

#ifndef TF_OPS_TESTS_CHECK_H_
#define TF_OPS_TESTS_CHECK_H_

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tf_ops/core/indices.h"
#include "tf_ops/cpu/parallel.h"

namespace tf_stitch_gather::testing {

// More rows than any cache holds, which are written in another way than few.
inline constexpr int64_t kManyRows = int64_t{1} << 40;

// Ends the program with the place and the case when `condition` is false.
#define CHECK_CASE(condition, name)                                        \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s fails for %s\n", __FILE__, __LINE__, \
                   #condition, std::string(name).c_str());                 \
      std::exit(1);                                                        \
    }                                                                      \
  } while (false)

// The first place in `memory` where TensorFlow may begin a tensor, at most
// kTensorAlignment bytes from its beginning.
inline constexpr int64_t kTensorAlignment = 64;

inline char* TensorIn(std::vector<char>& memory) {
  return memory.data() +
         -reinterpret_cast<uintptr_t>(memory.data()) % kTensorAlignment;
}

// Starts threads for each loop, and blocks as small as the loop allows, so
// that little work still crosses threads.
class ThreadWorkers : public Workers {
 public:
  explicit ThreadWorkers(int count) : count_(count) {}

  int count() const override { return count_; }

  void Run(int64_t units, int64_t block,
           const std::function<void(int64_t, int64_t)>& work) override {
    std::vector<std::thread> threads;
    threads.reserve(count_);
    for (int t = 0; t < count_; ++t) {
      threads.emplace_back([=, &work] {
        for (int64_t at = t * block; at < units; at += count_ * block) {
          work(at, std::min(at + block, units));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  int count_;
};

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  int64_t Below(int64_t bound) {
    return std::uniform_int_distribution<int64_t>(0, bound - 1)(engine_);
  }

 private:
  std::mt19937_64 engine_;
};

// Indices of any type from 64-bit values.
class IndexTensor {
 public:
  IndexTensor(IndexType type, const std::vector<int64_t>& values)
      : type_(type) {
    VisitIndexType(type, [&](auto zero) {
      using Index = decltype(zero);
      bytes_.resize(values.size() * sizeof(Index));
      Index* to = reinterpret_cast<Index*>(bytes_.data());
      for (size_t i = 0; i < values.size(); ++i) {
        to[i] = static_cast<Index>(values[i]);
      }
    });
  }

  Indices indices() const { return {bytes_.data(), type_}; }

 private:
  IndexType type_;
  std::vector<char> bytes_;
};

inline constexpr IndexType kIndexTypes[] = {
    IndexType::kInt16, IndexType::kInt32, IndexType::kInt64};

}  // namespace tf_stitch_gather::testing

#endif  // TF_OPS_TESTS_CHECK_H_
