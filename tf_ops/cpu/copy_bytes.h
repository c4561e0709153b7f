// Copies of few bytes, of a width that the compiler knows.

#ifndef TF_OPS_CPU_COPY_BYTES_H_
#define TF_OPS_CPU_COPY_BYTES_H_

#include <cstdint>
#include <cstring>

namespace tf_stitch_gather {

// Each of these is a kind of rows: Bytes() is the width of one, known when this
// is compiled where it can be, Copy() copies it, and Clear() zeroes it.

// A row of just kBytes.
template <int kBytes>
struct ExactRow {
  static constexpr int64_t Bytes(int64_t) { return kBytes; }
  static void Copy(const char* from, int64_t, char* to) {
    std::memcpy(to, from, kBytes);
  }
  static void Clear(int64_t, char* to) { std::memset(to, 0, kBytes); }
};

// A row of more than kBytes and at most 2 * kBytes: two copies that overlap.
template <int kBytes>
struct UpToTwice {
  static constexpr int64_t Bytes(int64_t bytes) { return bytes; }
  static void Copy(const char* from, int64_t bytes, char* to) {
    char head[kBytes];
    char tail[kBytes];
    std::memcpy(head, from, kBytes);
    std::memcpy(tail, from + bytes - kBytes, kBytes);
    std::memcpy(to, head, kBytes);
    std::memcpy(to + bytes - kBytes, tail, kBytes);
  }
  static void Clear(int64_t bytes, char* to) {
    std::memset(to, 0, kBytes);
    std::memset(to + bytes - kBytes, 0, kBytes);
  }
};

// Any row.
struct AnyRow {
  static constexpr int64_t Bytes(int64_t bytes) { return bytes; }
  static void Copy(const char* from, int64_t bytes, char* to) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  static void Clear(int64_t bytes, char* to) {
    std::memset(to, 0, static_cast<size_t>(bytes));
  }
};

// Calls `visit` with the row type that fits rows of `bytes`.
template <typename Visitor>
auto VisitRow(int64_t bytes, const Visitor& visit) {
  switch (bytes) {
    case 1:
      return visit(ExactRow<1>());
    case 2:
      return visit(ExactRow<2>());
    case 4:
      return visit(ExactRow<4>());
    case 8:
      return visit(ExactRow<8>());
    case 12:  // Three of 4 bytes are as usual as powers of two.
      return visit(ExactRow<12>());
    case 16:
      return visit(ExactRow<16>());
    case 24:
      return visit(ExactRow<24>());
    case 32:
      return visit(ExactRow<32>());
    case 64:
      return visit(ExactRow<64>());
    case 128:
      return visit(ExactRow<128>());
    case 256:
      return visit(ExactRow<256>());
    default:
      if (bytes < 2) return visit(AnyRow());
      if (bytes < 4) return visit(UpToTwice<2>());
      if (bytes < 8) return visit(UpToTwice<4>());
      if (bytes < 16) return visit(UpToTwice<8>());
      if (bytes < 32) return visit(UpToTwice<16>());
      if (bytes < 64) return visit(UpToTwice<32>());
      if (bytes < 128) return visit(UpToTwice<64>());
      return visit(AnyRow());
  }
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CPU_COPY_BYTES_H_
