// expect: this is ordinary memory, of one process only. Keep the elements in a gw::global_array
// lines: 12
// Out of global memory into a vector: get() does that.
#include <godwit/godwit.hpp>

void use(godwit::global_span<int> s, std::vector<int>& v) { godwit::copy(s, v.begin()); }
