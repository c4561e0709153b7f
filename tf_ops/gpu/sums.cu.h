// The arithmetic of the sums of scatter_nd on the device, in the form of
// tf_ops/cpu/scatter_nd.h:
//   using Value;  using Wide;               // stored, and summed, types
//   static void Add(Value, Wide*);
//   static void Join(Wide, Wide*);          // adds a partial sum
//   static Value Round(Wide);

#ifndef TF_OPS_GPU_SUMS_CU_H_
#define TF_OPS_GPU_SUMS_CU_H_

#include <cstdint>

#include "tf_ops/core/mini_float.h"
#include "tf_ops/gpu/launch.cu.h"
#include "tf_ops/gpu/scatter_nd.h"

namespace tf_stitch_gather {

// float, double, and unsigned integers, which wrap around as signed ones do.
template <typename T>
struct DevicePlainSum {
  using Value = T;
  using Wide = T;
  TSG_DEVICE static void Add(T value, T* sum) {
    *sum = static_cast<T>(*sum + value);
  }
  TSG_DEVICE static void Join(T part, T* sum) { Add(part, sum); }
  TSG_DEVICE static T Round(T sum) { return sum; }
};

// Types of 16 and 8 bits: summed in float32 and rounded once.
template <typename Mini>
struct DeviceMiniSum {
  using Value = typename Mini::Code;
  using Wide = float;
  TSG_DEVICE static void Add(Value value, float* sum) {
    *sum += Mini::Decode(value);
  }
  TSG_DEVICE static void Join(float part, float* sum) { *sum += part; }
  TSG_DEVICE static Value Round(float sum) { return Mini::Encode(sum); }
};

// Integers of 4 or 2 bits, the lowest ones of a byte.
template <int kBits>
struct DeviceSubByteSum : DevicePlainSum<uint8_t> {
  TSG_DEVICE static uint8_t Round(uint8_t sum) {
    return sum & ((1u << kBits) - 1);
  }
};

// Truth values.
struct DeviceOrSum {
  using Value = uint8_t;
  using Wide = uint8_t;
  TSG_DEVICE static void Add(uint8_t value, uint8_t* sum) {
    *sum = *sum != 0 || value != 0;
  }
  TSG_DEVICE static void Join(uint8_t part, uint8_t* sum) { Add(part, sum); }
  TSG_DEVICE static uint8_t Round(uint8_t sum) { return sum; }
};

// Calls `visit` with the sum of `kind`.
template <typename Visitor>
auto VisitDeviceSum(SumKind kind, const Visitor& visit) {
  switch (kind) {
    case SumKind::kFloat:
      return visit(DevicePlainSum<float>());
    case SumKind::kDouble:
      return visit(DevicePlainSum<double>());
    case SumKind::kInteger8:
      return visit(DevicePlainSum<uint8_t>());
    case SumKind::kInteger16:
      return visit(DevicePlainSum<uint16_t>());
    case SumKind::kInteger32:
      return visit(DevicePlainSum<uint32_t>());
    case SumKind::kInteger64:
      return visit(DevicePlainSum<uint64_t>());
    case SumKind::kNibble:
      return visit(DeviceSubByteSum<4>());
    case SumKind::kCrumb:
      return visit(DeviceSubByteSum<2>());
    case SumKind::kOr:
      return visit(DeviceOrSum());
    case SumKind::kHalf:
      return visit(DeviceMiniSum<Half>());
    case SumKind::kBfloat16:
      return visit(DeviceMiniSum<Bfloat16>());
    case SumKind::kFloat8E5M2:
      return visit(DeviceMiniSum<Float8E5M2>());
    case SumKind::kFloat8E4M3Fn:
      return visit(DeviceMiniSum<Float8E4M3Fn>());
    case SumKind::kFloat8E4M3Fnuz:
      return visit(DeviceMiniSum<Float8E4M3Fnuz>());
    case SumKind::kFloat8E4M3B11Fnuz:
      return visit(DeviceMiniSum<Float8E4M3B11Fnuz>());
    case SumKind::kFloat8E5M2Fnuz:
      return visit(DeviceMiniSum<Float8E5M2Fnuz>());
    default:
      return visit(DeviceMiniSum<Float4E2M1Fn>());
  }
}

}  // namespace tf_stitch_gather

#endif  // TF_OPS_GPU_SUMS_CU_H_
