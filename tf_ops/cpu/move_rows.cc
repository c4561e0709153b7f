#include "tf_ops/cpu/move_rows.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include <cstdint>
#include <limits>

#include "tf_ops/core/checked_math.h"
#include "tf_ops/cpu/copy_bytes.h"
#include "tf_ops/cpu/fetch_ahead.h"
#include "tf_ops/cpu/multiversion.h"

namespace tf_stitch_gather {
namespace {

template <typename Row, bool kMayBeNone>
void Move(const RowAddress* sources, int64_t count, int64_t known,
          int64_t row_bytes, char* dst) {
  const int64_t bytes = Row::Bytes(row_bytes);
  const int64_t fetch_ahead = FetchAhead(bytes);
  for (int64_t i = 0; i < count; ++i, dst += bytes) {
    if (i + fetch_ahead < known) Fetch(sources[i + fetch_ahead], bytes);
    if (kMayBeNone && sources[i] == kNoRow) {
      Row::Clear(bytes, dst);
    } else {
      Row::Copy(reinterpret_cast<const char*>(sources[i]), bytes, dst);
    }
  }
}

#ifdef __x86_64__

// Outputs of so many bytes are written past the caches: what the allocator
// hands out is seldom in them, and then each line would be read first. Where
// nothing was in a cache before, a gather and what then read its result took 3
// to 20 % less so, from 2.6 MB on. Where all was, they took up to 37 % longer
// with 2.6 MB, and from 8 MB on about as long. Wide rows gained only from 12 MB
// on.
constexpr int64_t kMinStreamedBytes = int64_t{2} << 20;
constexpr int64_t kMinWideStreamedBytes = int64_t{12} << 20;
constexpr int64_t kWideRowBytes = 1024;

// What one store writes, and how a loop of such stores is run. Of 64 MB, a
// random row of 64 bytes took two threads 6.0 ns by plain stores, 3.9 by SSE2's
// and 3.7 by AVX2's; of 26 MB, one of 256 bytes 15, 12 and 10; of 41 MB, one of
// 4 KB 186, 189 and 151.
struct Sse2Store {
  using Vector = __m128i;
  static constexpr int64_t kMaxRowBytes = kWideRowBytes;
  static void Copy(const char* from, char* to) {
    _mm_stream_si128(reinterpret_cast<Vector*>(to),
                     _mm_loadu_si128(reinterpret_cast<const Vector*>(from)));
  }
  static void Clear(char* to) {
    _mm_stream_si128(reinterpret_cast<Vector*>(to), _mm_setzero_si128());
  }
  template <typename Loop>
  static void Run(const Loop& loop) {
    loop();
  }
};

struct Avx2Store {
  using Vector = __m256i;
  static constexpr int64_t kMaxRowBytes = std::numeric_limits<int64_t>::max();
  __attribute__((target("avx2"))) static void Copy(const char* from, char* to) {
    _mm256_stream_si256(
        reinterpret_cast<Vector*>(to),
        _mm256_loadu_si256(reinterpret_cast<const Vector*>(from)));
  }
  __attribute__((target("avx2"))) static void Clear(char* to) {
    _mm256_stream_si256(reinterpret_cast<Vector*>(to), _mm256_setzero_si256());
  }
  template <typename Loop>
  static void Run(const Loop& loop) {
    RunWithAvx2(loop);
  }
};

// A row of kBytes, or of any multiple of a store's bytes where that is 0.
template <typename Store, int kBytes>
struct StreamedRow {
  static constexpr int64_t kStep = sizeof(typename Store::Vector);
  static constexpr int64_t Bytes(int64_t bytes) {
    return kBytes > 0 ? kBytes : bytes;
  }
  static void Copy(const char* from, int64_t bytes, char* to) {
    for (int64_t at = 0; at < Bytes(bytes); at += kStep) {
      Store::Copy(from + at, to + at);
    }
  }
  static void Clear(int64_t bytes, char* to) {
    for (int64_t at = 0; at < Bytes(bytes); at += kStep) Store::Clear(to + at);
  }
};

template <typename Store, int kBytes, bool kMayBeNone>
void MoveStreamed(const RowAddress* sources, int64_t count, int64_t known,
                  int64_t row_bytes, char* dst) {
  if (reinterpret_cast<uintptr_t>(dst) % sizeof(typename Store::Vector) != 0) {
    Move<AnyRow, kMayBeNone>(sources, count, known, row_bytes, dst);
    return;
  }
  Store::Run([=] {
    Move<StreamedRow<Store, kBytes>, kMayBeNone>(sources, count, known,
                                                 row_bytes, dst);
  });
  _mm_sfence();  // No lock that is given up orders these stores.
}

template <typename Store>
bool IsStreamed(int64_t row_bytes, int64_t rows) {
  constexpr int64_t kStep = sizeof(typename Store::Vector);
  const int64_t bytes =
      row_bytes > kWideRowBytes ? kMinWideStreamedBytes : kMinStreamedBytes;
  return row_bytes >= kCacheLine && row_bytes <= Store::kMaxRowBytes &&
         row_bytes % kStep == 0 && rows >= CeilDivide(bytes, row_bytes);
}

template <typename Store, bool kMayBeNone>
MoveRowsFn SelectMoveStreamed(int64_t row_bytes) {
  switch (row_bytes) {
    case 64:
      return &MoveStreamed<Store, 64, kMayBeNone>;
    case 128:
      return &MoveStreamed<Store, 128, kMayBeNone>;
    case 256:
      return &MoveStreamed<Store, 256, kMayBeNone>;
    default:
      return &MoveStreamed<Store, 0, kMayBeNone>;
  }
}

#endif  // __x86_64__

template <bool kMayBeNone>
MoveRowsFn SelectMove(int64_t row_bytes, [[maybe_unused]] int64_t rows) {
#ifdef __x86_64__
  if (UsesAvx2() && IsStreamed<Avx2Store>(row_bytes, rows)) {
    return SelectMoveStreamed<Avx2Store, kMayBeNone>(row_bytes);
  }
  if (IsStreamed<Sse2Store>(row_bytes, rows)) {
    return SelectMoveStreamed<Sse2Store, kMayBeNone>(row_bytes);
  }
#endif
  return VisitRow(row_bytes, [](auto row) -> MoveRowsFn {
    return &Move<decltype(row), kMayBeNone>;
  });
}

}  // namespace

RowMover ByteRowMover(int64_t row_bytes, int64_t rows) {
  RowMover mover;
  mover.move = SelectMove<true>(row_bytes, rows);
  mover.move_all = SelectMove<false>(row_bytes, rows);
  mover.row_bytes = row_bytes;
  mover.row_ns = cost::Row(row_bytes);
  mover.plain_bytes = true;
  return mover;
}

}  // namespace tf_stitch_gather
