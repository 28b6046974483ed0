// What GoogleTest prints of ordinary numbers when they differ: compiled once (printed.cpp), not in every
// test, where it was a tenth of all code.
#pragma once

#include <gtest/gtest.h>

#include <string>

#define SUPPORT_COMPARED(WORD, A, B)                                                                    \
  WORD template AssertionResult CmpHelperEQ<A, B>(const char*, const char*, const A&, const B&);        \
  WORD template AssertionResult CmpHelperEQFailure<A, B>(const char*, const char*, const A&, const B&); \
  WORD template AssertionResult CmpHelperOpFailure<A, B>(const char*, const char*, const A&, const B&,  \
                                                         const char*);

#define SUPPORT_PRINTED(WORD)                                                   \
  namespace testing {                                                           \
  WORD template std::string PrintToString<int>(const int&);                     \
  WORD template std::string PrintToString<unsigned>(const unsigned&);           \
  WORD template std::string PrintToString<long>(const long&);                   \
  WORD template std::string PrintToString<unsigned long>(const unsigned long&); \
  WORD template std::string PrintToString<std::string>(const std::string&);     \
  WORD template std::string PrintToString<const char*>(const char* const&);     \
  namespace internal {                                                          \
  SUPPORT_COMPARED(WORD, int, int)                                              \
  SUPPORT_COMPARED(WORD, unsigned, unsigned)                                    \
  SUPPORT_COMPARED(WORD, long, long)                                            \
  SUPPORT_COMPARED(WORD, long, int)                                             \
  SUPPORT_COMPARED(WORD, unsigned long, unsigned)                               \
  SUPPORT_COMPARED(WORD, unsigned long, unsigned long)                          \
  SUPPORT_COMPARED(WORD, std::string, std::string)                              \
  }                                                                             \
  }

SUPPORT_PRINTED(extern)
