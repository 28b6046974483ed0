// expect: cannot lie in global memory.*Store plain values
#include <godwit/godwit.hpp>
#include <string>

void use() { godwit::global_array<std::string> a(10); }
