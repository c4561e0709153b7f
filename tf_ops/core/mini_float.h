// Floating-point types of 4, 8 and 16 bits, by their bits: the conversions from
// and to float32 that a device without a library for them needs.

#ifndef TF_OPS_CORE_MINI_FLOAT_H_
#define TF_OPS_CORE_MINI_FLOAT_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "tf_ops/core/host_device.h"

namespace tf_stitch_gather {

// What the codes at the end of the range mean.
enum class MiniSpecial {
  kIeee,    // the greatest exponent: infinities and NaNs
  kFinite,  // no infinity; all ones but the sign: NaN
  kFnuz,    // no infinity, no negative zero; the code of that: NaN
  kNumber,  // numbers like any other: no infinity and no NaN
};

// A sign, kExponentBits and kMantissaBits, from the top; of 4 bits, in the
// lower half of a byte.
template <int kExponentBits, int kMantissaBits, int kBias, MiniSpecial kSpecial>
struct MiniFloat {
  static constexpr int kBits = 1 + kExponentBits + kMantissaBits;
  static_assert(kBits == 4 || kBits == 8 || kBits == 16);
  using Code = std::conditional_t<kBits == 16, uint16_t, uint8_t>;

  TSG_HOST_DEVICE static float Decode(Code code) {
    const uint32_t sign = static_cast<uint32_t>(code >> (kBits - 1) & 1) << 31;
    if constexpr (kIsTopOfFloat) {
      return FromBits(static_cast<uint32_t>(code) << 16);
    }
    const uint32_t magnitude = code & kMagnitudeMask;
    if (IsNan(code)) return FromBits(sign | kFloatNan);
    if (kSpecial == MiniSpecial::kIeee && magnitude == kInfinity) {
      return FromBits(sign | kFloatInfinity);
    }
    const uint32_t exponent = magnitude >> kMantissaBits;
    if (exponent == 0) {
      // Exact: mantissa and unit are powers of two times small integers.
      const float value =
          static_cast<float>(magnitude) * FromBits(kUnitExponent << 23);
      return sign != 0 ? -value : value;
    }
    return FromBits(sign | ((magnitude + kBiasShift) << (23 - kMantissaBits)));
  }

  // Rounds to nearest, ties to even. What is too great becomes infinity, in a
  // type without one NaN, and in a type without that the greatest number; there
  // NaN becomes zero of the other sign.
  TSG_HOST_DEVICE static Code Encode(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    const Code sign = static_cast<Code>((bits >> 31) << (kBits - 1));
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > kFloatInfinity) return NanOf(sign);
    constexpr int kShift = 23 - kMantissaBits;
    uint32_t code;
    if (kIsTopOfFloat || magnitude >= (kUnitExponent + kMantissaBits) << 23) {
      code = RoundOff(magnitude, kShift) - kBiasShift;
    } else {
      // Below the least normal number: a multiple of the unit.
      const int shift = kShift + static_cast<int>(kUnitExponent) +
                        kMantissaBits - static_cast<int>(magnitude >> 23);
      code =
          shift > 24 ? 0 : RoundOff((magnitude & 0x7fffffu) | 0x800000u, shift);
    }
    if (code > kGreatest) {
      switch (kSpecial) {
        case MiniSpecial::kIeee:
          return static_cast<Code>(sign | kInfinity);
        case MiniSpecial::kNumber:
          return static_cast<Code>(sign | kGreatest);
        default:
          return NanOf(sign);
      }
    }
    if (kSpecial == MiniSpecial::kFnuz && code == 0) return 0;
    return static_cast<Code>(sign | code);
  }

  TSG_HOST_DEVICE static bool IsNan(Code code) {
    const uint32_t magnitude = code & kMagnitudeMask;
    switch (kSpecial) {
      case MiniSpecial::kIeee:
        return magnitude > kInfinity;
      case MiniSpecial::kFinite:
        return magnitude == kMagnitudeMask;
      case MiniSpecial::kNumber:
        return false;
      default:
        return code == Code{1} << (kBits - 1);
    }
  }

 private:
  static constexpr uint32_t kFloatInfinity = 0x7f800000u;
  static constexpr uint32_t kFloatNan = 0x7fc00000u;
  static constexpr uint32_t kMagnitudeMask = (1u << (kBits - 1)) - 1;
  static constexpr uint32_t kInfinity = ((1u << kExponentBits) - 1)
                                        << kMantissaBits;
  static constexpr uint32_t kGreatest =
      kSpecial == MiniSpecial::kIeee     ? kInfinity - 1
      : kSpecial == MiniSpecial::kFinite ? kMagnitudeMask - 1
                                         : kMagnitudeMask;
  // bfloat16 is the upper half of a float32, subnormal numbers included.
  static constexpr bool kIsTopOfFloat = kExponentBits == 8;
  // Between the two biases, in units of the mantissa's lowest bit.
  static constexpr uint32_t kBiasShift = (127u - kBias) << kMantissaBits;
  // The float32 exponent of the least positive number.
  static constexpr uint32_t kUnitExponent =
      kIsTopOfFloat ? 0 : 127 + 1 - kBias - kMantissaBits;

  TSG_HOST_DEVICE static float FromBits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
  }
  TSG_HOST_DEVICE static uint32_t RoundOff(uint32_t bits, int shift) {
    return (bits + ((1u << (shift - 1)) - 1) + ((bits >> shift) & 1)) >> shift;
  }
  TSG_HOST_DEVICE static Code NanOf(Code sign) {
    switch (kSpecial) {
      case MiniSpecial::kIeee:
        return static_cast<Code>(sign | kInfinity |
                                 (1u << (kMantissaBits - 1)));
      case MiniSpecial::kFinite:
        return static_cast<Code>(sign | kMagnitudeMask);
      case MiniSpecial::kNumber:
        return static_cast<Code>(sign ^ (1u << (kBits - 1)));
      default:
        return static_cast<Code>(1u << (kBits - 1));
    }
  }
};

using Half = MiniFloat<5, 10, 15, MiniSpecial::kIeee>;
using Bfloat16 = MiniFloat<8, 7, 127, MiniSpecial::kIeee>;
using Float8E5M2 = MiniFloat<5, 2, 15, MiniSpecial::kIeee>;
using Float8E4M3Fn = MiniFloat<4, 3, 7, MiniSpecial::kFinite>;
using Float8E4M3Fnuz = MiniFloat<4, 3, 8, MiniSpecial::kFnuz>;
using Float8E4M3B11Fnuz = MiniFloat<4, 3, 11, MiniSpecial::kFnuz>;
using Float8E5M2Fnuz = MiniFloat<5, 2, 16, MiniSpecial::kFnuz>;
using Float4E2M1Fn = MiniFloat<2, 1, 1, MiniSpecial::kNumber>;

}  // namespace tf_stitch_gather

#endif  // TF_OPS_CORE_MINI_FLOAT_H_
