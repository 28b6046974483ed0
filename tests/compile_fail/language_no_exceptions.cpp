// expect: godwit needs exceptions: leave out -fno-exceptions
// flags: -fno-exceptions
// lines: 12
#include <godwit/godwit.hpp>
