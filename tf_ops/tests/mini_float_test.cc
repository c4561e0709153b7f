// Every code of the narrow floating-point types, and roundings to the nearest
// of them, against the definition of the formats.

#include "tf_ops/core/mini_float.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>

#include "tf_ops/tests/check.h"

namespace tf_stitch_gather::testing {
namespace {

template <int kExponentBits, int kMantissaBits, int kBias, MiniSpecial kSpecial>
void TestFormat(MiniFloat<kExponentBits, kMantissaBits, kBias, kSpecial>,
                const std::string& name, double greatest) {
  using Mini = MiniFloat<kExponentBits, kMantissaBits, kBias, kSpecial>;
  using Code = typename Mini::Code;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const int codes = 1 << Mini::kBits;
  const int half = codes / 2;

  // The value of a code of a positive number, without special codes.
  const auto value_of = [](int code) {
    const int exponent = code >> kMantissaBits;
    const int mantissa = code & ((1 << kMantissaBits) - 1);
    return exponent == 0 ? std::ldexp(mantissa, 1 - kBias - kMantissaBits)
                         : std::ldexp(mantissa + (1 << kMantissaBits),
                                      exponent - kBias - kMantissaBits);
  };
  int last = half - 1;  // the code of the greatest number
  while (value_of(last) > greatest) --last;
  CHECK_CASE(value_of(last) == greatest, name);

  for (int code = 0; code < codes; ++code) {
    const std::string at = name + " code " + std::to_string(code);
    const float decoded = Mini::Decode(static_cast<Code>(code));
    const int magnitude = code % half;
    const bool infinite =
        kSpecial == MiniSpecial::kIeee && magnitude == last + 1;
    const bool nan = kSpecial == MiniSpecial::kFnuz
                         ? code == half
                         : magnitude > last && !infinite;
    if (nan) {
      CHECK_CASE(std::isnan(decoded) && Mini::IsNan(static_cast<Code>(code)),
                 at);
      CHECK_CASE(Mini::IsNan(Mini::Encode(decoded)), at);
      continue;
    }
    const double expected = infinite ? std::numeric_limits<double>::infinity()
                                     : value_of(magnitude);
    CHECK_CASE(decoded == (code >= half ? -expected : expected), at);
    CHECK_CASE(std::signbit(decoded) == (code >= half), at);
    CHECK_CASE(Mini::Encode(decoded) == code, at);
    if (infinite || magnitude == last) continue;

    // Between neighbours: the nearer one, or of two as near the even one.
    const double next = value_of(magnitude + 1);
    const float middle = static_cast<float>((expected + next) / 2);
    if (static_cast<double>(middle) != (expected + next) / 2) continue;
    const int even = magnitude + magnitude % 2;
    const auto encoded = [&](float value) {
      return static_cast<int>(Mini::Encode(code >= half ? -value : value));
    };
    const auto signed_code = [&](int positive) {
      const bool no_zero = kSpecial == MiniSpecial::kFnuz && positive == 0;
      return code >= half && !no_zero ? positive + half : positive;
    };
    CHECK_CASE(encoded(middle) == signed_code(even), at);
    CHECK_CASE(encoded(std::nextafter(middle, 0.0f)) == signed_code(magnitude),
               at);
    CHECK_CASE(encoded(std::nextafter(middle, kInfinity)) ==
                   signed_code(magnitude + 1),
               at);
  }

  // What is too great, and what is next to nothing.
  const float step = static_cast<float>(greatest - value_of(last - 1));
  for (const float value :
       {static_cast<float>(greatest) + step, std::numeric_limits<float>::max(),
        std::numeric_limits<float>::infinity()}) {
    const float back = Mini::Decode(Mini::Encode(value));
    CHECK_CASE(kSpecial == MiniSpecial::kIeee     ? std::isinf(back)
               : kSpecial == MiniSpecial::kNumber ? back == greatest
                                                  : std::isnan(back),
               name);
  }
  CHECK_CASE(Mini::Encode(std::numeric_limits<float>::denorm_min()) == 0, name);
  CHECK_CASE(Mini::Encode(0.0f) == 0, name);
  CHECK_CASE(Mini::Encode(-0.0f) == (kSpecial == MiniSpecial::kFnuz ? 0 : half),
             name);
}

}  // namespace
}  // namespace tf_stitch_gather::testing

int main() {
  using namespace tf_stitch_gather;           // NOLINT: a test's main
  using namespace tf_stitch_gather::testing;  // NOLINT
  TestFormat(Half(), "half", 65504);
  TestFormat(Bfloat16(), "bfloat16", std::ldexp(255, 120));
  TestFormat(Float8E5M2(), "float8_e5m2", 57344);
  TestFormat(Float8E4M3Fn(), "float8_e4m3fn", 448);
  TestFormat(Float8E4M3Fnuz(), "float8_e4m3fnuz", 240);
  TestFormat(Float8E4M3B11Fnuz(), "float8_e4m3b11fnuz", 30);
  TestFormat(Float8E5M2Fnuz(), "float8_e5m2fnuz", 57344);
  TestFormat(Float4E2M1Fn(), "float4_e2m1fn", 6);
  std::puts("mini floats: passed");
}
