// expect: moves elements as bytes, and these are not trivially copyable
#include <godwit/godwit.hpp>

#include <string>
#include <vector>

void use(std::vector<std::string>& v) { godwit::sort(v.begin(), v.end()); }
