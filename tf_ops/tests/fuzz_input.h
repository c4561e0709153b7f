// The bytes of a fuzzer as numbers and shapes. After the last byte all is 0, so
// that any input, the empty one included, is a case.

#ifndef TF_OPS_TESTS_FUZZ_INPUT_H_
#define TF_OPS_TESTS_FUZZ_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tf_ops/core/indices.h"
#include "tf_ops/core/shape.h"

// Unlike CHECK_CASE this aborts, which is what a fuzzer looks for.
#define FUZZ_CHECK(condition)                                       \
  do {                                                              \
    if (!(condition)) {                                             \
      std::fprintf(stderr, "%s:%d: %s fails\n", __FILE__, __LINE__, \
                   #condition);                                     \
      std::abort();                                                 \
    }                                                               \
  } while (false)

namespace tf_stitch_gather::testing {

class FuzzInput {
 public:
  FuzzInput(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  uint8_t Byte() { return at_ < size_ ? data_[at_++] : 0; }

  // In [0, bound), of one byte.
  int64_t Below(int64_t bound) { return Byte() % bound; }

  // Any 64-bit number, those where arithmetic goes wrong most of the time.
  int64_t Number() {
    static constexpr int64_t kNotable[] = {0,
                                           1,
                                           2,
                                           3,
                                           7,
                                           255,
                                           256,
                                           32767,
                                           32768,
                                           65536,
                                           INT32_MAX,
                                           int64_t{1} << 31,
                                           INT64_MAX,
                                           INT64_MIN,
                                           -1,
                                           -2,
                                           -32768,
                                           INT32_MIN,
                                           int64_t{1} << 32,
                                           int64_t{1} << 40,
                                           int64_t{1} << 62,
                                           INT64_MAX - 1,
                                           int64_t{3037000500},
                                           int64_t{1} << 61};
    constexpr int64_t kCount = sizeof(kNotable) / sizeof(kNotable[0]);
    const int64_t choice = Below(kCount + 8);
    if (choice < kCount) return kNotable[choice];
    uint64_t number = 0;
    for (int i = 0; i < 8; ++i) number = number << 8 | Byte();
    return static_cast<int64_t>(number);
  }

  // The dimension of a shape, unknown ones included if asked for.
  int64_t Dim(bool may_be_unknown) {
    if (may_be_unknown && Below(6) == 0) return kUnknown;
    const int64_t number = Number();
    return number < 0 ? Below(5) : number;
  }

  Shape AnyShape(bool may_be_unknown) {
    if (may_be_unknown && Below(12) == 0) return Shape::UnknownRank();
    const int64_t rank =
        Below(16) == 0 ? Below(256) % (kMaxRank + 1) : Below(9);
    Shape shape;
    for (int64_t i = 0; i < rank; ++i) shape.Append(Dim(may_be_unknown));
    return shape;
  }

  std::string Text() {
    std::string text;
    for (int64_t n = Below(24); n > 0; --n) {
      text += static_cast<char>(Byte());
    }
    return text;
  }

  IndexType Type() {
    switch (Below(3)) {
      case 0:
        return IndexType::kInt16;
      case 1:
        return IndexType::kInt32;
      default:
        return IndexType::kInt64;
    }
  }

  // An index, mostly one below `dim`.
  int64_t Index(int64_t dim) {
    return dim > 0 && Below(8) != 0 ? Below(dim) : Number();
  }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t at_ = 0;
};

}  // namespace tf_stitch_gather::testing

#endif  // TF_OPS_TESTS_FUZZ_INPUT_H_
