// Preloaded: operator new of the process, of whose calls by the op libraries
// one can be made to fail. Calls by way of libstdc++, as of strings, count,
// too.

#include <execinfo.h>
#include <link.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace {

std::atomic<long> until_failure{-1};

// Where a library lies in memory.
struct Range {
  uintptr_t begin = UINTPTR_MAX;
  uintptr_t end = 0;

  bool Has(const void* address) const {
    const uintptr_t at = reinterpret_cast<uintptr_t>(address);
    return begin <= at && at < end;
  }
};

Range ours;
Range ours_for_xla;
Range standard;

int FindRange(dl_phdr_info* info, size_t, void*) {
  Range* range = nullptr;
  if (std::strstr(info->dlpi_name, "libtf_stitch_gather.so")) range = &ours;
  if (std::strstr(info->dlpi_name, "libtf_stitch_gather_xla.so")) {
    range = &ours_for_xla;
  }
  if (std::strstr(info->dlpi_name, "libstdc++")) range = &standard;
  if (range == nullptr) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    const uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (begin < range->begin) range->begin = begin;
    if (begin + part.p_memsz > range->end) range->end = begin + part.p_memsz;
  }
  return 0;
}

bool IsOurs(const void* address) {
  return ours.Has(address) || ours_for_xla.Has(address);
}

// Whether the code at `caller` is ours, or of libstdc++ called from ours.
__attribute__((noinline)) bool IsForOurs(const void* caller) {
  if (!standard.Has(caller)) return IsOurs(caller);
  void* frames[8];
  const int count = backtrace(frames, 8);
  for (int i = 0; i + 1 < count; ++i) {
    if (standard.Has(frames[i]) && !standard.Has(frames[i + 1])) {
      return IsOurs(frames[i + 1]);
    }
  }
  return false;
}

}  // namespace

// Lets the call after `count` more of them fail.
extern "C" void fail_after(long count) {
  ours = ours_for_xla = standard = {};
  dl_iterate_phdr(FindRange, nullptr);
  until_failure = count;
}

// Lets no call fail; returns whether one has.
extern "C" int stop_failing() { return until_failure.exchange(-1) < 0; }

void* operator new(size_t size) {
  if (until_failure.load() >= 0 && IsForOurs(__builtin_return_address(0)) &&
      until_failure.fetch_sub(1) == 0) {
    throw std::bad_alloc();
  }
  void* memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
