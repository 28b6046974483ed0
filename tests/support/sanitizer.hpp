// What the build of this test has in it.
#pragma once

namespace support {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool with_asan = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool with_asan = true;
#else
inline constexpr bool with_asan = false;
#endif
#else
inline constexpr bool with_asan = false;
#endif

}  // namespace support
