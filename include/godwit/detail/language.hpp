// What the compiler has to be told before it can understand the library: one line that says so, not three
// thousand. Included first of all by godwit.hpp and values.hpp. Tests: tests/compile_fail/language_*.cpp.
#pragma once

// Compilers read on after #error, so each one ends with a file that does not exist.
#if __cplusplus < 202002L
#error godwit needs C++20: add -std=c++20 to the compile line (CMake: set(CMAKE_CXX_STANDARD 20))
#include <godwit/see_the_error_above>
#elif !defined(__cpp_exceptions)
#error godwit needs exceptions: leave out -fno-exceptions
#include <godwit/see_the_error_above>
#elif !defined(__cpp_rtti)
#error godwit needs run-time type information: leave out -fno-rtti
#include <godwit/see_the_error_above>
#endif
