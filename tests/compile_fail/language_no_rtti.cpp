// expect: godwit needs run-time type information: leave out -fno-rtti
// flags: -fno-rtti
// lines: 12
#include <godwit/godwit.hpp>
