// expect: global_ref<const int>
// lines: 45
// Who was given a span of const elements does not write.
#include <godwit/godwit.hpp>

void use(godwit::global_span<const int> s) { s[0] = 1; }
