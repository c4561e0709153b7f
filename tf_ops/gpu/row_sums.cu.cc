// The scatter by sorting.

#include <algorithm>
#include <cstdint>

#include "tf_ops/core/checked_math.h"
#include "tf_ops/core/row_key.h"
#include "tf_ops/gpu/gather_nd.h"
#include "tf_ops/gpu/scatter_nd.h"
#include "tf_ops/gpu/sums.cu.h"
#include "tf_ops/gpu/tuple_reader.cu.h"

namespace tf_stitch_gather {

// Tuples in the order of their rows, those out of range (row `rows`) at the
// end. Keys hold row and tuple, or with `tuples` not null the row alone.
struct Sorted {
  TSG_DEVICE int64_t row(int64_t i) const {
    return RowOfKey(keys[i], tuple_bits);
  }
  TSG_DEVICE int64_t tuple(int64_t i) const {
    return tuples != nullptr ? static_cast<int64_t>(tuples[i])
                             : TupleOfKey(keys[i], tuple_bits);
  }
  TSG_DEVICE int64_t ChunkEnd(int64_t piece) const {
    const int64_t end = (piece + 1) * chunk;
    return end < count ? end : count;
  }
  // Whether the row at position i has begun before it.
  TSG_DEVICE bool GoesOn(int64_t i) const {
    return i > 0 && i < count && row(i) == row(i - 1);
  }
  // The position behind the last tuple of the row at position i.
  TSG_DEVICE int64_t RowEnd(int64_t i) const {
    int64_t low = i;
    int64_t high = count;
    while (high - low > 1) {
      const int64_t middle = low + (high - low) / 2;
      if (row(middle) == row(i)) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return high;
  }

  const uint64_t* keys;
  const uint64_t* tuples;
  int tuple_bits;
  int64_t count;
  int64_t rows;
  int64_t chunk;
};

namespace {

// A thread sums so many tuples of a row at most, and then the sums of such
// pieces: a row that all tuples name takes about chunk + tuples / chunk steps.
// The bits of a sum depend on this.
int64_t ChunkFor(int64_t tuples) {
  int64_t chunk = 16;
  while (chunk < 256 && chunk * chunk * 64 < tuples) chunk *= 2;
  return chunk;
}

// One thread a tuple: writes its key, and reports it if it is out of range.
template <typename Reader>
struct WriteKeys {
  TSG_DEVICE void operator()(int64_t tuple) const {
    int64_t row = reader.Row(tuple);
    if (row < 0) {
      row = beyond;
      if (report != nullptr) AtomicMin(report, static_cast<uint64_t>(tuple));
    }
    if (tuples == nullptr) {
      keys[tuple] = MakeRowKey<uint64_t>(row, tuple, tuple_bits);
    } else {
      keys[tuple] = static_cast<uint64_t>(row);
      tuples[tuple] = static_cast<uint64_t>(tuple);
    }
  }

  Reader reader;
  int64_t beyond;
  int tuple_bits;
  uint64_t* keys;
  uint64_t* tuples;
  uint64_t* report;
};

// One thread a piece: counts the rows that begin in it. One more thread clears
// the place behind the last piece.
struct CountPiece {
  TSG_DEVICE void operator()(int64_t piece) const {
    int64_t rows = 0;
    const int64_t end = sorted.ChunkEnd(piece);
    for (int64_t i = piece * sorted.chunk; i < end; ++i) {
      if (sorted.row(i) < sorted.rows && !sorted.GoesOn(i)) ++rows;
    }
    counts[piece] = rows;
  }

  Sorted sorted;
  int64_t* counts;
};

struct CopyCount {
  TSG_DEVICE void operator()(int64_t) const {
    *to = static_cast<uint64_t>(*from);
  }

  const int64_t* from;
  uint64_t* to;
};

// One thread a piece: writes the rows that begin in it.
struct WriteRows {
  TSG_DEVICE void operator()(int64_t piece) const {
    int64_t at = firsts[piece];
    const int64_t end = sorted.ChunkEnd(piece);
    for (int64_t i = piece * sorted.chunk; i < end; ++i) {
      const int64_t row = sorted.row(i);
      if (row < sorted.rows && !sorted.GoesOn(i)) to[at++] = row;
    }
  }

  Sorted sorted;
  const int64_t* firsts;
  int64_t* to;
};

// One thread for each piece and column, neighbours on neighbouring columns:
// sums the tuples of the piece row by row, kInFlight loads at a time. A row
// that lies in the piece as a whole goes to its place; the end of one that
// began before goes to `leads`, and the beginning of one that goes on behind
// to `tails`.
template <typename Sum>
struct SumPieces {
  using Value = typename Sum::Value;
  using Wide = typename Sum::Wide;
  static constexpr int kInFlight = 4;

  TSG_DEVICE void operator()(int64_t item) const {
    const int64_t piece = item / width;
    const int64_t column = item - piece * width;
    const int64_t begin = piece * sorted.chunk;
    const int64_t end = sorted.ChunkEnd(piece);
    int64_t next_place = firsts != nullptr ? firsts[piece] : 0;

    bool leads_in = sorted.GoesOn(begin);
    int64_t open_row = -1;
    int64_t place = 0;
    Wide sum = {};
    const auto close = [&](bool goes_on) {
      if (open_row < 0) return;
      if (leads_in) {
        leads[item] = sum;
      } else if (goes_on) {
        tails[item] = sum;
      } else {
        to[place * width + column] = Sum::Round(sum);
      }
      leads_in = false;
    };
    for (int64_t first = begin; first < end; first += kInFlight) {
      int64_t rows[kInFlight];
      Value values[kInFlight];
#if defined(__CUDACC__)
#pragma unroll
#endif
      for (int k = 0; k < kInFlight; ++k) {
        rows[k] = sorted.rows;
        if (first + k < end) {
          rows[k] = sorted.row(first + k);
          values[k] = updates[sorted.tuple(first + k) * width + column];
        }
      }
#if defined(__CUDACC__)
#pragma unroll
#endif
      for (int k = 0; k < kInFlight; ++k) {
        if (rows[k] >= sorted.rows) break;
        if (rows[k] != open_row) {
          close(false);
          open_row = rows[k];
          sum = Wide{};
          if (!leads_in) place = firsts != nullptr ? next_place++ : open_row;
        }
        Sum::Add(values[k], &sum);
      }
    }
    close(sorted.GoesOn(end) && sorted.row(end) == open_row);
  }

  Sorted sorted;
  int64_t width;
  const Value* updates;
  const int64_t* firsts;  // null: a row's place is its number
  Wide* leads;
  Wide* tails;
  Value* to;
};

// One thread for each piece and column: where a row begins in the piece and
// goes on behind it, adds up its parts in order.
template <typename Sum>
struct JoinPieces {
  using Value = typename Sum::Value;
  using Wide = typename Sum::Wide;

  TSG_DEVICE void operator()(int64_t item) const {
    const int64_t piece = item / width;
    const int64_t column = item - piece * width;
    const int64_t begin = piece * sorted.chunk;
    const int64_t last = sorted.ChunkEnd(piece) - 1;
    const int64_t row = sorted.row(last);
    if (row >= sorted.rows || !sorted.GoesOn(last + 1)) return;
    if (sorted.row(begin) == row && sorted.GoesOn(begin)) return;
    const int64_t last_piece = (sorted.RowEnd(last) - 1) / sorted.chunk;
    Wide sum = tails[item];
#if defined(__CUDACC__)
#pragma unroll 4
#endif
    for (int64_t p = piece + 1; p <= last_piece; ++p) {
      Sum::Join(leads[p * width + column], &sum);
    }
    const int64_t place = firsts != nullptr ? firsts[piece + 1] - 1 : row;
    to[place * width + column] = Sum::Round(sum);
  }

  Sorted sorted;
  int64_t width;
  const int64_t* firsts;
  const Wide* leads;
  const Wide* tails;
  Value* to;
};

}  // namespace

int64_t ElementBytes(SumKind kind) {
  return VisitDeviceSum(kind, [](auto sum) {
    return static_cast<int64_t>(sizeof(typename decltype(sum)::Value));
  });
}

Status GpuRowSums::Plan(const IndexSpace& space, SumKind kind, int64_t width,
                        bool merges) {
  space_ = space;
  kind_ = kind;
  width_ = width;
  const int64_t tuples = space.tuples();
  narrow_key_ = FitsNarrowKey(space);
  tuple_bits_ = narrow_key_ ? TupleBits(space) : 0;
  chunk_ = ChunkFor(tuples);
  chunks_ = CeilDivide(tuples, chunk_);
  const Status status =
      GpuSortTempBytes(tuples + 1, !narrow_key_, &temp_bytes_);
  if (!status.ok()) return status;

  scratch_bytes_ = 0;
  const auto take = [&](int64_t bytes) {
    const int64_t at = scratch_bytes_;
    scratch_bytes_ += GpuAligned(bytes);
    return at;
  };
  constexpr int64_t kWord = sizeof(uint64_t);
  for (int64_t& keys : keys_) keys = take(tuples * kWord);
  for (int64_t& numbers : tuples_) {
    numbers = take(narrow_key_ ? 0 : tuples * kWord);
  }
  temp_ = take(temp_bytes_);
  firsts_ = take(merges ? (chunks_ + 1) * kWord : 0);
  const int64_t wide_bytes = VisitDeviceSum(kind, [](auto sum) {
    return static_cast<int64_t>(sizeof(typename decltype(sum)::Wide));
  });
  leads_ = take(chunks_ * width * wide_bytes);
  tails_ = take(chunks_ * width * wide_bytes);
  return {};
}

Status GpuRowSums::Sort(const GpuStream& stream, const Indices& indices,
                        uint64_t* report, void* scratch) {
  scratch_ = static_cast<char*>(scratch);
  const auto words = [&](int64_t offset) {
    return reinterpret_cast<uint64_t*>(scratch_ + offset);
  };
  buffers_ = {words(keys_[0]), words(keys_[1]), nullptr, nullptr};
  if (!narrow_key_) {
    buffers_.values = words(tuples_[0]);
    buffers_.other_values = words(tuples_[1]);
  }
  Status status;
  if (report != nullptr) {
    status = GpuFill(stream, report, kEmptyReportByte, sizeof(*report));
    if (!status.ok()) return status;
  }
  if (space_.tuples() == 0) return {};
  status = VisitReader(space_, indices, [&](auto reader) {
    return LaunchItems(
        stream, space_.tuples(),
        WriteKeys<decltype(reader)>{reader, space_.rows(), tuple_bits_,
                                    buffers_.keys, buffers_.values, report});
  });
  if (status.ok() && report != nullptr) {
    status = GpuDescribeBadTuple(stream, indices, space_.depth, report);
  }
  if (!status.ok()) return status;
  return GpuSort(stream, space_.tuples(), tuple_bits_,
                 tuple_bits_ + RowBits(space_), scratch_ + temp_, temp_bytes_,
                 &buffers_);
}

Sorted GpuRowSums::SortedTuplesOnDevice() const {
  return {buffers_.keys,   buffers_.values, tuple_bits_,
          space_.tuples(), space_.rows(),   chunk_};
}

Status GpuRowSums::CountRows(const GpuStream& stream, uint64_t* count) {
  int64_t* firsts = reinterpret_cast<int64_t*>(scratch_ + firsts_);
  Status status = GpuFill(stream, firsts + chunks_, 0, sizeof(*firsts));
  if (status.ok()) {
    status = LaunchItems(stream, chunks_,
                         CountPiece{SortedTuplesOnDevice(), firsts});
  }
  if (status.ok()) {
    status = GpuPrefixSums(stream, chunks_ + 1, scratch_ + temp_, temp_bytes_,
                           firsts);
  }
  if (!status.ok()) return status;
  return LaunchItems(stream, 1, CopyCount{firsts + chunks_, count});
}

template <typename Sum>
Status GpuRowSums::WriteSums(const GpuStream& stream, const void* updates,
                             const int64_t* firsts, void* to) {
  using Value = typename Sum::Value;
  using Wide = typename Sum::Wide;
  const Sorted sorted = SortedTuplesOnDevice();
  Wide* leads = reinterpret_cast<Wide*>(scratch_ + leads_);
  Wide* tails = reinterpret_cast<Wide*>(scratch_ + tails_);
  const Status status = LaunchItems(
      stream, chunks_ * width_,
      SumPieces<Sum>{sorted, width_, static_cast<const Value*>(updates), firsts,
                     leads, tails, static_cast<Value*>(to)});
  if (!status.ok()) return status;
  return LaunchItems(stream, chunks_ * width_,
                     JoinPieces<Sum>{sorted, width_, firsts, leads, tails,
                                     static_cast<Value*>(to)});
}

Status GpuRowSums::Scatter(const GpuStream& stream, const void* updates,
                           void* output) {
  const Status status =
      GpuFill(stream, output, 0, space_.rows() * width_ * ElementBytes(kind_));
  if (!status.ok()) return status;
  return VisitDeviceSum(kind_, [&](auto sum) {
    return WriteSums<decltype(sum)>(stream, updates, nullptr, output);
  });
}

Status GpuRowSums::Merge(const GpuStream& stream, const void* updates,
                         int64_t* rows, void* values) {
  const int64_t* firsts = reinterpret_cast<int64_t*>(scratch_ + firsts_);
  const Status status = LaunchItems(
      stream, chunks_, WriteRows{SortedTuplesOnDevice(), firsts, rows});
  if (!status.ok()) return status;
  return VisitDeviceSum(kind_, [&](auto sum) {
    return WriteSums<decltype(sum)>(stream, updates, firsts, values);
  });
}

}  // namespace tf_stitch_gather
