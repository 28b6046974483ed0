// expect: this algorithm writes, but it was given const elements
// lines: 80
// A view of const elements is for reading.
#include <godwit/godwit.hpp>

void use(godwit::global_span<const int> s) { godwit::fill(s, 1); }
