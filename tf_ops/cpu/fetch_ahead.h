// Fetching rows from memory before they are used.

#ifndef TF_OPS_CPU_FETCH_AHEAD_H_
#define TF_OPS_CPU_FETCH_AHEAD_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "tf_ops/cpu/find_rows.h"
#include "tf_ops/cpu/read_once.h"

namespace tf_stitch_gather {

inline constexpr int64_t kCacheLine = 64;

// Rows are fetched into the second-level cache, which waits for more of them
// at a time than the first does: random rows of 64 bytes from 64 MB took 5 to 6
// ns in place of 11 to 15, and from 6 MB, out of the caches, 6 in place of 10.
// A shorter list than this many rows, or bytes, gained less.
inline constexpr int64_t kMaxFetchAhead = 96;
inline constexpr int64_t kMinFetchAhead = 16;
inline constexpr int64_t kBytesAhead = int64_t{8} << 10;

// Of a wide row, so much is fetched; the hardware follows from there.
inline constexpr int64_t kMaxFetchedBytes = int64_t{1} << 10;

// From memory of so many bytes, narrow rows are fetched ahead, too: where it is
// in no cache, 4 to 16 bytes of 400 KB to 40 MB took 1.8 to 6 ns in place
// of 2.3 to 9. Where it is, that costs 0.1 ns.
inline constexpr int64_t kMinFetchedFrom = int64_t{256} << 10;

// How many rows ahead a row of `row_bytes` is fetched.
constexpr int64_t FetchAhead(int64_t row_bytes) {
  return std::clamp(kBytesAhead / std::max<int64_t>(row_bytes, 1),
                    kMinFetchAhead, kMaxFetchAhead);
}

// Fetches a line for each step of kCacheLine in [address, address + bytes).
inline void FetchLines(uint64_t address, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += kCacheLine) {
    __builtin_prefetch(reinterpret_cast<const void*>(address + at), 0, 2);
  }
}

// Fetches a row of `bytes` from an address, given as a number: it may be that
// of no row, or of one that an unchecked index names, to which no pointer adds.
inline void Fetch(uint64_t address, int64_t bytes) {
  const int64_t end = std::min(bytes, kMaxFetchedBytes);
  FetchLines(address, end);
  // Rows of such a width begin anywhere in a line, and end in another one.
  if ((bytes & (bytes - 1)) != 0) {
    __builtin_prefetch(reinterpret_cast<const void*>(address + end - 1), 0, 2);
  }
}

// Indices are fetched so many bytes before the block that holds them is read.
// Until then other fetches keep the hardware from running ahead of the reads:
// of two threads, out of the caches, 100,000 scalars took 0.7 ns each in place
// of 0.9 so, 1,000,000 by 64-bit indices 1.1 in place of 1.4. With no distance
// less was gained, with up to eight times as much no more.
inline constexpr int64_t kIndexBytesAhead = int64_t{1} << 10;

// ReadOnce, for a block of indices that are read from the first to the last.
template <typename Index>
void ReadOnceAhead(const Index* from, int64_t count, Index* to) {
  ReadOnce(from, count, to);
  FetchLines(reinterpret_cast<uintptr_t>(from + count) + kIndexBytesAhead,
             count * static_cast<int64_t>(sizeof(Index)));
}

// Finds the places of tuples [begin, end) and hands them on so that those which
// follow are known, too: calls find(at, count, places) for up to kBlock tuples,
// then use(at, count, known, places), where the places of [at, at + known) are
// known, those from `count` on for fetching. Each tuple is found once and used
// once. Returns the first tuple that was not used: `end`, unless find() gave
// false.
template <typename Place, typename Finder, typename User>
int64_t ForEachBlockAhead(int64_t begin, int64_t end, int64_t ahead,
                          const Finder& find, const User& use) {
  Place places[kMaxFetchAhead + kBlock];
  int64_t known = 0;
  for (int64_t at = begin; at < end;) {
    const int64_t fresh = std::min<int64_t>(kBlock, end - at - known);
    if (fresh > 0 && !find(at + known, fresh, places + known)) return at;
    known += fresh;
    const int64_t count =
        std::min<int64_t>(kBlock, at + known < end ? known - ahead : known);
    use(at, count, known, places);
    known -= count;
    std::memmove(places, places + count,
                 static_cast<size_t>(known) * sizeof(Place));
    at += count;
  }
  return std::max(begin, end);
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CPU_FETCH_AHEAD_H_
