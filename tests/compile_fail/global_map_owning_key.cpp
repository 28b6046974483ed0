// expect: global_map: keys are compared while others may be overwriting them, so they own nothing
#include <godwit/godwit.hpp>

void use() { godwit::global_map<godwit::global_bytes, int> m(10); }
