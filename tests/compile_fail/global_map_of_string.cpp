// expect: cannot lie in global memory.*global_bytes for text
#include <godwit/godwit.hpp>
#include <string>

void use() { godwit::global_map<std::string, int> m(10); }
