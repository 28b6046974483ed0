// expect: const elements of global memory are not written
// lines: 45
// Nor by put, who has a pointer to const elements.
#include <godwit/godwit.hpp>

void use(godwit::global_ptr<const int> p) { godwit::put(p, 1); }
